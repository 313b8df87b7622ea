"""SMS: what the sandbox answers to a send, and the life of a message."""

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
def test_recipients_are_taken_in_either_form_and_each_counts(bulk: bool) -> None:
    assert decide(["0244000001", "233200000002", "0244000001"], bulk=bulk) == [
        *("233244000001", "233200000002", "233244000001"),
    ]


@pytest.mark.spec("endpoint.9", "endpoint.10", "codes")
@pytest.mark.decision("D24")
@pytest.mark.parametrize("sender_id", ["", " ", "\t\n"])
@pytest.mark.parametrize("bulk", [False, True])
def test_a_blank_sender_is_missing(sender_id: str, bulk: bool) -> None:
    assert code([ALLOWED], sender_id=sender_id, bulk=bulk) == "216"


@pytest.mark.decision("D24")
@pytest.mark.parametrize(
    ("approved", "expected"),
    [(frozenset[str](), "370"), (frozenset({"Shop"}), "370"), (frozenset({"Bank"}), "216")],
)
def test_any_sender_is_approved_unless_they_are_listed(
    approved: frozenset[str], expected: str
) -> None:
    assert code([ALLOWED], approved=approved) == expected


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
def test_recipients_that_are_missing_or_invalid(recipients: object) -> None:
    assert code(recipients) == "389"


@pytest.mark.decision("D24")
@pytest.mark.parametrize(
    "number", ["024400001", "024400000100000", "+024400001", "+024400000100000", "+233244000001"]
)
def test_nine_to_fifteen_digits_with_or_without_a_plus_are_valid_and_not_allowed(
    number: str,
) -> None:
    assert code([number]) == "S002"


@pytest.mark.spec("endpoint.10", "limits", "codes")
@pytest.mark.parametrize(("count", "expected"), [(1, "370"), (1000, "370"), (1001, "390")])
def test_a_bulk_takes_at_most_1000_recipients(count: int, expected: str) -> None:
    assert code([ALLOWED] * count) == expected


@pytest.mark.spec("sandbox.1", "codes")
@pytest.mark.decision("D24")
@pytest.mark.parametrize("number", [STRANGER, "233540000001", "+233244000001", "Ama", ""])
def test_a_number_off_the_allowlist(number: str) -> None:
    assert code([number], bulk=False) == "S002"


@pytest.mark.decision("D24")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_stranger_rejects_the_whole_bulk_and_is_named(place: int) -> None:
    recipients = [ALLOWED, ALLOWED]
    recipients.insert(place, STRANGER)
    outcome = decide(recipients)

    assert isinstance(outcome, Reply)
    assert outcome.code == "S002"
    assert STRANGER in outcome.why


@pytest.mark.spec("codes")
@pytest.mark.decision("D24")
@pytest.mark.parametrize("msg_body", ["", " ", "\n \t"])
@pytest.mark.parametrize("bulk", [False, True])
def test_a_blank_text_cannot_be_processed(msg_body: str, bulk: bool) -> None:
    assert code([ALLOWED], msg_body=msg_body, bulk=bulk) == "371"


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
def test_of_several_faults_the_first_in_order_is_named_with_its_rule(
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


def test_a_recipient_that_is_no_text_is_named_by_its_place() -> None:
    refused = decide([ALLOWED, 244000001])

    assert isinstance(refused, Reply)
    assert refused.why == "recipients[1] is not a string of 9 to 15 digits"


@pytest.mark.spec("states.sms")
def test_each_status_has_a_letter_and_is_found_by_both() -> None:
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


@pytest.mark.spec("states.sms", "sandbox.2")
@pytest.mark.decision("D25")
@pytest.mark.parametrize("digit", "0123456789")
def test_last_digit_9_is_refunded_and_any_other_is_sent(digit: str) -> None:
    settled = message(customer_number=f"23324400000{digit}").settled(LATER)
    ended = (SmsStatus.REFUNDED, None) if digit == "9" else (SmsStatus.SENT, LATER)

    assert (settled.status, settled.sent_at) == ended


@pytest.mark.spec("states.sms")
@given(st.sampled_from(SmsStatus), st.sampled_from(SmsStatus))
def test_an_illegal_transition_raises_and_changes_nothing(status: SmsStatus, to: SmsStatus) -> None:
    before = message(status=status)
    kept = before._replace()

    if (status, to) in LEGAL:
        assert before.moved(to, LATER).status is to
    else:
        with pytest.raises(IllegalSmsTransition, match=f"P1 is {status} and cannot become {to}"):
            before.moved(to, LATER)
    assert before == kept


@pytest.mark.spec("endpoint.9")
@pytest.mark.parametrize("pages", [1, 2, 7])
def test_a_unit_a_page(pages: int) -> None:
    assert message(page_count=pages).units_charged == pages
