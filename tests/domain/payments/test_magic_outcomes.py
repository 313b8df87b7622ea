"""How the table of magic outcomes is read."""

from decimal import Decimal

import pytest

from sandbox_sim.domain.payments.magic_outcomes import MagicOutcomes
from tests.domain.samples import payment

pytestmark = pytest.mark.decision("D35")


def test_ten_digits_or_more_are_a_number_and_less_is_an_amount() -> None:
    magic = MagicOutcomes.parse({"0244000003": "003", "200000000003": "001", "500": "402"})

    assert magic.by_number == {"233244000003": "003", "200000000003": "001"}
    assert magic.by_amount == {Decimal(500): "402"}


@pytest.mark.parametrize("amount", ["13.37", "13.370"])
def test_an_amount_is_compared_as_a_number(amount: str) -> None:
    magic = MagicOutcomes.parse({"13.37": "001"})

    assert magic.status_of(payment(amount=Decimal(amount))) == "001"
    assert magic.status_of(payment(amount=Decimal("13.36"))) is None


@pytest.mark.parametrize("key", ["", "x", "0", "-1", "NaN", "Infinity", "+233244000003x"])
def test_another_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="must be a number such as 0244000003, or an amount"):
        MagicOutcomes.parse({key: "001"})


@pytest.mark.parametrize("outcome", ["000", "202", "370", "004", "", "cancelled"])
def test_another_outcome_is_refused(outcome: str) -> None:
    with pytest.raises(ValueError, match="must be one of 001, 003, 002, or a response code"):
        MagicOutcomes.parse({"5": outcome})
