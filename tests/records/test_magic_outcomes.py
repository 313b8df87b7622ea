"""How the table of magic outcomes is read."""

from decimal import Decimal

import pytest

from sandbox_sim.payments.sandbox_rules import Facts, decide
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.magic_outcomes import MagicOutcomes
from tests.records.samples import payment

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


@pytest.mark.parametrize(
    ("table", "code", "why"),
    [
        ({"0244000001": "003", "10.5": "001"}, "202", "gives 003 to this number"),
        ({"0.5": "001", "10.5": "402"}, "402", "gives 402 to this amount"),
        ({"0244000001": "016"}, "016", "gives 016 to this number"),
    ],
)
def test_the_answer_names_the_setting_and_what_chose_the_outcome(
    table: dict[str, str], code: str, why: str
) -> None:
    answer = decide(payment(), Behaviour(magic_outcomes=table), Facts())

    assert (answer.code, answer.rule) == (code, "D35")
    assert answer.why == f"the setting magic_outcomes {why}"


@pytest.mark.parametrize("key", ["", "x", "0", "-1", "NaN", "Infinity", "+233244000003x"])
def test_another_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="must be a number such as 0244000003, or an amount"):
        MagicOutcomes.parse({key: "001"})


@pytest.mark.parametrize("outcome", ["000", "202", "370", "004", "", "cancelled"])
def test_another_outcome_is_refused(outcome: str) -> None:
    with pytest.raises(ValueError, match="must be one of 001, 003, 002, or a response code"):
        MagicOutcomes.parse({"5": outcome})
