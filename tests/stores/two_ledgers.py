"""The rows of a file or database of version 12, which had two ledgers, and the migrated ones."""

from collections.abc import Iterator
from datetime import timedelta

from sandbox_sim.ports import Store
from sandbox_sim.records.ledger import LedgerQuery, shown
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet
from tests.sample_records import NOW, account_of, violations
from tests.units import unit_of

VERSION = 12

SANDBOX, LIVE = ServiceMode

T0 = 1767258000000000

PAYOUT, AIRTIME = "service/55/payout", "service/55/airtime"

CLEARING = "network/mtn/clearing/GHS"

# The books of version 12: entries of one transfer each, as (reason, subject, from, to, amount).
ENTRIES = [
    ("deposited", "D1", CLEARING, f"{PAYOUT}/available/GHS", "10000000000000100.00"),
    ("hold", "P1", f"{PAYOUT}/available/GHS", f"{PAYOUT}/held/GHS", "10.50"),
    ("topup", "", "issued/AIRTIME", f"{AIRTIME}/available/AIRTIME", "7"),
    ("hold", "P2", f"{PAYOUT}/available/GHS", f"{PAYOUT}/held/GHS", "0.10"),
    ("commit", "P1", f"{PAYOUT}/held/GHS", CLEARING, "10.50"),
    ("hold", "A1", f"{AIRTIME}/available/AIRTIME", f"{AIRTIME}/held/AIRTIME", "2"),
    ("void", "A1", f"{AIRTIME}/held/AIRTIME", f"{AIRTIME}/available/AIRTIME", "2"),
    ("hold", "P3", f"{PAYOUT}/available/GHS", f"{PAYOUT}/held/GHS", "10000000000000000.01"),
    ("suspended", "C1", CLEARING, "suspense/GHS", "3"),
]

ACCOUNTS = [
    (f"{PAYOUT}/available/GHS", "available", "GHS", 55, "payout", "", "89.39"),
    (f"{PAYOUT}/held/GHS", "held", "GHS", 55, "payout", "", "10000000000000000.11"),
    (f"{AIRTIME}/available/AIRTIME", "available", "AIRTIME", 55, "airtime", "", "7"),
    (f"{AIRTIME}/held/AIRTIME", "held", "AIRTIME", 55, "airtime", "", "0"),
    (CLEARING, "clearing", "GHS", 0, None, "mtn", "-10000000000000092.50"),
    ("issued/AIRTIME", "issued", "AIRTIME", 0, None, "", "-7"),
    ("suspense/GHS", "suspense", "GHS", 0, None, "", "3"),
]

POSTINGS = [
    (55, "sms", "500", "opening", "", T0),
    (55, "sms", "-2", "charge", "M1", T0 + 1),
    (59, "payout", "-0.10", "spent", "S1", T0 + 2),
    (55, "sms", "2", "refund", "M1", T0 + 3),
]


def two_ledgers() -> Iterator[tuple[str, tuple[object, ...]]]:
    """The rows of a file that has both ledgers, and a snapshot of the sandbox one."""
    for number, (reason, subject, source, target, amount) in enumerate(ENTRIES, 1):
        yield "entries", (number, reason, subject, T0 + number)
        yield "legs", (2 * number - 1, number, source, f"-{amount}")
        yield "legs", (2 * number, number, target, amount)
    for account in ACCOUNTS:
        yield "accounts", account
    for number, row in enumerate(POSTINGS, 1):
        yield "postings", (number, *row)
    yield "balances", (55, "sms", "500", T0 + 3)
    yield "balances", (59, "payout", "-0.10", T0 + 2)
    # The attempt of an open payout, which names its network.
    attempt = ("", 55, "P2", 1, "mtn", "mtn", "", "payout", "0.10", "GHS", T0, "pending")
    yield "attempts", (1, *attempt, *(0, 1, 0, 0), *[None] * 4, *[""] * 4, None, *[""] * 5)


async def assert_one_ledger(store: Store) -> None:
    """Every posting, open hold and balance was converted exactly."""
    assert await store.run(violations) == ()
    lines = await unit_of(store).ledger_page(LedgerQuery(mode=LIVE))
    of_s = await unit_of(store).ledger_page(LedgerQuery(mode=SANDBOX))
    balances = await unit_of(store).balances(None, None)
    sums = await unit_of(store).live_sums()
    payout = account_of(55, Wallet.PAYOUT, LIVE)
    opened_ones = [await unit_of(store).open_transfer(payout, each) for each in ("P1", "P2", "P3")]

    assert {str(a): (str(b.available), str(b.pending)) for a, b in balances.items()} == {
        "service/55/sms/SMS": ("500", "0"),
        "service/59/payout/GHS": ("-0.10", "0"),
        "service/55/payout/GHS": ("89.39", "10000000000000000.11"),
        "service/55/airtime/AIRTIME": ("7", "0"),
    }
    assert {str(account): str(amount) for account, amount in sums.items()} == {
        CLEARING: "-10000000000000092.50",
        "issued/AIRTIME": "-7",
        "suspense/GHS": "3",
    }
    assert [each and str(each.transfer.amount) for each in opened_ones] == [
        None,
        "0.10",
        "10000000000000000.01",
    ]
    moved = [each.transfer for each in reversed(lines)]
    assert [(e.kind, e.reason, e.subject, str(e.amount)) for e in moved] == [
        ("posted", "deposited", "D1", "10000000000000100.00"),
        ("pending", "spent", "P1", "10.50"),
        ("posted", "topup", "", "7"),
        ("pending", "spent", "P2", "0.10"),
        ("post", "spent", "P1", "10.50"),
        ("pending", "spent", "A1", "2"),
        ("void", "returned", "A1", "2"),
        ("pending", "spent", "P3", "10000000000000000.01"),
        ("posted", "suspended", "C1", "3"),
    ]
    assert [str(each.credit) for each in moved if each.subject == "P2"] == [CLEARING]
    assert [str(each.credit) for each in moved if each.subject == "A1"] == ["issued/AIRTIME"] * 2
    assert [each.at for each in moved] == [
        NOW + timedelta(microseconds=number) for number in range(1, 10)
    ]
    assert [shown(each.transfer)["amount"] for each in of_s] == ["2", "-0.1", "-2", "500"]
    assert [str(each.transfer.debit) for each in of_s] == [
        *("issued/SMS", "service/59/payout/GHS", "service/55/sms/SMS", "issued/SMS")
    ]
