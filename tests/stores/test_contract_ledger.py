"""The ledger in every store: numbered transfers in pages, pending ones, balances and sums."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Store, Unit
from sandbox_sim.records.ledger import (
    AccountKind,
    BadTransfer,
    Balance,
    LedgerLine,
    LedgerQuery,
    Overdrawn,
    PendingEnded,
    our_account,
)
from sandbox_sim.stores.sql import ledger as sql_ledger
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet
from tests.live_records import CLEARING, PAYOUT, paid_in, set_aside
from tests.sample_records import NOW, SERVICE, account_of, after, posting, violations
from tests.stores.conftest import OpenStore
from tests.units import unit_of

pytestmark = pytest.mark.decision("D22")


OTHER = 56

SANDBOX, LIVE = ServiceMode

POSTINGS = [
    posting("500", subject="0"),
    posting("-1", reason="charge", subject="1", at=after(hours=1)),
    posting("500", subject="2", service_id=OTHER, at=after(hours=1)),
    # A clock can be set back; the list keeps the order in which they were posted.
    posting("1", reason="refund", subject="3"),
    posting("7", reason="deposited", subject="4", account=Wallet.PAYOUT, at=after(hours=2)),
    posting("9", reason="topup", subject="", service_id=OTHER, at=after(hours=2)),
]

NEWEST_FIRST = ["", "4", "3", "2", "1", "0"]


@pytest.fixture
async def filled(store: Store) -> Store:
    """A store with six postings of two services."""
    for each in POSTINGS:
        await unit_of(store).add_transfer(each)
    return store


async def page(store: Store, query: LedgerQuery) -> Sequence[LedgerLine]:
    return list(await unit_of(store).ledger_page(query))


def subjects(lines: Sequence[LedgerLine]) -> list[str]:
    return [line.transfer.subject for line in lines]


async def test_a_line_has_its_transfer_and_numbers_rise_over_all_services(filled: Store) -> None:
    made = posting("-0.10", reason="spent", subject="später \u2028", account=Wallet.AIRTIME)
    await unit_of(filled).add_transfer(made)

    lines = await page(filled, LedgerQuery())

    numbers = [line.number for line in lines]
    assert numbers == sorted(set(numbers), reverse=True)
    assert numbers[-1] > 0
    of_services = [await page(filled, LedgerQuery(service)) for service in (SERVICE, OTHER)]
    assert sorted(line.number for lines in of_services for line in lines) == numbers[::-1]
    assert lines[0].transfer == made
    assert isinstance(lines[0].transfer.debit.wallet, Wallet)


async def test_a_filtered_page_has_the_newest_matching_line_first(filled: Store) -> None:
    for query, expected in (
        (LedgerQuery(), NEWEST_FIRST),
        (LedgerQuery(SERVICE), ["4", "3", "1", "0"]),
        (LedgerQuery(OTHER), ["", "2"]),
        (LedgerQuery(57), []),
        (LedgerQuery(account=Wallet.PAYOUT), ["4"]),
        (LedgerQuery(account=Wallet.COLLECTION), []),
        (LedgerQuery(reason="opening"), ["2", "0"]),
        (LedgerQuery(subject="3"), ["3"]),
        (LedgerQuery(subject=""), [""]),
        (LedgerQuery(OTHER, subject="3"), []),
        (LedgerQuery(SERVICE, Wallet.SMS, "charge", "1"), ["1"]),
        (LedgerQuery(SERVICE, Wallet.PAYOUT, "charge", "1"), []),
        (LedgerQuery(limit=2), ["", "4"]),
        (LedgerQuery(reason="opening", limit=1), ["2"]),
    ):
        assert subjects(await page(filled, query)) == expected, query

    await unit_of(filled).add_transfer(posting("3", subject="P", mode=LIVE))
    of_modes = {None: ["P", *NEWEST_FIRST], LIVE: ["P"], SANDBOX: NEWEST_FIRST}
    for mode, expected in of_modes.items():
        assert subjects(await page(filled, LedgerQuery(mode=mode))) == expected, mode


@pytest.mark.parametrize("service_id", [None, SERVICE])
@pytest.mark.parametrize("reason", [None, "opening"])
async def test_pages_follow_one_another_after_a_number(
    filled: Store, service_id: int | None, reason: str | None
) -> None:
    whole = await page(filled, LedgerQuery(service_id, reason=reason))
    for limit in (1, 2, 6, 100):
        found, after_number = [], None
        while lines := await page(
            filled, LedgerQuery(service_id, reason=reason, after=after_number, limit=limit)
        ):
            found.append(lines)
            after_number = lines[-1].number

        assert [line for lines in found for line in lines] == whole
        assert [len(lines) for lines in found[:-1]] == [limit] * (len(found) - 1)


async def test_a_page_begins_after_any_number_and_a_new_line_comes_first(filled: Store) -> None:
    numbers = [line.number for line in await page(filled, LedgerQuery())]

    async def after_number(number: int, **query: int) -> list[str]:
        return subjects(await page(filled, LedgerQuery(after=number, **query)))  # type: ignore[arg-type]

    assert await after_number(numbers[0] + 1) == await after_number(2**63 - 1) == NEWEST_FIRST
    assert await after_number(numbers[-1]) == []
    assert await after_number(numbers[3], service_id=SERVICE) == ["1", "0"], "of another service"

    await unit_of(filled).add_transfer(posting("1", subject="new"))
    assert await after_number(numbers[1], limit=2) == ["3", "2"]
    assert subjects(await page(filled, LedgerQuery(limit=1))) == ["new"]


async def test_balances_are_selected_by_mode_and_service(filled: Store) -> None:
    live = posting("3", mode=LIVE)
    await unit_of(filled).add_transfer(live)
    all_balances = {
        account_of(): Balance(Decimal(500), Decimal(0), NOW),
        account_of(account=Wallet.PAYOUT): Balance(Decimal(7), Decimal(0), after(hours=2)),
        account_of(OTHER): Balance(Decimal(509), Decimal(0), after(hours=2)),
        account_of(mode=LIVE): Balance(Decimal(3), Decimal(0), NOW),
    }
    for mode, service_id in ((None, None), (None, SERVICE), (LIVE, None), (SANDBOX, OTHER)):
        expected = {
            account: balance
            for account, balance in all_balances.items()
            if mode in {None, account.mode} and service_id in {None, account.service_id}
        }
        found = await unit_of(filled).balances(mode, service_id)
        assert found == expected
    assert await unit_of(filled).live_sums() == {live.debit: Decimal(-3)}
    assert await filled.run(violations) == ()


async def test_a_transfer_between_accounts_of_ours_changes_no_wallet(store: Store) -> None:
    suspense = our_account(AccountKind.SUSPENSE, LIVE, "GHS")
    moved = posting("3", account=Wallet.PAYOUT, mode=LIVE)._replace(credit=suspense)

    await unit_of(store).add_transfer(moved)

    assert await unit_of(store).balances(None, None) == {}
    sums = await unit_of(store).live_sums()
    assert sums == {moved.debit: Decimal(-3), suspense: Decimal(3)}
    assert await store.run(violations) == ()


@pytest.mark.decision("D39")
class TestPendingTransfer:
    async def test_a_pending_transfer_reserves_its_amount_and_ends_once(self, store: Store) -> None:
        pending = await add_pending_payout(store)

        assert await payout_balance(store) == Balance(Decimal("89.50"), Decimal("10.50"), NOW)
        assert await unit_of(store).live_sums() == {CLEARING: Decimal(-100)}
        end = pending.posted(after(hours=1), CLEARING)
        await unit_of(store).add_transfer(end)

        assert await payout_balance(store) == Balance(Decimal("89.50"), Decimal(0), after(hours=1))
        assert await unit_of(store).live_sums() == {CLEARING: Decimal("-89.50")}
        for again in (end, pending.voided(NOW)):
            with pytest.raises(PendingEnded):
                await unit_of(store).add_transfer(again)
        assert await unit_of(store).open_transfer(PAYOUT, "10000000001") is None
        assert await store.run(violations) == ()

    @pytest.mark.parametrize(("part", "available"), [(None, 100), (Decimal(4), 96)])
    async def test_a_void_or_a_partial_post_makes_the_rest_available_again(
        self, store: Store, part: Decimal | None, available: int
    ) -> None:
        pending = await add_pending_payout(store)

        end = pending.voided(NOW) if part is None else pending.posted(NOW, CLEARING, part)
        await unit_of(store).add_transfer(end)

        assert await payout_balance(store) == Balance(Decimal(available), Decimal(0), NOW)
        assert await store.run(violations) == ()

    async def test_more_than_the_available_or_pending_amount_is_refused(self, store: Store) -> None:
        pending = await add_pending_payout(store)

        async def work(unit: Unit) -> None:
            with pytest.raises(BadTransfer, match="is pending, less than"):
                await unit.add_transfer(pending.posted(NOW, CLEARING, Decimal("10.51")))
            with pytest.raises(Overdrawn):
                await unit.add_transfer(set_aside("89.51"))

        await store.run(work)

        assert await payout_balance(store) == Balance(Decimal("89.50"), Decimal("10.50"), NOW)
        assert len(await page(store, LedgerQuery())) == 2
        await unit_of(store).add_transfer(set_aside("1", "other"))
        other = account_of(OTHER, Wallet.PAYOUT, LIVE)
        for wallet, subject, found in (
            (PAYOUT, "10000000001", pending),
            (PAYOUT, "10000000009", None),
            (other, "10000000001", None),
        ):
            assert await unit_of(store).open_transfer(wallet, subject) == found

    async def test_two_units_at_once_end_a_pending_transfer_once(self, store: Store) -> None:
        pending = await add_pending_payout(store)
        ends = (pending.voided(NOW), pending.posted(NOW, CLEARING))

        ended = await asyncio.gather(
            *(unit_of(store).add_transfer(each) for each in ends), return_exceptions=True
        )

        assert [isinstance(each, PendingEnded) for each in ended].count(True) == 1
        assert await store.run(violations) == ()


async def add_pending_payout(store: Store) -> LedgerLine:
    """Add a deposit of 100 and a pending payout of 10.50; returns the payout."""
    await unit_of(store).add_transfer(paid_in(into=PAYOUT))
    number = await unit_of(store).add_transfer(set_aside())
    return LedgerLine(number, set_aside())


async def payout_balance(store: Store) -> Balance | None:
    return await unit_of(store).balance(PAYOUT)


@pytest.mark.decision("D39")
async def test_sums_are_right_before_and_after_a_checkpoint(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_ledger, "CHECKPOINT_EVERY", 3)
    clock = VirtualClock()
    async with open_store(clock) as store:
        for count in range(1, 9):
            await unit_of(store).add_transfer(paid_in("0.1", PAYOUT))
            clock.move_to(clock.now() + timedelta(minutes=50))
            # The first call may save a checkpoint, and the second one begins there.
            for _ in range(2):
                sums = await unit_of(store).live_sums()
                assert sums == {CLEARING: Decimal(-count) / 10}
        assert await store.run(violations) == ()


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        (["0.1", "0.2"], "0.3"),
        (["5", "-4.9999999"], "0.0000001"),
        (["10000", "1E+300", "0.01", "-1E+300"], "10000.01"),
        (["1E+300", "5E-324"], None),
    ],
)
async def test_balance_and_sum_are_exact_to_the_last_digit(
    store: Store, amounts: list[str], expected: str | None
) -> None:
    """Amounts come from JSON numbers, which may be very large and very small."""
    for amount in amounts:
        await unit_of(store).add_transfer(posting(amount))

    balance = await unit_of(store).balance(account_of(SERVICE, Wallet.SMS))

    exact = Decimal(expected or f"1{'0' * 300}.{'0' * 323}5")
    assert balance is not None
    assert (balance.amount, balance.updated_at) == (exact, NOW)
    assert await store.run(violations) == ()
