"""A payment: the meaning of `party`, and how it may be shown."""

from typing import Any

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.records.transactions import NO_DETAILS
from tests.records.samples import payment

MOBILE = (Operation.COLLECT, Operation.DEPOSIT, Operation.AIRTIME)


@pytest.mark.spec(
    "endpoint.1", "endpoint.2", "endpoint.3", "endpoint.4", "endpoint.5", "endpoint.6"
)
@pytest.mark.decision("D20", "D28")
@pytest.mark.parametrize(
    ("operation", "nw", "option", "is_mobile", "asks", "is_card"),
    [
        *((each, "CRD", "MOM", True, False, False) for each in MOBILE),
        (Operation.PAYOUT, "MTN", "MOM", True, False, False),
        (Operation.PAYOUT, "ECO", "BNK", False, False, False),
        (Operation.PAYOUT, "VIS", "CRD", False, False, True),
        (Operation.CARD, "CRD", "CRD", False, True, True),
        (Operation.CARD, "VIS", "CRM", False, False, True),
        (Operation.CARD, "MAS", "CRD", False, False, True),
        (Operation.BILL, "CRD", "BLP", False, False, False),
    ],
)
def test_the_party_is_a_phone_number_a_masked_card_or_an_account(
    operation: Operation, nw: str, option: str, is_mobile: bool, asks: bool, is_card: bool
) -> None:
    paid = payment(operation, nw=nw, payment_mode=option, party="4111111111111")

    assert (paid.is_mobile, paid.uses_card_entry) == (is_mobile, asks)
    shown = "411111***1111" if is_card else paid.party
    assert paid.redacted() == paid._replace(party=shown)


@pytest.mark.decision("D38")
@pytest.mark.parametrize("field", ["reference", "party", "callback_url"])
def test_a_card_number_is_masked_wherever_it_stands(field: str) -> None:
    given: Any = {field: "4111111111111111"}
    kept: Any = {field: "411111******1111"}

    assert payment(**given).redacted() == payment(**kept)


def test_what_was_not_given_is_empty() -> None:
    assert NO_DETAILS == ("", "", "")
    assert payment().landing_page == ""
