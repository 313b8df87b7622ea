"""The states of the networks: each has its own routes and its own counts (D39)."""

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.production.network_overview import NetworkOverview, StoredCounts
from sandbox_sim.production.routing import NetworkRoute
from sandbox_sim.records.exchanges import NotificationState
from tests.production.desk import Desk

pytestmark = pytest.mark.decision("D39")

APPLIED, UNMATCHED = NotificationState.APPLIED, NotificationState.UNMATCHED


def test_each_network_has_its_own_routes_and_counts() -> None:
    desk = Desk()
    counts = StoredCounts({"first": 2}, {("first", APPLIED): 3, ("second", UNMATCHED): 1})

    first, second = NetworkOverview(desk.store, desk.networks, {"second": 4}).states_with(counts)

    routes = [NetworkRoute("second", frozenset({Operation.AIRTIME, Operation.SMS}))]
    assert (first.routes, second.routes) == ([NetworkRoute("first")], routes)
    assert (first.open_attempts, second.open_attempts) == (2, 0)
    assert (first.kept_notifications, second.kept_notifications) == ({APPLIED: 3}, {UNMATCHED: 1})
    assert (first.dropped_notifications, second.dropped_notifications) == (0, 4)
