"""The facts of a request that user rules match; a request with errors has facts too."""

import json
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.operations import Operation
from sandbox_sim.records.overrides import Match, MatchFacts
from sandbox_sim.web.api.fault_injection import match_facts_of
from tests.kit.requests import OPERATIONS

COLLECTION = OPERATIONS["collection"].body
FIELDS = (
    *("service_id", "transaction_id", "customer_number", "account_number", "recipients", "nw"),
    *("amount", "trans_type", "payment_option"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def facts(body: object, operation: Operation | None = None) -> MatchFacts:
    return match_facts_of(json.dumps(body).encode(), operation)


def test_payments_bulk_sms_and_bills_have_the_facts_of_their_fields() -> None:
    assert facts(COLLECTION) == MatchFacts(
        55, Operation.COLLECT, "T1", ("0244000001",), "MTN", Decimal("10.5")
    )
    bulk, bill = OPERATIONS["bulk"].body, OPERATIONS["bill"].body
    assert facts(bulk, Operation.BULK_SMS).parties == ("0244000001", "233200000002")
    assert facts(bill, Operation.BILL).parties == ("200000000001",)


def test_trans_type_and_payment_option_give_the_operation() -> None:
    rows: list[tuple[object, object, str | None]] = [
        ("CTM", "MOM", "collect"),
        ("MTC", None, "payout"),
        ("XYZ", "MOM", None),
        (["CTM"], {"MOM": 1}, None),
    ]
    for trans_type, option, operation in rows:
        given = {"trans_type": trans_type, "payment_option": option}
        assert facts(given).operation == operation


@pytest.mark.parametrize("field", ["service_id", "transaction_id", "nw", "amount"])
@pytest.mark.parametrize("value", [None, True, [], {}, "\x00", -1.5, float("inf")])
def test_a_wrong_field_gives_no_fact_and_the_other_fields_do(field: str, value: object) -> None:
    found = facts({**COLLECTION, field: value})

    assert getattr(found, field) == (
        Decimal("-1.5") if (field, value) == ("amount", -1.5) else None
    )
    assert found.parties == ("0244000001",)


def test_malformed_parties_and_service_ids_give_no_facts() -> None:
    for parties in (
        {"customer_number": 244000001}, {"recipients": "0244000001"}, {"recipients": [1]}
    ):  # fmt: skip
        assert facts(parties).parties == ()
    for service_id in (0, -1, 2**63, 55.0, "55"):
        assert facts({"service_id": service_id}).service_id is None


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff", b"[]", b"null", b'"x"', b"[" * 10_000, b'{"nw": "\\ud800"}']
)
def test_a_body_that_is_not_an_object_has_the_operation_of_its_path(raw: bytes) -> None:
    assert match_facts_of(raw, Operation.SMS) == MatchFacts(operation=Operation.SMS)


@given(st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON)
def test_the_facts_of_any_body_can_be_compared_with_a_match(body: object) -> None:
    found = facts(body)

    assert found.service_id is None or 0 < found.service_id < 2**63
    for bound in (Decimal(0), Decimal("0.1")):
        Match(customer_number="0244000001", amount_from=bound, amount_to=bound).matches(found)
