"""The answers of the sandbox to a payment, their rules, and the order of the rules (D9)."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.operations import Operation
from sandbox_sim.payments.sandbox_rules import Facts, card_refusal, decide
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.values.response_codes import Reply
from tests.records.samples import PAYMENTS, payment

MOBILE = (Operation.COLLECT, Operation.DEPOSIT, Operation.PAYOUT, Operation.AIRTIME)
CAPPED = (Operation.COLLECT, Operation.CARD, Operation.BILL, Operation.AIRTIME)

# The rule of an accepted payment.
OWN_RULE = {
    **dict.fromkeys((Operation.COLLECT, Operation.DEPOSIT, Operation.AIRTIME), "sandbox.3"),
    Operation.PAYOUT: "sandbox.5",
    Operation.CARD: "sandbox.6",
    Operation.BILL: "sandbox.7",
}

SANDBOX = Behaviour()
STRICT = Behaviour(duplicates="reject")
INTERNATIONAL = Behaviour(accept_international=True)


def answer(
    operation: Operation = Operation.COLLECT,
    behaviour: Behaviour = SANDBOX,
    *,
    repeated: bool = False,
    available: int | None = None,
    **fields: Any,
) -> Reply:
    facts = Facts(repeated, None if available is None else Decimal(available))
    if "amount" in fields:
        fields["amount"] = Decimal(fields["amount"])
    return decide(payment(operation, **fields), behaviour, facts)


@pytest.mark.spec("sandbox.3", "sandbox.5", "sandbox.6", "sandbox.7")
@pytest.mark.decision("D8")
@pytest.mark.parametrize("operation", PAYMENTS)
def test_a_valid_payment_is_202_and_a_valid_card_payment_is_000(operation: Operation) -> None:
    code, message = ("000", "Successful") if operation is Operation.CARD else ("202", None)

    taken = answer(operation)

    assert (taken.code, taken.message, taken.rule) == (code, message, OWN_RULE[operation])


@pytest.mark.spec("sandbox.1", "sandbox.2", "sandbox.3")
@pytest.mark.decision("D11")
@pytest.mark.parametrize("operation", MOBILE)
@pytest.mark.parametrize(
    ("number", "code", "rule", "by_setting"),
    [
        *((f"024400000{digit}", "202", None, "202") for digit in "012345678"),
        ("0244000009", "015", "sandbox.3", "015"),
        ("0240000000", "019", "sandbox.1", "019"),
        ("0540010000", "019", "sandbox.1", "019"),
        ("0540010009", "019", "sandbox.1", "019"),
        ("200000000001", "019", "sandbox.1", "019"),
        ("233244000001", "019", "D11", "202"),
        ("233244000009", "019", "D11", "015"),
        ("233540000001", "019", "sandbox.1", "019"),
        ("+233244000001", "019", "D11", "202"),
    ],
)
def test_the_number_decides_and_the_233_form_is_taken_by_setting(
    operation: Operation, number: str, code: str, rule: str | None, by_setting: str
) -> None:
    decided = answer(operation, party=number)

    assert (decided.code, decided.rule) == (code, rule or OWN_RULE[operation])
    assert answer(operation, INTERNATIONAL, party=number).code == by_setting
    if decided.rule == "sandbox.1":
        assert all(prefix in decided.why for prefix in ("0244", "0200", "0270"))


@pytest.mark.decision("D11")
@pytest.mark.parametrize("operation", MOBILE)
def test_the_network_must_match_the_prefix_only_with_the_setting(operation: Operation) -> None:
    matching = Behaviour(match_network=True)
    refused = answer(operation, matching, nw="VOD")

    assert (refused.code, refused.rule) == ("019", "D11")
    assert answer(operation, nw="VOD").code == answer(operation, matching).code == "202"


@pytest.mark.spec("sandbox.2", "sandbox.7")
@pytest.mark.decision("D19")
@pytest.mark.parametrize(
    ("account", "code"),
    [
        *((f"20000000000{digit}", "202") for digit in "012345678"),
        *(("200000000009", "015"), ("100000000001", "019")),
    ],
)
def test_the_account_of_a_bill_decides(account: str, code: str) -> None:
    decided = answer(Operation.BILL, party=account)

    assert (decided.code, decided.rule) == (code, "sandbox.7")


@pytest.mark.spec("sandbox.3", "limits")
@pytest.mark.decision("D12")
@pytest.mark.parametrize("operation", PAYMENTS)
def test_the_cap_is_10000_inclusive_except_for_deposits_and_payouts(operation: Operation) -> None:
    above = answer(operation, amount="10000.01")

    for amount in ("0.01", "10000", "10000.00"):
        assert answer(operation, amount=amount) == answer(operation)
    if operation in CAPPED:
        rule = "D12" if operation is Operation.CARD else "sandbox.3"
        assert (above.code, above.rule) == ("016", rule)
    else:
        assert above == answer(operation)


@pytest.mark.decision("D12", "D36")
@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        *(("20000", "20000"), ("10000.010", "10000.01"), ("999999999999999", "999999999999999")),
        *(("1000000000000000", "1E+15"), ("1E+30", "1E+30")),
    ],
)
def test_an_amount_above_the_cap_is_shown_without_needless_digits(amount: str, shown: str) -> None:
    why = answer(amount=amount).why

    assert why == f"amount {shown} is above 10000, the sandbox maximum"


@pytest.mark.spec("endpoint.4")
@pytest.mark.decision("D13")
@pytest.mark.parametrize(
    ("amount", "code", "rule"),
    [("9999.99", "202", "sandbox.5"), ("10000", "202", "sandbox.5"), ("10000.01", "402", "D13")],
)
def test_a_payout_is_held_against_the_payout_balance(amount: str, code: str, rule: str) -> None:
    decided = answer(Operation.PAYOUT, amount=amount, available=10000)

    assert (decided.code, decided.rule) == (code, rule)


@pytest.mark.spec("sandbox.5")
@pytest.mark.decision("D13")
@pytest.mark.parametrize(
    ("option", "nw", "party", "word"),
    [
        ("BNK", "ECO", "0244000001", "bank"),
        ("BNK", "GCB", "1234567890123", "bank"),
        ("CRD", "VIS", "4111111111111111", "card"),
        ("CRD", "MAS", "5555555555554444", "card"),
    ],
)
def test_bank_and_card_payouts_are_not_available(
    option: str, nw: str, party: str, word: str
) -> None:
    seen = answer(Operation.PAYOUT, payment_mode=option, nw=nw, party=party)

    assert (seen.code, seen.rule) == ("019", "D13")
    assert seen.message == "Bank and card payouts are not available in sandbox"
    assert seen.why.endswith(f" not to a {word}")


@pytest.mark.spec("sandbox.6")
@pytest.mark.decision("D20")
@pytest.mark.parametrize(
    ("number", "nw", "code", "rule"),
    [
        ("4111111111111111", "VIS", "000", "sandbox.6"),
        ("4242424242424242", "VIS", "000", "sandbox.6"),
        ("5555555555554444", "MAS", "000", "sandbox.6"),
        ("5105105105105100", "MAS", "000", "sandbox.6"),
        ("", "CRD", "000", "sandbox.6"),  # in production's shape the page asks for the card
        ("4111111111111111", "MAS", "019", "D20"),
        ("5555555555554444", "VIS", "019", "D20"),
        ("4000000000000002", "VIS", "019", "sandbox.6"),
        ("4111 1111 1111 1111", "VIS", "019", "sandbox.6"),
        ("0244000001", "VIS", "019", "sandbox.6"),
        ("", "VIS", "019", "sandbox.6"),
    ],
)
def test_only_the_test_cards_of_the_brand_are_taken(
    number: str, nw: str, code: str, rule: str
) -> None:
    decided = answer(Operation.CARD, party=number, nw=nw)

    assert (decided.code, decided.rule) == (code, rule)


@pytest.mark.decision("D20")
def test_the_test_cards_are_a_setting_and_the_page_takes_each_brand() -> None:
    other = Behaviour(test_cards={"4000000000000002": "VIS"})
    taken = {"4111111111111111": "VIS", "5555555555554444": "MAS"}

    assert answer(Operation.CARD, other, party="4000000000000002").code == "000"
    for number, brand in taken.items():
        assert answer(Operation.CARD, other, party=number, nw=brand).code == "019"
        assert card_refusal(number, None, SANDBOX) is None
    refusal = card_refusal("4000000000000002", None, SANDBOX)
    assert refusal is not None
    assert refusal.code == "019"


@pytest.mark.decision("D14")
@pytest.mark.parametrize("operation", PAYMENTS)
def test_a_repeated_transaction_id_is_accepted_unless_set_otherwise(operation: Operation) -> None:
    refused = answer(operation, STRICT, repeated=True)

    assert (refused.code, refused.rule) == ("219", "D14")
    assert answer(operation, repeated=True) == answer(operation, STRICT) == answer(operation)


@pytest.mark.decision("D9")
@pytest.mark.parametrize("operation", PAYMENTS)
def test_the_codes_that_reject_a_payment_are_those_of_its_row(operation: Operation) -> None:
    party = payment(operation).party
    replies = (
        answer(operation, party=f"{party[:-1]}9"),
        answer(operation, party=f"9{party}"),
        answer(operation, amount="10000.01", available=10000),
        answer(operation, STRICT, repeated=True),
    )

    rejections = {each.code for each in replies} - {operation.row.success}
    assert rejections == set(operation.row.rejections)


@pytest.mark.decision("D9")
@pytest.mark.parametrize(
    ("operation", "fields", "code"),
    [
        (Operation.COLLECT, {"party": "0540000009", "amount": 10001}, "019"),
        (Operation.COLLECT, {"party": "0244000009", "amount": 10001}, "016"),
        (Operation.COLLECT, {"party": "0244000009"}, "219"),
        (Operation.PAYOUT, {"party": "0540000009", "amount": 10001, "payment_mode": "BNK"}, "019"),
        (Operation.PAYOUT, {"party": "0540000009", "amount": 10001}, "019"),
        (Operation.PAYOUT, {"party": "0244000009", "amount": 10001}, "402"),
        (Operation.PAYOUT, {"party": "0244000009"}, "219"),
        (Operation.BILL, {"party": "100000000009", "amount": 10001}, "019"),
        (Operation.BILL, {"party": "200000000009", "amount": 10001}, "016"),
        (Operation.BILL, {"party": "200000000009"}, "219"),
        (Operation.CARD, {"party": "4000000000000002", "amount": 10001}, "019"),
        (Operation.CARD, {"amount": 10001}, "016"),
        (Operation.CARD, {}, "219"),
    ],
)
def test_the_party_comes_first_then_cap_or_balance_then_duplicate_then_last_digit(
    operation: Operation, fields: dict[str, Any], code: str
) -> None:
    assert answer(operation, STRICT, repeated=True, available=10000, **fields).code == code


@given(
    st.sampled_from(PAYMENTS),
    st.one_of(st.text(max_size=16), st.from_regex(r"\A(0244|0200|0270|2330)[0-9]{6}\Z")),
    st.decimals("0.01", 20000, places=2),
    st.booleans(),
)
def test_every_answer_is_one_of_six_codes_with_a_rule_and_a_reason(
    operation: Operation, party: str, amount: Decimal, repeated: bool
) -> None:
    outcome = answer(operation, STRICT, party=party, amount=amount, repeated=repeated)

    assert outcome.code in {"000", "202", "015", "016", "019", "219"}
    assert outcome.rule.startswith(("sandbox.", "D"))
    assert outcome.why
