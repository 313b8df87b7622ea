"""Every answer names the rule that decided, so that a reader finds it in the interface."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.domain.msisdn import Allowlist
from sandbox_sim.domain.payments.payment_rules import Facts, Outcome, Sandbox, decide
from sandbox_sim.domain.sms import sms_messages
from sandbox_sim.domain.sms.sms_messages import SmsRequest
from sandbox_sim.domain.vocabulary import Operation
from tests.domain.samples import PAYMENTS, payment

MOBILE = (Operation.COLLECT, Operation.DEPOSIT, Operation.AIRTIME, Operation.PAYOUT)
STRICT = Sandbox(reject_duplicates=True)
HIGH = Decimal("10000.01")


def rule(operation: Operation, facts: Facts | None = None, **fields: Any) -> str:
    return decide(payment(operation, **fields), STRICT, facts or Facts()).rule


@pytest.mark.parametrize(
    ("operation", "named"),
    [
        (Operation.COLLECT, "sandbox.3"),
        (Operation.DEPOSIT, "sandbox.3"),
        (Operation.AIRTIME, "sandbox.3"),
        (Operation.PAYOUT, "sandbox.5"),
        (Operation.CARD, "sandbox.6"),
        (Operation.BILL, "sandbox.7"),
    ],
)
def test_a_success(operation: Operation, named: str) -> None:
    assert rule(operation) == named


@pytest.mark.spec("sandbox.1", "sandbox.3")
@pytest.mark.decision("D11")
@pytest.mark.parametrize("operation", MOBILE)
def test_a_mobile_number(operation: Operation) -> None:
    assert rule(operation, party="0540000001") == "sandbox.1"
    assert rule(operation, party="233244000001") == "D11"
    assert rule(operation, party="0244000009") == "sandbox.3"


@pytest.mark.decision("D11")
def test_a_network_that_has_to_match_the_prefix() -> None:
    matching = Sandbox(allowlist=Allowlist(match_network=True))

    assert decide(payment(nw="VOD"), matching, Facts()).rule == "D11"


@pytest.mark.spec("sandbox.7")
def test_a_bill_account() -> None:
    assert rule(Operation.BILL, party="100000000001") == "sandbox.7"
    assert rule(Operation.BILL, party="200000000009") == "sandbox.7"


@pytest.mark.spec("sandbox.6")
@pytest.mark.decision("D20")
def test_a_card() -> None:
    assert rule(Operation.CARD, party="4000000000000002") == "sandbox.6"
    assert rule(Operation.CARD, nw="MAS") == "D20"


@pytest.mark.spec("sandbox.3")
@pytest.mark.decision("D12")
@pytest.mark.parametrize(
    ("operation", "named"),
    [
        (Operation.COLLECT, "sandbox.3"),
        (Operation.AIRTIME, "sandbox.3"),
        (Operation.BILL, "sandbox.3"),
        (Operation.CARD, "D12"),
    ],
)
def test_the_cap(operation: Operation, named: str) -> None:
    assert rule(operation, amount=HIGH) == named


@pytest.mark.decision("D13")
def test_a_payout() -> None:
    assert rule(Operation.PAYOUT, Facts(available=Decimal(10))) == "D13"
    assert rule(Operation.PAYOUT, payment_mode="BNK", nw="ECO") == "D13"


@pytest.mark.decision("D13")
@pytest.mark.parametrize(
    ("option", "nw", "word", "other"),
    [("BNK", "ECO", "bank", "card"), ("CRD", "VIS", "card", "bank")],
)
def test_an_unavailable_payout_says_to_what(option: str, nw: str, word: str, other: str) -> None:
    why = decide(payment(Operation.PAYOUT, payment_mode=option, nw=nw), STRICT, Facts()).why

    assert word in why
    assert other not in why


@pytest.mark.decision("D14")
@pytest.mark.parametrize("operation", PAYMENTS)
def test_a_duplicate(operation: Operation) -> None:
    assert rule(operation, Facts(repeated=True)) == "D14"


@pytest.mark.decision("D11")
def test_a_number_that_is_not_allowed_hears_what_would_be() -> None:
    why = decide(payment(party="0540000001"), STRICT, Facts()).why

    assert all(prefix in why for prefix in ("0244", "0200", "0270"))


@pytest.mark.decision("D24")
@pytest.mark.parametrize(
    ("recipients", "sender_id", "msg_body", "named"),
    [
        (["0244000001"], "", "Hello", "D24"),
        (["0244000001"], "Bank", "Hello", "D24"),
        ([], "Shop", "Hello", "D24"),
        (["Ama"], "Shop", "Hello", "D24"),
        (["0244000001"] * 1001, "Shop", "Hello", "endpoint.10"),
        (["0540000001"], "Shop", "Hello", "sandbox.1"),
        (["0244000001"], "Shop", " ", "D24"),
    ],
)
def test_an_sms(recipients: list[str], sender_id: str, msg_body: str, named: str) -> None:
    request = SmsRequest(55, recipients, msg_body, sender_id, bulk=True)
    outcome = sms_messages.decide(request, Allowlist(), frozenset({"Shop"}))

    assert isinstance(outcome, Outcome)
    assert outcome.rule == named


@given(
    st.sampled_from(PAYMENTS),
    st.one_of(st.text(max_size=16), st.from_regex(r"\A(0244|0200|0270|2330)[0-9]{6}\Z")),
    st.decimals("0.01", 20000, places=2),
    st.booleans(),
)
def test_every_answer_is_one_of_six_codes_with_a_rule_and_a_reason(
    operation: Operation, party: str, amount: Decimal, repeated: bool
) -> None:
    outcome = decide(
        payment(operation, party=party, amount=amount), STRICT, Facts(repeated=repeated)
    )

    assert outcome.code in {"000", "202", "015", "016", "019", "219"}
    assert outcome.rule.startswith(("sandbox.", "D"))
    assert outcome.why
