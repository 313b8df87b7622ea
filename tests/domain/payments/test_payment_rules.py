"""What the sandbox answers to a payment: each rule, and the order of the rules (D9)."""

from decimal import Decimal

import pytest

from sandbox_sim.domain.msisdn import Allowlist
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.payments.payment_rules import Facts, Outcome, Sandbox, card_outcome, decide
from sandbox_sim.domain.vocabulary import Operation
from tests.domain.samples import PAYMENTS, payment

MOBILE = (Operation.COLLECT, Operation.DEPOSIT, Operation.PAYOUT, Operation.AIRTIME)
CAPPED = (Operation.COLLECT, Operation.CARD, Operation.BILL, Operation.AIRTIME)
UNCAPPED = (Operation.DEPOSIT, Operation.PAYOUT)

SANDBOX = Sandbox()
STRICT = Sandbox(reject_duplicates=True)
CARD_ENTRY: dict[str, str] = {"nw": "CRD", "party": ""}


def answer(asked: Payment, sandbox: Sandbox = SANDBOX, facts: Facts | None = None) -> Outcome:
    return decide(asked, sandbox, facts or Facts())


@pytest.mark.spec("sandbox.3", "sandbox.5", "sandbox.6", "sandbox.7")
@pytest.mark.parametrize("operation", PAYMENTS)
def test_a_good_payment_is_taken(operation: Operation) -> None:
    expected = "000" if operation is Operation.CARD else "202"

    assert answer(payment(operation)).code == expected


@pytest.mark.decision("D8")
def test_a_card_payment_is_taken_in_a_word_of_its_own() -> None:
    assert answer(payment(Operation.CARD)).message == "Successful"
    assert answer(payment(Operation.COLLECT)).message is None


@pytest.mark.spec("sandbox.2", "sandbox.3")
@pytest.mark.parametrize("operation", MOBILE)
@pytest.mark.parametrize("digit", "0123456789")
def test_the_last_digit_of_a_number_decides(operation: Operation, digit: str) -> None:
    seen = answer(payment(operation, party=f"024400000{digit}"))

    assert seen.code == ("015" if digit == "9" else "202")


@pytest.mark.spec("sandbox.2", "sandbox.7")
@pytest.mark.decision("D19")
@pytest.mark.parametrize("digit", "0123456789")
def test_the_last_digit_of_an_account_decides(digit: str) -> None:
    seen = answer(payment(Operation.BILL, party=f"20000000000{digit}"))

    assert seen.code == ("015" if digit == "9" else "202")


@pytest.mark.spec("sandbox.1", "sandbox.3")
@pytest.mark.parametrize("operation", MOBILE)
@pytest.mark.parametrize("number", ["0240000000", "0540010000", "0540010009", "200000000001"])
def test_a_number_off_the_allowlist_is_not_allowed(operation: Operation, number: str) -> None:
    assert answer(payment(operation, party=number)).code == "019"


@pytest.mark.decision("D11")
@pytest.mark.parametrize("operation", MOBILE)
@pytest.mark.parametrize(
    ("number", "by_default", "by_setting"),
    [
        ("233244000001", "019", "202"),
        ("233244000009", "019", "015"),
        ("+233244000001", "019", "019"),
    ],
)
def test_the_233_form_is_taken_by_setting_only(
    operation: Operation, number: str, by_default: str, by_setting: str
) -> None:
    lenient = Sandbox(allowlist=Allowlist(accept_international=True))

    assert answer(payment(operation, party=number)).code == by_default
    assert answer(payment(operation, party=number), lenient).code == by_setting


@pytest.mark.decision("D11")
@pytest.mark.parametrize("operation", MOBILE)
def test_the_network_has_to_match_the_prefix_by_setting_only(operation: Operation) -> None:
    matching = Sandbox(allowlist=Allowlist(match_network=True))
    asked = payment(operation, nw="VOD", party="0244000001")

    assert answer(asked).code == "202"
    assert answer(asked, matching).code == "019"
    assert answer(asked._replace(nw="MTN"), matching).code == "202"


@pytest.mark.spec("sandbox.3", "limits")
@pytest.mark.decision("D12")
@pytest.mark.parametrize("operation", CAPPED)
@pytest.mark.parametrize(
    ("amount", "over"), [("0.01", False), ("10000", False), ("10000.00", False), ("10000.01", True)]
)
def test_the_cap_is_10000_and_includes_it(operation: Operation, amount: str, over: bool) -> None:
    seen = answer(payment(operation, amount=Decimal(amount)))

    assert (seen.code == "016") is over


@pytest.mark.decision("D12")
@pytest.mark.parametrize("operation", UNCAPPED)
def test_deposit_and_payout_have_no_cap(operation: Operation) -> None:
    assert answer(payment(operation, amount=Decimal(1_000_000))).code == "202"


@pytest.mark.spec("endpoint.4")
@pytest.mark.decision("D13")
@pytest.mark.parametrize(
    ("amount", "code"), [("9999.99", "202"), ("10000", "202"), ("10000.01", "402")]
)
def test_a_payout_is_held_against_the_payout_balance(amount: str, code: str) -> None:
    asked = payment(Operation.PAYOUT, amount=Decimal(amount))

    assert answer(asked, facts=Facts(available=Decimal(10000))).code == code


