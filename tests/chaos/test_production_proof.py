"""The proof of a run of production finds each fault."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

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


def a_run() -> Observations:
    """A run without a fault."""
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
    """Add a payment that the network carried out, did not answer and forgot."""
    found = purchase("forgotten", "deposit", "8", *codes, status="000")
    found.settled = settled
    seen.purchases.append(found)
    seen.unanswered, seen.forgotten = [found], [found]
    seen.charges[SERVICE, "forgotten"] = Charges(["202"], "000")
    seen.facts.deliveries.append(delivery("forgotten", "000"))
    seen.books.available[SERVICE, "payout"] += 8
    return found


# What the proof finds for a fault of each kind, and the change that makes the fault.
FAULTS: dict[str, Callable[[Observations], object]] = {
    "failed of service 55 (202, 219) has status 000; the network says 001": (
        lambda seen: setattr(named(seen, "failed"), "status", "000")
    ),
    "is not found, and the network has charged it": (
        lambda seen: seen.charges.update({(SERVICE, "never"): Charges(["202"], "000")})
    ),
    "collect collect": lambda seen: setattr(named(seen, "collect"), "status", None),
    "collect declined of service 55": (
        lambda seen: setattr(named(seen, "declined"), "status", "002")
    ),
    "was forgotten and ended without a person": (
        lambda seen: unanswered(seen, "202", settled=False)
    ),
    "forgotten of service 55 (no answer, 219)": lambda seen: unanswered(seen, None, "219"),
    "deposit deposit": lambda seen: named(seen, "deposit").codes.append("202"),
    "payout cut": lambda seen: setattr(named(seen, "cut"), "status", "002"),
    "(55, 'cut') was charged 2 times": (
        lambda seen: seen.charges[SERVICE, "cut"].codes.append("202")
    ),
    "(55, 'cut') was answered 219 there": (
        lambda seen: seen.charges[SERVICE, "cut"].codes.append("219")
    ),
    "(55, 'stranger') was answered 219 there": (
        lambda seen: seen.charges.update({(SERVICE, "stranger"): Charges(["219"])})
    ),
    "(55, 'stranger') was charged": (
        lambda seen: seen.charges.update({(SERVICE, "stranger"): Charges(["202"], "000")})
    ),
    "payout cut of service 55 (no answer, 219): none was": (
        lambda seen: seen.facts.deliveries.pop()
    ),
    "is not genuine": (
        lambda seen: seen.facts.deliveries.append(delivery("cut", "000", genuine=False))
    ),
    "a callback came for away, which is not there": (
        lambda seen: seen.facts.deliveries.append(delivery("away", "000"))
    ),
    "callback of collect was acknowledged and came again": (
        lambda seen: seen.facts.deliveries.append(delivery("collect", "000"))
    ),
    "GHS sums to 0.01": lambda seen: seen.books.assets.update({"GHS": Decimal("0.01")}),
    "hold H1": lambda seen: seen.books.open_holds.append("H1"),
    "service 55 has 100 in payout, not 99": (
        lambda seen: seen.books.available.update({(SERVICE, "payout"): Decimal(100)})
    ),
    "has status 001; an operator decided 000": (
        lambda seen: setattr(named(seen, "decided"), "status", "001")
    ),
    "adjust a4 (HTTP None) is there 0 times": lambda seen: seen.books.entries.pop(),
    "resolve a2 (HTTP 200) is there 2 times": (
        lambda seen: seen.books.entries.append(seen.books.entries[1])
    ),
    "adjust a5 (HTTP None) is there 2 times": (
        lambda seen: seen.books.entries.extend([entered(5), entered(5)])
    ),
    "close a6 (HTTP 409) is there 1 times": lambda seen: seen.books.entries.append(entered(6)),
    "is of no act": lambda seen: seen.books.entries.append(entered(7)),
    "3 of collect were refunded, and 2.5 were collected": (
        lambda seen: setattr(named(seen, "refund"), "amount", Decimal(3))
    ),
    "has -1": lambda seen: seen.books.available.update({(SERVICE, "payout"): Decimal(-1)}),
    "0 went into suspense for accepted collect decided of service 55 (202), not -6": (
        lambda seen: seen.books.suspended.clear()
    ),
    "6 stand there": lambda seen: setattr(seen.books, "in_suspense", Decimal(6)),
    "closed period 1 has changed": (
        lambda seen: seen.remarks.append("closed period 1 has changed")
    ),
    "3 tokens of collection were given to 1 servers": (
        lambda seen: seen.renewals.append(Renewal(50, 1, {"collection": 3}))
    ),
    "2 that came forged were answered HTTP 500": (
        lambda seen: seen.notified.update({("forged", 500): 2})
    ),
    "server 0 ended by itself": (
        lambda seen: seen.facts.complaints.append("server 0 ended by itself")
    ),
}


def test_every_claim_holds_also_if_a_forgotten_payment_waits_for_an_operator() -> None:
    seen = a_run()
    assert broken(seen) == {}

    unanswered(seen, "202")
    assert broken(seen) == {}


def test_each_fault_is_found_and_each_claim_finds_one() -> None:
    found = set()
    for evidence, change in FAULTS.items():
        change(seen := a_run())

        assert any(evidence in each for each in broken(seen).values()), evidence
        found |= {place for place, claim in enumerate(prove(seen)) if not claim.holds}
    assert found == set(range(len(prove(a_run()))))


def test_a_database_outage_excuses_wrong_answers() -> None:
    seen = a_run()
    seen.database_away = True
    seen.notified["forged", 500] = 2
    named(seen, "away").status = "000"
    seen.charges[SERVICE, "away"] = Charges(["202"], "000")

    assert not [each for each in broken(seen) if "ended as" in each or "acknowledged" in each[:40]]


def test_a_client_may_send_a_refused_payment_again() -> None:
    """A kill cut off the refusal. The gateway does not save it, so the repeat is a new payment."""
    seen = a_run()
    named(seen, "declined").codes[:] = [None, "219"]
    seen.charges[SERVICE, "declined"].codes.append("219")

    assert broken(seen) == {}
