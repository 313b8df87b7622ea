"""A program ends, whatever its tasks do."""

import asyncio

import pytest

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.adapters.process import run


class Impatient(SystemClock):
    """Limits are over at once."""

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        return super().timeout(0)


async def deaf() -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


def test_it_returns_what_the_program_returns_and_ends_its_tasks() -> None:
    left: list[asyncio.Task[bool]] = []

    async def main() -> int:
        left.append(asyncio.create_task(asyncio.Event().wait()))
        await asyncio.sleep(0)
        return 3

    assert run(main()) == 3
    assert left[0].cancelled()


def test_it_raises_what_the_program_raises() -> None:
    async def main() -> None:
        raise KeyError("status")

    with pytest.raises(KeyError):
        run(main())


def test_a_task_that_ignores_its_cancellation_does_not_keep_it_from_ending(
    caplog: pytest.LogCaptureFixture,
) -> None:
    left: list[asyncio.Task[None]] = []

    async def main() -> int:
        left.append(asyncio.create_task(deaf(), name="status at network mtn"))
        await asyncio.sleep(0)
        return 3

    assert run(main(), Impatient()) == 3
    assert not left[0].done()
    assert "are abandoned: status at network mtn" in caplog.text
