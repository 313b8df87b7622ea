"""The ledger in every store: numbered postings in pages, and balances compared with their sum."""

from collections.abc import Sequence
from decimal import Decimal
from operator import methodcaller

import pytest

from sandbox_sim.domain.ledger import Account, Audit, LedgerLine, LedgerQuery
from sandbox_sim.gateway.ports import Store, Unit
from tests.records import NOW, SERVICE, after, posting

pytestmark = pytest.mark.decision("D22")

OTHER = 56
POSTINGS = [
    posting("500", subject="0"),
    posting("-1", reason="charge", subject="1", at=after(hours=1)),
    posting("500", subject="2", service_id=OTHER, at=after(hours=1)),
    # A clock can be set back; the list still has the order in which they were posted.
    posting("1", reason="refund", subject="3"),
    posting("7", reason="deposited", subject="4", account=Account.PAYOUT, at=after(hours=2)),
    posting("9", reason="topup", subject="", service_id=OTHER, at=after(hours=2)),
]
NEWEST_FIRST = ["", "4", "3", "2", "1", "0"]


@pytest.fixture
async def filled(store: Store) -> Store:
    """A store with six postings of two services."""
    for each in POSTINGS:
        await store.run(methodcaller("post", each))
    return store


async def page(store: Store, query: LedgerQuery) -> Sequence[LedgerLine]:
    return list(await store.run(lambda unit: unit.ledger_page(query)))


def subjects(lines: Sequence[LedgerLine]) -> list[str]:
    return [line.posting.subject for line in lines]


async def audit(store: Store, service_id: int | None) -> set[Audit]:
    audits = await store.run(lambda unit: unit.audit(service_id))
    assert len(audits) == len(set(audits))
    return set(audits)


async def test_a_line_is_the_whole_posting(store: Store) -> None:
    made = posting("-0.10", reason="spent", subject="später \u2028", account=Account.AIRTIME)
    await store.run(methodcaller("post", made))

    (line,) = await page(store, LedgerQuery())

    assert line.posting == made
    assert isinstance(line.posting.account, Account)


async def test_numbers_rise_over_all_services_and_never_change(filled: Store) -> None:
    numbers = [line.number for line in await page(filled, LedgerQuery())]

    assert numbers == sorted(set(numbers), reverse=True)
    assert numbers[-1] > 0
    of_services = [await page(filled, LedgerQuery(service)) for service in (SERVICE, OTHER)]
    assert sorted(line.number for lines in of_services for line in lines) == numbers[::-1]


async def test_filters_choose_and_the_newest_comes_first(filled: Store) -> None:
    for query, expected in (
        (LedgerQuery(), NEWEST_FIRST),
        (LedgerQuery(SERVICE), ["4", "3", "1", "0"]),
        (LedgerQuery(OTHER), ["", "2"]),
        (LedgerQuery(57), []),
        (LedgerQuery(account=Account.PAYOUT), ["4"]),
        (LedgerQuery(account=Account.COLLECTION), []),
        (LedgerQuery(reason="opening"), ["2", "0"]),
        (LedgerQuery(reason="open"), []),
        (LedgerQuery(subject="3"), ["3"]),
        (LedgerQuery(subject=""), [""]),
        (LedgerQuery(OTHER, subject="3"), []),
        (LedgerQuery(SERVICE, Account.SMS, "charge", "1"), ["1"]),
        (LedgerQuery(SERVICE, Account.PAYOUT, "charge", "1"), []),
        (LedgerQuery(limit=2), ["", "4"]),
        (LedgerQuery(reason="opening", limit=1), ["2"]),
    ):
        assert subjects(await page(filled, query)) == expected, query


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


async def test_after_takes_any_number(filled: Store) -> None:
    lines = await page(filled, LedgerQuery())
    newest, oldest = lines[0].number, lines[-1].number
    of_other = lines[3].number

    assert subjects(await page(filled, LedgerQuery(after=newest + 1))) == NEWEST_FIRST
    assert subjects(await page(filled, LedgerQuery(after=2**63 - 1))) == NEWEST_FIRST
    assert subjects(await page(filled, LedgerQuery(after=oldest))) == []
    assert subjects(await page(filled, LedgerQuery(SERVICE, after=of_other))) == ["1", "0"]


async def test_a_new_posting_comes_before_a_page_and_not_into_it(filled: Store) -> None:
    first = await page(filled, LedgerQuery(limit=2))
    await filled.run(methodcaller("post", posting("1", subject="new")))

    following = await page(filled, LedgerQuery(after=first[-1].number, limit=2))

    assert subjects(following) == ["3", "2"]
    assert subjects(await page(filled, LedgerQuery(limit=1))) == ["new"]


async def test_an_audit_has_every_account_of_a_service_or_of_all(filled: Store) -> None:
    of_service = {
        Audit(SERVICE, Account.SMS, Decimal(500), Decimal(500)),
        Audit(SERVICE, Account.PAYOUT, Decimal(7), Decimal(7)),
    }
    of_other = {Audit(OTHER, Account.SMS, Decimal(509), Decimal(509))}

    assert await audit(filled, SERVICE) == of_service
    assert await audit(filled, OTHER) == of_other
    assert await audit(filled, 57) == set()
    assert await audit(filled, None) == of_service | of_other


async def test_page_and_audit_see_what_their_own_unit_posted(store: Store) -> None:
    async def work(unit: Unit) -> None:
        await unit.post(posting("5"))
        assert subjects(await unit.ledger_page(LedgerQuery())) == [""]
        assert list(await unit.audit(None)) == [Audit(SERVICE, Account.SMS, Decimal(5), Decimal(5))]

    await store.run(work)


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
        await store.run(methodcaller("post", posting(amount)))

    (found,) = await audit(store, SERVICE)
    balance = await store.run(lambda unit: unit.balance(SERVICE, Account.SMS))

    exact = Decimal(expected or f"1{'0' * 300}.{'0' * 323}5")
    assert found == Audit(SERVICE, Account.SMS, exact, exact)
    assert balance is not None
    assert (balance.amount, balance.updated_at) == (exact, NOW)
