"""The proof of the crash test finds each fault, and no other claim fails with it."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from random import Random

from chaos.facts import (
    EVERY_SERVER,
    Asked,
    Delivery,
    Facts,
    Final,
    History,
    Message,
    Outage,
    Payment,
    Send,
    Status,
)
from chaos.mixed_load import Shop
from chaos.proof import prove
from chaos.report import lines_of
from chaos.request_drafts import PaymentDraft, SendDraft
from sandbox_sim.values.redaction import redact_text

SHOP, POOR = 55, 59
GOOD, BAD = "233244000001", "233244000009"


def asked(at: float, code: str | None, *expected: str, path: str = "/make_payment") -> Asked:
    """A request that took 10 ms; with the code None the connection broke."""
    allowed = frozenset(expected or {code or ""})
    return Asked(0, path, at, at + 0.01, allowed, code, "" if code else "connection lost")


def payment(name: str, at: float, code: str | None, *expected: str) -> Payment:
    return Payment(asked(at, code, *expected), SHOP, name)


def delivery(ref: str, at: float, answered: int = 200, trans_id: str = "") -> Delivery:
    trans_id = trans_id or f"id-{ref}"
    return Delivery(at, ref, trans_id, "000/SUCCESS", genuine=True, answered=answered)


def status(ref: str, at: float, code: str | None) -> Status:
    one = asked(at, "000" if code else "027", "000", "027", path="/get_transaction_status")
    return Status(one, ref, code, f"id-{ref}" if code else None)


def send(text: str, at: float, code: str | None, *to: str, reference: str | None = None) -> Send:
    one = asked(at, code, "370", "237", path="/sms/send")
    return Send(one, SHOP, text, to, len(to) > 1, 1, reference)


def message(pid: str, text: str, to: str, batch_id: str | None = None) -> Message:
    return Message(pid, batch_id, to, text, "REFUNDED" if to.endswith("9") else "SENT", 1)


MESSAGES = [
    message("m1", "one", GOOD),
    message("m2", "many", GOOD, "b1"),
    message("m3", "many", BAD, "b1"),
    message("m4", "cut, there", GOOD, "b2"),
    message("m5", "cut, there", GOOD, "b2"),
]
STATUSES = {
    "paid": "000",
    "card": "000",
    "declined": "001",
    "stranger": None,
    "over": None,
    "cut-there": "000",
    "cut-gone": None,
    "cut-declined": "001",
}


def a_run() -> Facts:
    """A run without a fault: one kill at 2.0, the ready line at 2.5, the final state at 10.0."""
    return Facts(
        payments=[
            payment("paid", 1.0, "202"),
            payment("card", 1.0, "000"),
            payment("declined", 1.0, "015"),
            payment("stranger", 1.0, "019"),
            payment("over", 1.0, "016"),
            payment("cut-there", 2.0, None, "202"),
            payment("cut-gone", 2.0, None, "202"),
            payment("cut-declined", 2.0, None, "015"),
        ],
        sends=[
            send("one", 1.0, "370", GOOD, reference="m1"),
            send("many", 1.0, "370", GOOD, BAD, reference="b1"),
            send("no units", 1.0, "237", GOOD),
            send("cut, gone", 2.0, None, GOOD),
            send("cut, there", 2.0, None, GOOD, GOOD),
        ],
        statuses=[status("paid", 1.1, "002"), status("paid", 3.0, "000")],
        histories=[History(asked(3.0, "393"), SHOP, (message("m2", "many", GOOD, "b1"),))],
        deliveries=[
            delivery("paid", 1.5, answered=500),
            delivery("paid", 1.99),
            delivery("paid", 2.6),  # the server was killed before it could save the delivery
            delivery("card", 1.6),
            delivery("cut-there", 2.7),
        ],
        outages=[Outage(0, 2.0, 2.5)],
        final=Final(
            histories={SHOP: ([*MESSAGES], len(MESSAGES)), POOR: ([], 0)},
            balances={SHOP: 496, POOR: 0},
            statuses={ref: status(ref, 10.0, code) for ref, code in STATUSES.items()},
        ),
    )


def keep(facts: Facts, *messages: Message) -> None:
    """Replace the final history of the shop; its total and the balance agree with it."""
    facts.final.histories[SHOP] = (list(messages), len(messages))
    charged = sum(message.units for message in messages if message.status != "REFUNDED")
    facts.final.balances[SHOP] = 500 - charged


def end(facts: Facts, ref: str, code: str | None) -> None:
    facts.final.statuses[ref] = status(ref, 10.0, code)


# What the proof finds for a fault of each kind, and the change that makes the fault.
FAULTS: dict[str, Callable[[Facts], object]] = {
    "lost: send m1 of service 55 was acknowledged": lambda facts: keep(facts, *MESSAGES[1:]),
    f"has 2 of 1 messages to {GOOD}: m1, m9": (
        lambda facts: keep(facts, *MESSAGES, message("m9", "one", GOOD))
    ),
    "has 1 of 2 messages": lambda facts: keep(facts, *MESSAGES[:-1]),
    "m9 of service 55 was never sent": (
        lambda facts: keep(facts, *MESSAGES, message("m9", "unsent", GOOD))
    ),
    f"m5 to {GOOD} is ACKNOWLEDGED": (
        lambda facts: keep(facts, *MESSAGES[:-1], replace(MESSAGES[-1], status="ACKNOWLEDGED"))
    ),
    "service 55 has 497 units, and 500 - 5 + 1 = 496": (
        lambda facts: facts.final.balances.update({SHOP: 497})
    ),
    "m8 was seen in the history and is gone": (
        lambda facts: facts.histories.append(
            History(asked(3.0, "393"), SHOP, (message("m8", "one", GOOD),))
        )
    ),
    "payment card of service 55 was accepted and its callback never arrived": (
        lambda facts: facts.deliveries.pop(3)
    ),
    "cut-there of service 55 has status 000 and its": lambda facts: facts.deliveries.pop(4),
    "a callback came for payment declined of service 55, which was answered 015": (
        lambda facts: facts.deliveries.append(delivery("declined", 1.2))
    ),
    "callbacks of paid came with the trans_ids id-paid, another": (
        lambda facts: facts.deliveries.append(delivery("paid", 2.1, trans_id="another"))
    ),
    "cut-there: 000/SUCCESS, not genuine": (
        lambda facts: facts.deliveries.append(replace(facts.deliveries.pop(), genuine=False))
    ),
    "over of service 55 has status 000, not not found": lambda facts: end(facts, "over", "000"),
    "paid was not found when asked 190 ms after": (
        lambda facts: facts.statuses.append(status("paid", 1.2, None))
    ),
    "/sms/balance was answered 400, not 388": (
        lambda facts: facts.queries.append(asked(5.0, "400", "388", path="/sms/balance"))
    ),
    "to server 1 had no answer": (
        lambda facts: facts.queries.append(replace(asked(2.1, None, "388"), server=1))
    ),
    "callback of card was acknowledged and came again 200 ms later": (
        lambda facts: facts.deliveries.append(delivery("card", 1.8))
    ),
    "server 0 ended by itself": lambda facts: facts.complaints.append("server 0 ended by itself"),
}


def test_every_claim_holds_for_a_run_without_a_fault() -> None:
    lines = list(lines_of(prove(a_run())))

    assert lines[0] == "ok    2 acknowledged sends are in the history exactly once"
    assert all(line.startswith("ok    ") for line in lines)


def test_each_fault_is_found_and_each_claim_finds_one() -> None:
    found = set()
    for evidence, change in FAULTS.items():
        change(facts := a_run())

        claims = prove(facts)
        (broken,) = (each for each in claims if not each.holds)
        assert evidence in broken.violations[0]
        assert any(line.startswith("FAIL  ") for line in lines_of([broken]))
        found.add(claims.index(broken))
    assert found == set(range(len(prove(a_run()))))


def test_a_database_outage_and_the_15_minute_expiry_explain_missing_answers() -> None:
    facts = a_run()
    facts.queries.append(replace(asked(5.0, "500", "388"), server=1))
    facts.outages.append(Outage(EVERY_SERVER, 4.9, 5.5))
    facts.final.statuses["card"] = status("card", 15 * 60.0, None)

    assert all(each.holds for each in prove(facts))


def test_a_name_of_the_load_never_looks_like_a_card_number() -> None:
    # A run with this service and this second had names that were card numbers.
    shop = Shop(Random(1), "http://127.0.0.1:9/", count(5347609000), "815420-t6b02d499")
    drafts = [shop.next() for _ in range(2_000)]
    names = [draft.transaction_id for draft in drafts if isinstance(draft, PaymentDraft)]
    names += [draft.body["msg_body"] for draft in drafts if isinstance(draft, SendDraft)]
    assert len(names) > 1_000
    assert [name for name in names if redact_text(name) != name] == []
