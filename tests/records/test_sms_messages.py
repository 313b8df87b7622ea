"""SMS: the answer of the sandbox to a send, and the states of a message."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.records import messages
from sandbox_sim.records.messages import IllegalSmsTransition, SmsRequest, SmsStatus
from sandbox_sim.sms import sandbox_rules
from sandbox_sim.values.msisdn import Allowlist
from sandbox_sim.values.response_codes import Reply
from tests.records.samples import NOON, message

LATER = NOON + timedelta(milliseconds=800)

ALLOWED = "0244000001"

STRANGER = "0540000001"

LEGAL = {
    (SmsStatus.ACKNOWLEDGED, SmsStatus.SENT),
    (SmsStatus.ACKNOWLEDGED, SmsStatus.REFUNDED),
    (SmsStatus.QUEUED, SmsStatus.SENT),
    (SmsStatus.QUEUED, SmsStatus.FAILED),
    (SmsStatus.FAILED, SmsStatus.REFUNDED),
}


def decide(
    recipients: object,
    *,
    bulk: bool = True,
    msg_body: str = "Hello",
    sender_id: str = "Shop",
    approved: frozenset[str] = frozenset(),
) -> Reply | list[str]:
    request = SmsRequest(55, recipients, msg_body, sender_id, bulk)
    return sandbox_rules.decide(request, Allowlist(), approved)


def code(recipients: object, **fields: Any) -> str:
    """The code of the rejection, or 370 if the send is accepted."""
    decided = decide(recipients, **fields)
    return decided.code if isinstance(decided, Reply) else "370"


@pytest.mark.spec("sandbox.1", "endpoint.9", "endpoint.10")
@pytest.mark.decision("D11", "D24")
@pytest.mark.parametrize("bulk", [False, True])
def test_recipients_are_accepted_in_either_form_and_duplicates_count(bulk: bool) -> None:
    assert decide(["0244000001", "233200000002", "0244000001"], bulk=bulk) == [
        *("233244000001", "233200000002", "233244000001")
    ]


@pytest.mark.spec("endpoint.9", "endpoint.10", "codes", "limits")
@pytest.mark.decision("D24")
@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "370"),
        *(({"sender_id": blank}, "216") for blank in ("", " ", "\t\n")),
        *(({"msg_body": blank}, "371") for blank in ("", " ", "\n \t")),
        # Any sender is approved, unless they are listed.
        ({"approved": frozenset({"Shop"})}, "370"),
        ({"approved": frozenset({"Bank"})}, "216"),
    ],
)
def test_a_send_needs_an_approved_sender_and_a_text(
    fields: dict[str, Any], expected: str, bulk: bool
) -> None:
    assert code([ALLOWED], bulk=bulk, **fields) == expected


@pytest.mark.spec("endpoint.10", "codes")
@pytest.mark.decision("D24")
@pytest.mark.parametrize(
    "recipients",
    [
        pytest.param(None, id="missing"),
        pytest.param([], id="empty"),
        pytest.param("0244000001", id="a string"),
        pytest.param({"0": "0244000001"}, id="an object"),
        pytest.param(244000001, id="a number"),
        pytest.param([244000001], id="an entry that is a number"),
        pytest.param([None], id="an entry that is null"),
        pytest.param([ALLOWED, ["0244000001"]], id="an entry that is an array"),
        pytest.param([ALLOWED, ""], id="an empty entry"),
        pytest.param(["02440000"], id="eight digits"),
        pytest.param(["0244000001000000"], id="sixteen digits"),
        pytest.param(["++233244000001"], id="two pluses"),
        pytest.param(["0244 000001"], id="a space"),
        pytest.param(["0244000001\n"], id="a line break"),
        pytest.param(["024400000\N{ARABIC-INDIC DIGIT ONE}"], id="a digit that is not ASCII"),
        pytest.param(["Ama"], id="a name"),
    ],
)
def test_missing_or_invalid_recipients_are_rejected(recipients: object) -> None:
    assert code(recipients) == "389"


@pytest.mark.spec("endpoint.10", "limits", "codes")
def test_a_bulk_takes_at_most_1000_recipients_and_names_the_index_of_a_bad_one() -> None:
    counts = {1: "370", 1000: "370", 1001: "390"}
    refused = decide([ALLOWED, 244000001])

    assert {count: code([ALLOWED] * count) for count in counts} == counts
    assert isinstance(refused, Reply)
    assert refused.why == "recipients[1] is not a string of 9 to 15 digits"


@pytest.mark.spec("sandbox.1", "codes")
@pytest.mark.decision("D24")
def test_a_number_off_the_allowlist_rejects_the_whole_send_and_is_named() -> None:
    """A bulk needs 9 to 15 digits, with or without a plus; a single send takes any text."""
    digits = ("024400001", "024400000100000")
    valid = (*digits, *(f"+{each}" for each in digits), "+233244000001", STRANGER)
    for bulk, numbers in ((True, valid), (False, (*valid, "233540000001", "Ama", ""))):
        for number in numbers:
            assert code([number], bulk=bulk) == "S002"
    for recipients in ([STRANGER, ALLOWED], [ALLOWED, STRANGER, ALLOWED], [ALLOWED, STRANGER]):
        refused = decide(recipients)
        assert isinstance(refused, Reply)
        assert (refused.code, STRANGER in refused.why) == ("S002", True)


@pytest.mark.spec("endpoint.10")
@pytest.mark.decision("D24")
@pytest.mark.parametrize(
    ("sender_id", "recipients", "msg_body", "code", "rule"),
    [
        ("", [""] + [STRANGER] * 1000, "", "216", "D24"),
        ("Bank", [""] + [STRANGER] * 1000, "", "216", "D24"),
        ("Shop", [], "", "389", "D24"),
        ("Shop", [""] + [STRANGER] * 1000, "", "389", "D24"),
        ("Shop", [STRANGER] * 1001, "", "390", "endpoint.10"),
        ("Shop", [STRANGER] * 1000, "", "S002", "sandbox.1"),
        ("Shop", [ALLOWED] * 1000, "", "371", "D24"),
    ],
)
def test_a_rejection_names_the_rule_of_the_first_of_several_faults(
    sender_id: str, recipients: list[str], msg_body: str, code: str, rule: str
) -> None:
    approved = frozenset({"Shop"})
    refused = decide(recipients, msg_body=msg_body, sender_id=sender_id, approved=approved)

    assert isinstance(refused, Reply)
    assert (refused.code, refused.rule) == (code, rule)


@pytest.mark.decision("D39")
@pytest.mark.parametrize(("bulk", "code"), [(False, "371"), (True, "389")])
def test_production_takes_any_number_of_ghana_and_no_other(bulk: bool, code: str) -> None:
    def live(number: str) -> Reply | list[str]:
        request = SmsRequest(55, [number], "Hello", "Shop", bulk)
        return sandbox_rules.decide_live(request, frozenset())

    refused = live("4400000001")

    assert live("0540000001") == live("233540000001") == ["233540000001"]
    assert isinstance(refused, Reply)
    assert (refused.code, refused.rule) == (code, "D39")


@pytest.mark.spec("states.sms", "endpoint.9")
def test_each_status_has_a_letter_and_a_page_costs_a_unit() -> None:
    assert {status.value: status.code for status in SmsStatus} == {
        "ACKNOWLEDGED": "A",
        "QUEUED": "Q",
        "SENT": "S",
        "FAILED": "F",
        "REFUNDED": "R",
    }
    assert dict(messages.STATUS_NAMES) == {
        name: status for status in SmsStatus for name in (status.value, status.code)
    }
    assert [message(page_count=pages).units_charged for pages in (1, 2, 7)] == [1, 2, 7]


@pytest.mark.spec("states.sms", "sandbox.2")
@pytest.mark.decision("D25")
@pytest.mark.parametrize("digit", "0123456789")
def test_a_message_to_last_digit_9_is_refunded_and_any_other_is_sent(digit: str) -> None:
    settled = message(customer_number=f"23324400000{digit}").settled(LATER)
    ended = (SmsStatus.REFUNDED, None) if digit == "9" else (SmsStatus.SENT, LATER)

    assert (settled.status, settled.sent_at) == ended


@pytest.mark.spec("states.sms")
@given(st.sampled_from(SmsStatus), st.sampled_from(SmsStatus))
def test_an_illegal_transition_raises_and_changes_nothing(status: SmsStatus, to: SmsStatus) -> None:
    before = message(status=status)
    kept = before._replace()

    if (status, to) in LEGAL:
        assert before.with_status(to, LATER).status is to
    else:
        with pytest.raises(IllegalSmsTransition, match=f"P1 is {status} and cannot become {to}"):
            before.with_status(to, LATER)
    assert before == kept
