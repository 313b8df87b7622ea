"""Exact amounts, from the text of the request to the text for the network."""

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.values import money
from sandbox_sim.values.json_text import compact
from sandbox_sim.values.peer_input import read_json

pytestmark = pytest.mark.decision("D39")


@pytest.mark.parametrize("text", ["10000000000000001", "0.01", "10.50", "99999999999999999.99"])
def test_an_amount_keeps_its_last_digit(text: str) -> None:
    amount = money.exact_amount(f'{{"amount": {text}}}'.encode())

    assert amount == Decimal(text)
    assert amount is not None
    written = compact({"amount": amount, "service_id": 55})
    assert read_json(written) == {"amount": Decimal(text), "service_id": 55}


@given(st.decimals("0.01", 10**17, places=2))
def test_an_amount_with_the_decimals_of_its_currency_is_valid_and_exact(amount: Decimal) -> None:
    assert money.exact_amount(compact({"amount": amount}).encode()) == amount
    assert money.problem_of(amount, "GHS") is None


def test_an_amount_is_exact_anywhere_in_a_document() -> None:
    amount = Decimal("99999999999999999.99")
    document = {"reference": 'Ama "1"', "lines": [{"amount": amount}, (amount, None, 0.5)]}

    assert compact(document) == (
        '{"reference":"Ama \\"1\\"","lines":'
        '[{"amount":99999999999999999.99},[99999999999999999.99,null,0.5]]}'
    )
    with pytest.raises(TypeError, match="not JSON serializable"):
        compact({"amount": amount, "network": object()})


@pytest.mark.parametrize("raw", [b"[1]", b"{}", b'{"amount": "10"}', b'{"amount": true}'])
def test_a_body_without_a_number_has_no_amount(raw: bytes) -> None:
    assert money.exact_amount(raw) is None


@pytest.mark.parametrize(
    "raw", [b"", b'{"amount": NaN}', b'{"amount": 1, "size": 0e-1000000000}', b"[" * 100_000]
)
def test_a_body_that_cannot_be_read_exactly_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        money.exact_amount(raw)


def test_an_invalid_amount_is_refused_with_the_reason() -> None:
    rows = [
        ("10.50", "GHS", None),
        ("10.500", "GHS", None),
        ("1E+2", "GHS", None),
        ("0.01", "GHS", None),
        ("999999999999999999.99", "GHS", None),
        ("10.505", "GHS", "must have at most 2 decimals, as GHS has"),
        ("1E-7", "USD", "must have at most 2 decimals, as USD has"),
        ("10.5010", "GHS", "must have at most 2 decimals, as GHS has"),
        *(
            ("10.5", currency, f"must have at most 0 decimals, as {currency} has")
            for currency in ("XOF", "XAF", "UGX", "RWF", "GNF")
        ),
        ("1000000000000000000", "GHS", "must have at most 18 digits before the decimal point"),
        ("1E+999999", "GHS", "must have at most 18 digits before the decimal point"),
        ("0", "GHS", "must be a number above 0"),
        ("-1", "GHS", "must be a number above 0"),
        ("NaN", "GHS", "must be a number above 0"),
        ("Infinity", "GHS", "must be a number above 0"),
    ]
    for text, currency, problem in rows:
        assert money.problem_of(Decimal(text), currency) == problem
