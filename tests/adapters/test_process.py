"""A program ends also if a task ignores its cancellation; how its file descriptors are divided."""

import asyncio

import pytest

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.adapters.process import divide_descriptors, run
from sandbox_sim.callbacks.delivery_queue import MAX_CONCURRENT


class Impatient(SystemClock):
    """A clock whose time limits end at once."""

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        return super().timeout(0)


async def ignore_cancellation() -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


def test_run_returns_or_raises_as_its_program_does_and_cancels_its_tasks() -> None:
    left: list[asyncio.Task[bool]] = []

    async def main() -> int:
        left.append(asyncio.create_task(asyncio.Event().wait()))
        await asyncio.sleep(0)
        return 3

    assert run(main()) == 3
    assert left[0].cancelled()

    async def fails() -> None:
        raise KeyError("status")

    with pytest.raises(KeyError):
        run(fails())


def test_a_task_that_ignores_its_cancellation_does_not_keep_the_program_running(
    caplog: pytest.LogCaptureFixture,
) -> None:
    left: list[asyncio.Task[None]] = []

    async def main() -> int:
        left.append(asyncio.create_task(ignore_cancellation(), name="status at network mtn"))
        await asyncio.sleep(0)
        return 3

    assert run(main(), Impatient()) == 3
    assert not left[0].done()
    assert "are abandoned: status at network mtn" in caplog.text


@pytest.mark.parametrize("limit", [64, 256, 1024, 4096, 65_536, 1_000_000])
def test_callbacks_and_clients_share_the_file_descriptors(limit: int) -> None:
    shared = divide_descriptors(limit)

    reserve = 128
    assert shared.callbacks + shared.clients + shared.backlog + reserve <= max(limit, 160)
    assert shared.callbacks >= 8
    assert shared.clients >= 8
    assert shared.callbacks <= MAX_CONCURRENT


def test_1500_hanging_receivers_delay_the_others_less_than_30_seconds() -> None:
    """Each receiver that hangs keeps its connection for 2 s while others wait."""
    assert 1500 / divide_descriptors(1024).callbacks * 2 < 30
