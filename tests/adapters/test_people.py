"""Made-up people are the same for the same seed, and the sandbox accepts their payments."""

import re
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.adapters.people import FakePeople
from sandbox_sim.payments.sandbox_rules import Facts, decide
from sandbox_sim.records.behaviour import Behaviour

PEOPLE = FakePeople(Behaviour())
ACCEPTED = {"202", "000", "015"}


def test_a_seed_gives_the_same_records_and_more_records_begin_with_the_same_ids() -> None:
    """So a client finds the records of a seed, however many records were asked for."""
    few, many = PEOPLE.sample_records(42, 55, 3), PEOPLE.sample_records(42, 55, 30)

    assert FakePeople(Behaviour()).sample_records(42, 55, 30) == many
    ids = [[each.processing_id for each in records.texts[:3]] for records in (few, many)]
    assert ids[0] == ids[1]
    ids = [
        [each.network_transaction_id for each in records.purchases[:3]] for records in (few, many)
    ]
    assert ids[0] == ids[1]


def test_sample_records_are_the_same_on_any_machine() -> None:
    """The names come from Faker, and another version of Faker may have other names."""
    records = PEOPLE.sample_records(42, 55, 2)

    (person,) = records.people
    purchase, text = records.purchases[0], records.texts[0]
    assert (person.customer_number, person.nw) == ("0200855501", "VOD")
    assert purchase.network_transaction_id == "97614145849"
    assert purchase.payment.amount == Decimal("149.64")
    assert purchase.ago == timedelta(seconds=97, milliseconds=118)
    assert text.processing_id == "1c8629fa4fa2b4dd13427bf718a594a3"


@pytest.mark.parametrize(("seed", "service_id"), [(43, 55), (42, 56), (4, 255)])
def test_another_seed_or_service_gives_other_records(seed: int, service_id: int) -> None:
    one, other = PEOPLE.sample_records(42, 55, 30), PEOPLE.sample_records(seed, service_id, 30)

    assert one.people != other.people
    ids = [{each.network_transaction_id for each in records.purchases} for records in (one, other)]
    assert ids[0].isdisjoint(ids[1])
    ids = [{each.processing_id for each in records.texts} for records in (one, other)]
    assert ids[0].isdisjoint(ids[1])


@pytest.mark.decision("D18")
@given(seed=st.integers(0, 2**63 - 1), service_id=st.integers(1, 2**63 - 1))
def test_the_sandbox_accepts_each_payment_of_the_sample_records(seed: int, service_id: int) -> None:
    records = PEOPLE.sample_records(seed, service_id, 13)

    for purchase in records.purchases:
        assert decide(purchase.payment, Behaviour(), Facts()).code in ACCEPTED
        assert re.fullmatch(r"9[0-9]{10}", purchase.network_transaction_id)
    assert len({each.network_transaction_id for each in records.purchases}) == 13


def test_the_gateway_does_not_import_faker_when_it_starts() -> None:
    """`serve` loads this module, and the import of Faker is slow."""
    code = "import sys, sandbox_sim.bootstrap; print('faker' in sys.modules)"
    result = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.strip() == "False"