@pytest.mark.spec("sandbox.5")
@pytest.mark.decision("D13")
@pytest.mark.parametrize(
    ("option", "nw", "party"),
    [
        ("BNK", "ECO", "0244000001"),
        ("BNK", "GCB", "1234567890123"),
        ("CRD", "VIS", "4111111111111111"),
        ("CRD", "MAS", "5555555555554444"),
    ],
)
def test_bank_and_card_payouts_are_not_available(option: str, nw: str, party: str) -> None:
    seen = answer(payment(Operation.PAYOUT, payment_mode=option, nw=nw, party=party))

    assert seen.code == "019"
    assert seen.message == "Bank and card payouts are not available in sandbox"


@pytest.mark.spec("sandbox.6")
@pytest.mark.decision("D20")
@pytest.mark.parametrize(
    ("number", "nw", "code"),
    [
        ("4111111111111111", "VIS", "000"),
        ("4242424242424242", "VIS", "000"),
        ("5555555555554444", "MAS", "000"),
        ("5105105105105100", "MAS", "000"),
        ("4111111111111111", "MAS", "019"),
        ("5555555555554444", "VIS", "019"),
        ("4000000000000002", "VIS", "019"),
        ("4111 1111 1111 1111", "VIS", "019"),
        ("0244000001", "VIS", "019"),
        ("", "VIS", "019"),
    ],
)
def test_only_the_test_cards_of_the_brand_are_taken(number: str, nw: str, code: str) -> None:
    assert answer(payment(Operation.CARD, party=number, nw=nw)).code == code


@pytest.mark.decision("D20")
def test_the_test_cards_are_data() -> None:
    other = Sandbox(test_cards={"4000000000000002": "VIS"})

    assert answer(payment(Operation.CARD, party="4000000000000002"), other).code == "000"
    assert answer(payment(Operation.CARD, party="4111111111111111"), other).code == "019"


@pytest.mark.decision("D20")
def test_the_production_shape_leaves_the_card_to_the_page() -> None:
    assert answer(payment(Operation.CARD, **CARD_ENTRY)).code == "000"


@pytest.mark.decision("D20")
@pytest.mark.parametrize("number", ["4111111111111111", "5555555555554444"])
def test_the_page_takes_a_test_card_of_either_brand(number: str) -> None:
    assert card_outcome(number, None, SANDBOX) is None


@pytest.mark.decision("D20")
def test_the_page_takes_no_other_card() -> None:
    outcome = card_outcome("4000000000000002", None, SANDBOX)

    assert outcome is not None
    assert outcome.code == "019"


@pytest.mark.decision("D14")
@pytest.mark.parametrize("operation", PAYMENTS)
def test_a_repeated_transaction_id_is_accepted_unless_set_otherwise(operation: Operation) -> None:
    asked = payment(operation)
    repeated = Facts(repeated=True)

    assert answer(asked, facts=repeated) == answer(asked)
    assert answer(asked, STRICT, repeated).code == "219"
    assert answer(asked, STRICT).code == answer(asked).code


@pytest.mark.decision("D9")
@pytest.mark.parametrize(
    ("number", "amount", "repeated", "code"),
    [
        ("0540000009", 10001, True, "019"),
        ("0244000009", 10001, True, "016"),
        ("0244000009", 10000, True, "219"),
        ("0244000009", 10000, False, "015"),
        ("0244000001", 10000, False, "202"),
    ],
)
def test_a_collection_hears_number_cap_duplicate_digit_in_this_order(
    number: str, amount: int, repeated: bool, code: str
) -> None:
    asked = payment(party=number, amount=Decimal(amount))

    assert answer(asked, STRICT, Facts(repeated=repeated)).code == code


@pytest.mark.decision("D9")
@pytest.mark.parametrize(
    ("option", "number", "amount", "repeated", "code"),
    [
        ("BNK", "0540000009", 10001, True, "019"),
        ("MOM", "0540000009", 10001, True, "019"),
        ("MOM", "0244000009", 10001, True, "402"),
        ("MOM", "0244000009", 10000, True, "219"),
        ("MOM", "0244000009", 10000, False, "015"),
        ("MOM", "0244000001", 10000, False, "202"),
    ],
)
def test_a_payout_hears_number_balance_duplicate_digit_in_this_order(
    option: str, number: str, amount: int, repeated: bool, code: str
) -> None:
    asked = payment(Operation.PAYOUT, payment_mode=option, party=number, amount=Decimal(amount))

    assert answer(asked, STRICT, Facts(repeated, Decimal(10000))).code == code


@pytest.mark.decision("D9")
@pytest.mark.parametrize(
    ("account", "amount", "repeated", "code"),
    [
        ("100000000009", 10001, True, "019"),
        ("200000000009", 10001, True, "016"),
        ("200000000009", 10000, True, "219"),
        ("200000000009", 10000, False, "015"),
    ],
)
def test_a_bill_hears_account_cap_duplicate_digit_in_this_order(
    account: str, amount: int, repeated: bool, code: str
) -> None:
    asked = payment(Operation.BILL, party=account, amount=Decimal(amount))

    assert answer(asked, STRICT, Facts(repeated=repeated)).code == code


@pytest.mark.decision("D9")
@pytest.mark.parametrize(
    ("card", "amount", "repeated", "code"),
    [
        ("4000000000000002", 10001, True, "019"),
        ("4111111111111111", 10001, True, "016"),
        ("4111111111111111", 10000, True, "219"),
    ],
)
def test_a_card_hears_card_cap_duplicate_in_this_order(
    card: str, amount: int, repeated: bool, code: str
) -> None:
    asked = payment(Operation.CARD, party=card, amount=Decimal(amount))

    assert answer(asked, STRICT, Facts(repeated=repeated)).code == code
