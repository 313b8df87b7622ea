"""The table of magic outcomes."""

from decimal import Decimal

import pytest

from sandbox_sim.payments.sandbox_rules import Facts, decide
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.magic_outcomes import MagicOutcomes
from tests.records.samples import payment

pytestmark = pytest.mark.decision("D35")


def test_a_key_of_ten_or_more_digits_is_a_number_and_a_shorter_key_an_amount() -> None:
    magic = MagicOutcomes.parse({"0244000003": "003", "200000000003": "001", "13.37": "001"})

    assert magic.by_number == {"233244000003": "003", "200000000003": "001"}
    assert magic.by_amount == {Decimal("13.37"): "001"}
    for amount, outcome in (("13.37", "001"), ("13.370", "001"), ("13.36", None)):
        assert magic.status_of(payment(amount=Decimal(amount))) == outcome


@pytest.mark.parametrize(
    ("table", "code", "why"),
    [
        ({"0244000001": "003", "10.5": "001"}, "202", "gives 003 to this number"),
        ({"0.5": "001", "10.5": "402"}, "402", "gives 402 to this amount"),
        ({"0244000001": "016"}, "016", "gives 016 to this number"),
    ],
)
def test_the_answer_names_the_setting_and_the_matching_number_or_amount(
    table: dict[str, str], code: str, why: str
) -> None:
    answer = decide(payment(), Behaviour(magic_outcomes=table), Facts())

    assert (answer.code, answer.rule) == (code, "D35")
    assert answer.why == f"the setting magic_outcomes {why}"


def test_an_invalid_key_or_outcome_is_refused() -> None:
    numbers = ("+233244000003x", "+233244000003", "024400003", "0244 000 003")
    for key in ("", "x", "0", "0.0", "-1", "NaN", "Infinity", "1e3", "1,000", *numbers):
        with pytest.raises(ValueError, match="must be a number such as 0244000003, or an amount"):
            MagicOutcomes.parse({key: "001"})
    for outcome in ("000", "202", "370", "004", "", "cancelled"):
        with pytest.raises(ValueError, match="must be one of 001, 003, 002, or a response code"):
            MagicOutcomes.parse({"5": outcome})
