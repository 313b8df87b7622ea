"""The proof of a run of production finds each fault."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from chaos.facts import Delivery
from chaos.production.observations import (
    Act,
    Books,
    Charges,
    Entry,
    Observations,
    Purchase,
    Renewal,
)
from chaos.production.proof import prove

SERVICE = 55


def purchase(
    name: str, operation: str, amount: str, *codes: str | None, status: str | None = None
) -> Purchase:
    return Purchase(SERVICE, name, operation, Decimal(amount), list(codes), status)


def entered(number: int, **fields: Any) -> Entry:
    """What the books have of the act with this number."""
    return Entry("ama", f"a{number}")._replace(service_id=SERVICE, **fields)


def delivery(ref: str, status: str, *, genuine: bool = True, answered: int = 200) -> Delivery:
    return Delivery(1.0, ref, f"id-{ref}", f"{status}/WORD", genuine, answered)


@pytest.fixture
def seen() -> Observations:
    """A run without a fault, which each test changes."""
    cut = purchase("cut", "payout", "1", None, "219", status="000")
    seen = Observations(
        purchases=[
            purchase("deposit", "deposit", "100", "202", status="000"),
            purchase("collect", "collect", "2.5", "500", "202", status="000"),
            purchase("failed", "payout", "7", "202", "219", status="001"),
            purchase("declined", "collect", "3", "015"),
            purchase("away", "collect", "4", "500"),
            purchase("never", "collect", "5", None, "500"),
            cut,
            purchase("decided", "collect", "6", "202", status="000"),
            Purchase(SERVICE, "refund", "refund", Decimal(1), ["202"], "000", refund_of="collect"),
        ],
        charges={
            (SERVICE, "deposit"): Charges(["202"], "000"),
            (SERVICE, "collect"): Charges(["202"], "000"),
            (SERVICE, "failed"): Charges(["202"], "001"),
            (SERVICE, "declined"): Charges(["015"], "001"),
            (SERVICE, "cut"): Charges(["202"], "000"),
            (SERVICE, "decided"): Charges(["202"], "001"),
            (SERVICE, "refund"): Charges(["202"], "000"),
        },
        books=Books(
            assets={"GHS": Decimal(0)},
            held={SERVICE: Decimal(0)},
            available={(SERVICE, "payout"): Decimal(99), (SERVICE, "collection"): Decimal(3)},
            entries=[
                entered(1, transaction_id="decided", status="000"),
                entered(2, wallet="collection", amount=Decimal(-6)),  # the network said 001 later
                entered(3, transaction_id="refund"),
                entered(4, wallet="collection", amount=Decimal("1.5")),
            ],
            suspended={"decided": Decimal(-6)},
            collected={"collect": Decimal("2.5"), "decided": Decimal(6)},
        ),
        between=[cut],
        acts=[
            *(Act("a1", "settle", 200), Act("a2", "resolve", 200), Act("a3", "refund", 200)),
            *(Act("a4", "adjust", found=True), Act("a5", "adjust"), Act("a6", "close", 409)),
        ],
    )
    seen.note_decisions()
    seen.facts.deliveries += [
        delivery("deposit", "000", answered=500),
        delivery("deposit", "000"),
        delivery("collect", "000"),
        delivery("failed", "001"),
        delivery("decided", "000"),
        delivery("cut", "000"),
    ]
    return seen


def broken(seen: Observations) -> dict[str, str]:
    """The claims that do not hold, each with its first piece of evidence."""
    return {each.sentence: each.violations[0] for each in prove(seen) if not each.holds}


def named(seen: Observations, name: str) -> Purchase:
    (found,) = (each for each in seen.purchases if each.transaction_id == name)
    return found


def unanswered(seen: Observations, *codes: str | None, settled: bool = True) -> Purchase:
    """One more payment, which the network took, never answered and forgot."""
    found = purchase("forgotten", "deposit", "8", *codes, status="000")
    found.settled = settled
    seen.purchases.append(found)
    seen.unanswered, seen.forgotten = [found], [found]
    seen.charges[SERVICE, "forgotten"] = Charges(["202"], "000")
    seen.facts.deliveries.append(delivery("forgotten", "000"))
    seen.books.available[SERVICE, "payout"] += 8
    return found


# A fault of each kind, the claim against it, and its evidence.
FAULTS: list[tuple[str, str, Callable[[Observations], object]]] = [
    (
        "payments ended as the network says",
        "failed of service 55 (202, 219) has status 000; the network says 001",
        lambda seen: setattr(named(seen, "failed"), "status", "000"),
    ),
    (
        "payments ended as the network says",
        "is not found, and the network has charged it",
        lambda seen: seen.charges.update({(SERVICE, "never"): Charges(["202"], "000")}),
    ),
    (
        "that were answered 202 are there",
        "collect collect",
        lambda seen: setattr(named(seen, "collect"), "status", None),
    ),
    (
        "nothing is kept of",
        "collect declined of service 55",
        lambda seen: setattr(named(seen, "declined"), "status", "002"),
    ),
    (
        "waited for a person",
        "was forgotten and ended without a person",
        lambda seen: unanswered(seen, "202", settled=False),
    ),
    (
        "never answered were answered 202",
        "forgotten of service 55 (no answer, 219)",
        lambda seen: unanswered(seen, None, "219"),
    ),
    (
        "no payment was accepted twice",
        "deposit deposit",
        lambda seen: named(seen, "deposit").codes.append("202"),
    ),
    (
        "killed between submit and record",
        "payout cut",
        lambda seen: setattr(named(seen, "cut"), "status", "002"),
    ),
    (
        "were charged at the network once each",
        "(55, 'cut') was charged 2 times",
        lambda seen: seen.charges[SERVICE, "cut"].codes.append("202"),
    ),
    (
        "no payment that the network charged was sent to it again",
        "(55, 'cut') was answered 219 there",
        lambda seen: seen.charges[SERVICE, "cut"].codes.append("219"),
    ),
    (
        "refused were sent to it again by their client",
        "(55, 'stranger') was answered 219 there",
        lambda seen: seen.charges.update({(SERVICE, "stranger"): Charges(["219"])}),
    ),
    (
        "charged for nothing that no client sent",
        "(55, 'stranger') was charged",
        lambda seen: seen.charges.update({(SERVICE, "stranger"): Charges(["202"], "000")}),
    ),
    (
        "callbacks arrived and were acknowledged",
        "payout cut of service 55 (no answer, 219): none was",
        lambda seen: seen.facts.deliveries.pop(),
    ),
    (
        "deliveries are signed",
        "is not genuine",
        lambda seen: seen.facts.deliveries.append(delivery("cut", "000", genuine=False)),
    ),
    (
        "deliveries are signed",
        "a callback came for away, which is not there",
        lambda seen: seen.facts.deliveries.append(delivery("away", "000")),
    ),
    (
        "came again did so across a kill",
        "callback of collect was acknowledged and came again",
        lambda seen: seen.facts.deliveries.append(delivery("collect", "000")),
    ),
    (
        "every asset sums to zero",
        "GHS sums to 0.01",
        lambda seen: seen.books.assets.update({"GHS": Decimal("0.01")}),
    ),
    ("nothing is held any more", "hold H1", lambda seen: seen.books.open_holds.append("H1")),
    (
        "balances are what the network carried out",
        "service 55 has 100 in payout, not 99",
        lambda seen: seen.books.available.update({(SERVICE, "payout"): Decimal(100)}),
    ),
    (
        "or as an operator decided",
        "has status 001; an operator decided 000",
        lambda seen: setattr(named(seen, "decided"), "status", "001"),
    ),
    (
        "acts of operators are in the books once each",
        "adjust a4 (HTTP None) is there 0 times",
        lambda seen: seen.books.entries.pop(),
    ),
    (
        "acts of operators are in the books once each",
        "resolve a2 (HTTP 200) is there 2 times",
        lambda seen: seen.books.entries.append(seen.books.entries[1]),
    ),
    (
        "acts whose answer was lost are there once",
        "adjust a5 (HTTP None) is there 2 times",
        lambda seen: seen.books.entries.extend([entered(5), entered(5)]),
    ),
    (
        "acts that were refused",
        "close a6 (HTTP 409) is there 1 times",
        lambda seen: seen.books.entries.append(entered(6)),
    ),
    (
        "say who and why",
        "is of no act",
        lambda seen: seen.books.entries.append(entered(7)),
    ),
    (
        "come to at most what was collected",
        "3 of collect were refunded, and 2.5 were collected",
        lambda seen: setattr(named(seen, "refund"), "amount", Decimal(3)),
    ),
    (
        "is below zero",
        "has -1",
        lambda seen: seen.books.available.update({(SERVICE, "payout"): Decimal(-1)}),
    ),
    (
        "suspense got what the network said",
        "0 went into suspense for accepted collect decided of service 55 (202), not -6",
        lambda seen: seen.books.suspended.clear(),
    ),
    (
        "suspense is empty",
        "6 stand there",
        lambda seen: setattr(seen.books, "in_suspense", Decimal(6)),
    ),
    (
        "statements that never change",
        "closed period 1 has changed",
        lambda seen: seen.remarks.append("closed period 1 has changed"),
    ),
    (
        "one new token for each server and product",
        "3 tokens of collection were given to 1 servers",
        lambda seen: seen.renewals.append(Renewal(50, 1, {"collection": 3})),
    ),
    (
        "callbacks of the network were acknowledged",
        "2 that came forged were answered HTTP 500",
        lambda seen: seen.notified.update({("forged", 500): 2}),
    ),
    (
        "the servers ended only when they were killed",
        "server 0 ended by itself",
        lambda seen: seen.facts.complaints.append("server 0 ended by itself"),
    ),
]


def test_a_run_without_a_fault_is_proven(seen: Observations) -> None:
    assert broken(seen) == {}


@pytest.mark.parametrize(("claim", "evidence", "change"), FAULTS, ids=[each[1] for each in FAULTS])
def test_each_fault_is_found(
    seen: Observations, claim: str, evidence: str, change: Callable[[Observations], object]
) -> None:
    change(seen)

    (found,) = (text for sentence, text in broken(seen).items() if claim in sentence)
    assert evidence in found


def test_a_forgotten_payment_waits_for_a_person(seen: Observations) -> None:
    unanswered(seen, "202")

    assert broken(seen) == {}


def test_a_fault_says_nothing_where_the_database_was_away(seen: Observations) -> None:
    seen.database_away = True
    seen.notified["forged", 500] = 2
    named(seen, "away").status = "000"
    seen.charges[SERVICE, "away"] = Charges(["202"], "000")

    assert not [each for each in broken(seen) if "ended as" in each or "acknowledged" in each[:40]]


def test_a_client_may_send_a_refused_payment_again(seen: Observations) -> None:
    """A kill cut off the refusal, of which our gateway keeps nothing: the repeat is a new one."""
    named(seen, "declined").codes[:] = [None, "219"]
    seen.charges[SERVICE, "declined"].codes.append("219")

    assert broken(seen) == {}
