"""Every store keeps user rules as they were given, and notifies watchers of announcements."""

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


async def test_the_newest_comes_first_and_keeps_its_place_when_it_changes(store: Store) -> None:
    for each in "O1", "O2", "O3":
        await unit_of(store).save_user_rule(rule(each))
    await unit_of(store).save_user_rule(rule("O1").counted(applied=True))

    assert [(each.id, each.used) for each in await rules(store)] == [
        ("O3", 0),
        ("O2", 0),
        ("O1", 1),
    ]


async def test_one_that_was_taken_out_is_gone_and_taking_it_out_again_changes_nothing(
    store: Store,
) -> None:
    await unit_of(store).save_user_rule(rule("O1"))
    await unit_of(store).save_user_rule(rule("O2"))

    for _ in range(2):
        await unit_of(store).delete_user_rule(rule("O1"))

    assert [each.id for each in await rules(store)] == ["O2"]
    assert await unit_of(store).user_rule("O1") is None


async def test_a_reset_of_one_service_leaves_the_rules_for_all(store: Store) -> None:
    await unit_of(store).save_user_rule(rule("O1", match=Match()))

    await unit_of(store).reset(55)
    assert [each.id for each in await rules(store)] == ["O1"]

    await unit_of(store).reset(None)
    assert await rules(store) == []


async def test_who_watches_a_topic_has_read_the_store_before_the_announcement_returns(
    store: Store,
) -> None:
    heard: list[list[UserRule]] = []

    async def notice() -> None:
        heard.append(await rules(store))

    store.watch_topic(Topic.RULES, notice)

    async def work(unit: Unit) -> None:
        await unit.save_user_rule(rule())
        await unit.announce(Topic.RULES)

    await store.run(work)
    assert heard == [[rule()]]

    await unit_of(store).delete_user_rule(rule("O1"))
    assert heard == [[rule()]]


async def test_nothing_is_told_of_a_unit_that_failed(store: Store) -> None:
    heard: list[str] = []

    async def notice() -> None:
        heard.append("rules")

    store.watch_topic(Topic.RULES, notice)

    async def work(unit: Unit) -> None:
        await unit.announce(Topic.RULES)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 -- ours
        await store.run(work)

    assert heard == []


async def test_a_watcher_that_fails_keeps_no_other_from_hearing(store: Store) -> None:
    heard: list[str] = []

    async def broken() -> None:
        raise ValueError("no")

    async def notice() -> None:
        heard.append("rules")

    store.watch_topic(Topic.RULES, broken)
    store.watch_topic(Topic.RULES, notice)

    await unit_of(store).announce(Topic.RULES)

    assert heard == ["rules"]


async def test_watchers_are_told_of_one_thing_after_another(store: Store) -> None:
    """Otherwise an older result of a read could replace a newer one."""
    at_once, most = 0, 0

    async def notice() -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await rules(store)
        await asyncio.sleep(0)
        at_once -= 1

    store.watch_topic(Topic.RULES, notice)
    announcing = (unit_of(store).announce(Topic.RULES) for _ in range(10))

    await asyncio.gather(*announcing)

    assert most == 1
