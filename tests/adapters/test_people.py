"""Made-up people are the same for the same seed, and the sandbox accepts their payments."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.adapters.people import FakePeople
from sandbox_sim.control.seeding import SampleRecords
from sandbox_sim.payments.sandbox_rules import Facts, decide
from sandbox_sim.records.behaviour import Behaviour

PEOPLE = FakePeople(Behaviour())
ACCEPTED = {"202", "000", "015"}


def ids_of(records: SampleRecords) -> tuple[list[str], list[str]]:
    """The ids of the payments and of the messages."""
    payments = [each.network_transaction_id for each in records.payments]
    return payments, [each.processing_id for each in records.messages]


def test_a_seed_gives_the_same_records_and_more_records_begin_with_the_same_ids() -> None:
    """So a client finds the records of a seed, however many records were asked for."""
    few, many = PEOPLE.sample_records(42, 55, 3), PEOPLE.sample_records(42, 55, 30)

    assert FakePeople(Behaviour()).sample_records(42, 55, 30) == many
    for ids, first_ids in zip(ids_of(few), ids_of(many), strict=True):
        assert ids[:3] == first_ids[:3]


def test_sample_records_are_the_same_on_any_machine() -> None:
    """The names come from Faker, and another version of Faker may have other names."""
    records = PEOPLE.sample_records(42, 55, 2)

    (person,) = records.people
    purchase, text = records.payments[0], records.messages[0]
    assert (person.customer_number, person.nw) == ("0200855501", "VOD")
    assert purchase.network_transaction_id == "97614145849"
    assert purchase.payment.amount == Decimal("149.64")
    assert purchase.ago == timedelta(seconds=97, milliseconds=118)
    assert text.processing_id == "1c8629fa4fa2b4dd13427bf718a594a3"


@pytest.mark.parametrize(("seed", "service_id"), [(43, 55), (42, 56), (4, 255)])
def test_another_seed_or_service_gives_other_records(seed: int, service_id: int) -> None:
    one, other = PEOPLE.sample_records(42, 55, 30), PEOPLE.sample_records(seed, service_id, 30)

    assert one.people != other.people
    for ids, other_ids in zip(ids_of(one), ids_of(other), strict=True):
        assert set(ids).isdisjoint(other_ids)


@pytest.mark.decision("D18")
@given(seed=st.integers(0, 2**63 - 1), service_id=st.integers(1, 2**63 - 1))
def test_the_sandbox_accepts_each_payment_of_the_sample_records(seed: int, service_id: int) -> None:
    records = PEOPLE.sample_records(seed, service_id, 13)

    for purchase in records.payments:
        assert decide(purchase.payment, Behaviour(), Facts()).code in ACCEPTED
        assert re.fullmatch(r"9[0-9]{10}", purchase.network_transaction_id)
    assert len(set(ids_of(records)[0])) == 13
