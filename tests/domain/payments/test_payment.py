"""A payment: the meaning of `party`, and how it may be shown."""

import pytest

from sandbox_sim.domain.vocabulary import Operation
from tests.domain.samples import PAYMENTS, payment

OPERATIONS = pytest.mark.parametrize("operation", PAYMENTS)


@pytest.mark.spec("endpoint.1", "endpoint.3", "endpoint.4", "endpoint.5", "endpoint.6")
@OPERATIONS
def test_the_party_is_a_phone_number_but_for_cards_and_bills(operation: Operation) -> None:
    mobile = operation not in {Operation.CARD, Operation.BILL}

    assert payment(operation).is_mobile is mobile


@pytest.mark.spec("endpoint.4")
@pytest.mark.parametrize(("option", "mobile"), [("MOM", True), ("BNK", False), ("CRD", False)])
def test_the_party_of_a_payout_depends_on_the_option(option: str, mobile: bool) -> None:
    assert payment(Operation.PAYOUT, payment_mode=option).is_mobile is mobile


@pytest.mark.spec("endpoint.2")
@pytest.mark.decision("D20")
@pytest.mark.parametrize(("nw", "asks"), [("CRD", True), ("VIS", False), ("MAS", False)])
def test_the_hosted_page_asks_for_the_card_in_the_production_shape(nw: str, asks: bool) -> None:
    assert payment(Operation.CARD, nw=nw).uses_card_entry is asks


@OPERATIONS
def test_only_a_card_collection_has_a_page_to_ask_on(operation: Operation) -> None:
    assert payment(operation, nw="CRD").uses_card_entry is (operation is Operation.CARD)


@pytest.mark.decision("D28")
@pytest.mark.parametrize("option", ["CRD", "CRM"])
def test_a_card_that_pays_is_masked(option: str) -> None:
    shown = payment(Operation.CARD, payment_mode=option).redacted().party

    assert shown == "411111******1111"


@pytest.mark.decision("D28")
def test_a_card_that_is_paid_is_masked() -> None:
    paid = payment(Operation.PAYOUT, nw="VIS", payment_mode="CRD", party="4111111111111111")

    assert paid.redacted().party == "411111******1111"


@pytest.mark.decision("D28")
@pytest.mark.parametrize(
    "operation",
    [Operation.COLLECT, Operation.DEPOSIT, Operation.PAYOUT, Operation.BILL, Operation.AIRTIME],
)
def test_a_number_or_an_account_is_shown_as_it_came(operation: Operation) -> None:
    assert payment(operation).redacted() == payment(operation)
