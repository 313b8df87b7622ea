"""Every store keeps user rules as they were saved, and notifies watchers of announcements."""

import asyncio
from decimal import Decimal

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.ports import Store, Topic, Unit
from sandbox_sim.records.overrides import Match, UserRule, UserRuleKind
from tests.sample_records import rule
from tests.units import unit_of

EVERYTHING = Match(
    service_id=55,
    operation=Operation.PAYOUT,
    transaction_id="T\0 1",
    customer_number="0244000001",
    nw="MTN",
    amount_from=Decimal("0.1"),
    amount_to=Decimal(10000),
)


async def rules(store: Store) -> list[UserRule]:
    return list(await unit_of(store).user_rules())


@pytest.mark.parametrize("match", [Match(), EVERYTHING, Match(amount_to=Decimal("1.5"))])
async def test_a_rule_is_read_as_it_was_saved(store: Store, match: Match) -> None:
    saved = rule(match=match, kind=UserRuleKind.FAULT, times=None, seen=7, used=3)

    await unit_of(store).save_user_rule(saved)

    assert await rules(store) == [saved]
    assert await unit_of(store).user_rule(saved.id) == saved


async def test_rules_are_listed_newest_first_and_keep_their_place(store: Store) -> None:
    for each in ("O1", "O2", "O3"):
        await unit_of(store).save_user_rule(rule(each))
    await unit_of(store).save_user_rule(rule("O4", match=Match()))
    await unit_of(store).save_user_rule(rule("O1").counted(applied=True))

    found = [(each.id, each.used) for each in await rules(store)]
    assert found == [("O4", 0), ("O3", 0), ("O2", 0), ("O1", 1)]

    for _ in range(2):  # the second time there is nothing to delete
        await unit_of(store).delete_user_rule(rule("O1"))
    assert [each.id for each in await rules(store)] == ["O4", "O3", "O2"]
    assert await unit_of(store).user_rule("O1") is None

    await unit_of(store).reset(55)
    assert [each.id for each in await rules(store)] == ["O4"], "the rule for all services"
    await unit_of(store).reset(None)
    assert await rules(store) == []


async def test_watchers_of_a_topic_finish_before_the_announcement_returns(store: Store) -> None:
    """A watcher that fails does not stop the others; a unit that fails announces nothing."""
    read: list[list[UserRule]] = []

    async def broken() -> None:
        raise ValueError("no")

    async def notice() -> None:
        read.append(await rules(store))

    async def work(unit: Unit) -> None:
        await unit.save_user_rule(rule())
        await unit.announce(Topic.RULES)

    async def fails(unit: Unit) -> None:
        await unit.announce(Topic.RULES)
        raise LookupError

    store.watch_topic(Topic.RULES, broken)
    store.watch_topic(Topic.RULES, notice)
    with pytest.raises(LookupError):
        await store.run(fails)
    assert read == []

    await store.run(work)
    assert read == [[rule()]]

    await unit_of(store).delete_user_rule(rule("O1"))
    assert read == [[rule()]]


async def test_announcements_are_processed_one_after_another(store: Store) -> None:
    """Otherwise an older result of a read could replace a newer one."""
    at_once, maximum = 0, 0

    async def notice() -> None:
        nonlocal at_once, maximum
        at_once += 1
        maximum = max(maximum, at_once)
        await rules(store)
        await asyncio.sleep(0)
        at_once -= 1

    store.watch_topic(Topic.RULES, notice)
    announcing = (unit_of(store).announce(Topic.RULES) for _ in range(10))

    await asyncio.gather(*announcing)

    assert maximum == 1
