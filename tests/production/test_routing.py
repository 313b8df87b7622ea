"""The network that an operation goes to."""

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.production.routing import (
    NetworkRoute,
    matching_networks,
    missing_networks,
    removed_networks,
)

pytestmark = pytest.mark.decision("D32", "D39")

ROUTES = (
    NetworkRoute("mtn", frozenset({Operation.COLLECT, Operation.PAYOUT}), frozenset({"MTN"})),
    NetworkRoute("bulk", frozenset({Operation.SMS})),
    NetworkRoute("account", nws=frozenset({"MTN", "VOD"})),
    NetworkRoute("mtn", frozenset({Operation.COLLECT})),
)


@pytest.mark.parametrize(
    ("operation", "nw", "networks"),
    [
        (Operation.COLLECT, "MTN", ("mtn", "account")),
        (Operation.COLLECT, "VOD", ("account", "mtn")),
        (Operation.PAYOUT, "VOD", ("account",)),
        (Operation.SMS, None, ("bulk",)),
        (Operation.BILL, "ECG", ()),
    ],
)
def test_the_networks_of_the_fitting_routes_are_tried_in_order(
    operation: Operation, nw: str | None, networks: tuple[str, ...]
) -> None:
    assert matching_networks(ROUTES, operation, nw) == networks


def test_a_route_without_conditions_fits_every_operation() -> None:
    for operation in Operation:
        assert matching_networks([NetworkRoute("all")], operation, None) == ("all",)


def test_a_route_to_a_network_that_is_not_configured_is_named() -> None:
    assert missing_networks(ROUTES, {"mtn": 1, "account": 2}) == ["bulk"]


def test_a_network_with_open_attempts_must_stay_configured() -> None:
    assert removed_networks({"old": 2, "done": 0, "mtn": 7}, ["mtn"]) == {"old": 2}
