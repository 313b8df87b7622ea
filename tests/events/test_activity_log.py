"""Each success has its line; above 50 a second, one line a second counts the others."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.events.activity_log import MAX_LINES_PER_S, ActivityLog


class SecondsClock(VirtualClock):
    """A clock whose real time only the test moves."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 100.0
        self.moved = asyncio.Event()

    def monotonic(self) -> float:
        return self.seconds

    async def pause(self, seconds: float) -> None:
        await self.moved.wait()
        self.moved.clear()


@dataclass
class Log:
    """An activity log, and the lines that it writes in each second."""

    caplog: pytest.LogCaptureFixture
    clock: SecondsClock = field(default_factory=SecondsClock)

    def __post_init__(self) -> None:
        self.activity = ActivityLog(self.clock)

    def requests(self, count: int, code: str = "202", *, succeeded: bool = True) -> int:
        """Log this many requests; returns how many of them get a line."""
        allows = self.activity.allows_request
        return sum(allows(code, succeeded=succeeded) for _ in range(count))

    async def second(self) -> list[str]:
        """Let a second of real time pass; returns the lines that were written until then."""
        await asyncio.sleep(0)
        self.clock.seconds += 1
        self.clock.moved.set()
        for _ in range(3):
            await asyncio.sleep(0)
        written = [*self.caplog.messages]
        self.caplog.clear()
        return written


@pytest.fixture
async def log(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Log]:
    caplog.set_level(logging.INFO, logger="sandbox_sim.requests")
    log = Log(caplog)
    loop = asyncio.create_task(log.activity.run_forever())
    yield log
    loop.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await loop


async def test_fifty_requests_a_second_get_a_line_each_and_one_line_counts_others(log: Log) -> None:
    for _ in range(3):
        assert log.requests(MAX_LINES_PER_S) == 50
        assert await log.second() == []

    assert log.requests(80) == 50
    log.requests(3, "000")
    for _ in range(2):
        log.activity.allows_acknowledgement()
    (line,) = await log.second()  # without another request too
    assert line == (
        "without a line of their own, because there are more than 50 a second: "
        "3 requests answered 000, 30 requests answered 202, 2 callbacks acknowledged"
    )

    # After a crowded second only one line is written, until one with fewer.
    assert log.requests(80) == 0
    (line,) = await log.second()
    assert line.endswith(": 80 requests answered 202")
    assert log.requests(10) == 0
    await log.second()
    assert log.requests(10) == 10
    assert await log.second() == []


async def test_after_a_pause_each_request_gets_its_line_again(log: Log) -> None:
    log.requests(80)
    await log.second()
    log.clock.seconds += 10

    assert log.requests(10) == 10


async def test_successes_do_not_use_up_the_lines_of_rejections(log: Log) -> None:
    log.requests(200)

    assert log.requests(50, "019", succeeded=False) == 50
    assert log.requests(1, "019", succeeded=False) == 0
    (line,) = await log.second()
    assert line.endswith(": 1 requests answered 019, 150 requests answered 202")


def test_the_option_quiet_logs_successes_at_level_debug() -> None:
    clock = VirtualClock()

    assert ActivityLog(clock).level_of_success == logging.INFO
    assert ActivityLog(clock, quiet=True).level_of_success == logging.DEBUG


async def test_a_receiver_that_refuses_connections_has_one_line_a_second(log: Log) -> None:
    refuse = log.activity.allows_refusal
    assert [refuse("http://shop.test") for _ in range(4)] == [True, False, False, False]
    assert refuse("http://other.test")
    assert await log.second() == [
        "3 more callbacks to http://shop.test within a second: no connection"
    ]

    assert not refuse("http://shop.test")
    assert refuse("http://other.test")
    assert await log.second() == [
        "1 more callbacks to http://shop.test within a second: no connection"
    ]
    assert await log.second() == []
    assert refuse("http://shop.test")
