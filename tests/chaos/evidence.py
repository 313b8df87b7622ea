"""Builders for the facts of a run, and the violations that the proof finds in them."""

from chaos.facts import Asked, Delivery, Facts, Message, Payment, Send, Status
from chaos.proof import prove

SHOP, POOR = 55, 59
GOOD, BAD = "233244000001", "233244000009"

IN_HISTORY = "acknowledged sends are in the history exactly once"
UNKNOWN_SENDS = "sends without an answer are there completely"
STRANGERS = "messages in the history, none twice, none that was never sent"
SETTLED = "every message has settled"
BALANCE = "balance = opening - charged + refunded"
SEEN = "messages seen in histories on the way"
ARRIVED = "accepted payments' callbacks arrived and were acknowledged"
UNKNOWN = "payments without an answer are there with callback"
UNCALLED = "no callback for any"
TRANS_ID = "payments have one trans_id each"
SIGNED = "are signed with the secret key"
STATUSES = "statuses are in the end what the answers promised"
BACK = "never fell behind what was known"
CODES = "answers have a code that the rules allow"
CUT_OFF = "requests without an answer were cut off by a kill"
ACROSS = "came again did so across a kill"
ENDED = "the servers ended only when they were killed"


def asked(at: float, code: str | None, *expected: str, path: str = "/make_payment") -> Asked:
    """A request that took 10 ms; with the code None the connection broke."""
    allowed = frozenset(expected or {code or ""})
    return Asked(0, path, at, at + 0.01, allowed, code, "" if code else "connection lost")


def payment(name: str, at: float, code: str | None, *expected: str) -> Payment:
    return Payment(asked(at, code, *expected), SHOP, name)


def delivery(ref: str, at: float, answered: int = 200, trans_id: str = "") -> Delivery:
    trans_id = trans_id or f"id-{ref}"
    return Delivery(at, ref, trans_id, "000/SUCCESS", genuine=True, answered=answered)


def status(ref: str, at: float, said: str | None) -> Status:
    code = "000" if said else "027"
    one = asked(at, code, "000", "027", path="/get_transaction_status")
    return Status(one, ref, said, f"id-{ref}" if said else None)


def send(text: str, at: float, code: str | None, *to: str, reference: str | None = None) -> Send:
    one = asked(at, code, "370", "237", path="/sms/send")
    return Send(one, SHOP, text, to, len(to) > 1, 1, reference)


def message(pid: str, text: str, to: str, batch_id: str | None = None) -> Message:
    return Message(pid, batch_id, to, text, "REFUNDED" if to.endswith("9") else "SENT", 1)


def history(facts: Facts) -> list[Message]:
    """The final history of the shop."""
    return facts.final.histories[SHOP][0]


def keep_history(facts: Facts, *messages: Message) -> None:
    """Replace the final history of the shop; its total and the balance agree with it."""
    facts.final.histories[SHOP] = (list(messages), len(messages))
    charged = sum(message.units for message in messages if message.status != "REFUNDED")
    facts.final.balances[SHOP] = 500 - charged


def against(facts: Facts, *claims: str) -> str:
    """All violations, one a line. Asserts that these claims fail and no others."""
    broken = [claim for claim in prove(facts) if not claim.holds]
    assert len(broken) == len(claims), broken
    for claim in claims:
        assert any(claim in one.sentence for one in broken), (claim, broken)
    return "\n".join(violation for one in broken for violation in one.violations)
