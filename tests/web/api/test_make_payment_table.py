"""The models of payments and the rows of their operations name the same combinations."""

from collections.abc import Iterator, Mapping
from typing import get_args

import pytest

from sandbox_sim.operations import MAKE_PAYMENT_OPERATIONS, OPERATIONS_BY_PATH, PAYMENTS, Operation
from sandbox_sim.web.api import live_operations, request_models

MODELS: list[type[request_models.PaymentBody]] = [
    *(request_models.Collection, request_models.Deposit),
    *(request_models.TestCardCollection, request_models.HostedCardCollection),
    *(request_models.MobilePayout, request_models.BankPayout, request_models.CardPayout),
]


def combinations(model: type[request_models.PaymentBody]) -> Iterator[tuple[str, str]]:
    """The `trans_type` and `payment_option` that a model takes."""
    for trans_type in get_args(model.model_fields["trans_type"].annotation):
        for option in get_args(model.model_fields["payment_option"].annotation):
            yield trans_type, option


@pytest.mark.spec("endpoint.1", "endpoint.2", "endpoint.3", "endpoint.4")
def test_the_models_take_exactly_the_combinations_of_their_operations() -> None:
    taken = {model: set(combinations(model)) for model in MODELS}

    for model, found in taken.items():
        assert {MAKE_PAYMENT_OPERATIONS[each] for each in found} == {model.operation}
    assert set().union(*taken.values()) == set(MAKE_PAYMENT_OPERATIONS)
    assert set(MAKE_PAYMENT_OPERATIONS.values()) == {
        *(Operation.COLLECT, Operation.CARD, Operation.DEPOSIT, Operation.PAYOUT)
    }


@pytest.mark.spec("endpoint.5", "endpoint.6")
@pytest.mark.parametrize("models", [request_models.BODIES_BY_PATH, live_operations.BODIES_BY_PATH])
def test_a_payment_with_its_own_path_has_a_model_of_its_type(
    models: Mapping[str, type[request_models.PaymentBody]],
) -> None:
    types = {
        path: get_args(model.model_fields["trans_type"].annotation)
        for path, model in models.items()
    }

    assert types == {
        operation.row.path: (payment.trans_type,)
        for operation, payment in PAYMENTS.items()
        if not payment.options
    }


def test_every_path_has_the_model_of_its_body() -> None:
    assert request_models.BODIES.keys() == OPERATIONS_BY_PATH.keys()
