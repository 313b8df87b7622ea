"""How the file descriptors of a process are divided between callbacks and clients."""

import pytest

from sandbox_sim.adapters.process import divide_descriptors
from sandbox_sim.callbacks.delivery_queue import IN_ALL


@pytest.mark.parametrize("limit", [64, 256, 1024, 4096, 65_536, 1_000_000])
def test_callbacks_clients_and_the_rest_fit_together(limit: int) -> None:
    shared = divide_descriptors(limit)

    reserve = 128
    assert shared.callbacks + shared.clients + shared.backlog + reserve <= max(limit, 160)
    assert shared.callbacks >= 8
    assert shared.clients >= 8
    assert shared.callbacks <= IN_ALL


def test_with_the_usual_limit_1500_receivers_that_hang_are_passed_in_30_seconds() -> None:
    """Each receiver that hangs keeps its connection for 2 s while others wait."""
    assert 1500 / divide_descriptors(1024).callbacks * 2 < 30
