"""The clock, and random numbers and ids: the only module that reads the time or sleeps.

Only this module and `people` draw random numbers.
"""

import asyncio
import itertools
import random
import secrets
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from sandbox_sim.ports import StoreError
from sandbox_sim.ports.clock import ClockState

# Shortest wait, so that jobs that fall due within this time run together.
RESOLUTION_S: Final = 0.005
# Longest wait: no event reports that the machine was suspended or its time was changed.
RECHECK_S: Final = 60.0


class SystemClock:
    """Gateway time is the machine's time, unless it is shifted or frozen.

    frozen_at: freezes the clock at this time from the start.
    """

    def __init__(self, frozen_at: datetime | None = None) -> None:
        self._state = ClockState(frozen_at=frozen_at)
        self._wake_events: set[asyncio.Event] = set()

    @property
    def state(self) -> ClockState:
        """How the clock is set."""
        return self._state

    def now(self) -> datetime:
        """Gateway time, in UTC."""
        return self._state.now(datetime.now(UTC))

    def machine_now(self) -> datetime:
        """The machine's time, in UTC, however gateway time is set."""
        return datetime.now(UTC)

    # Real time in seconds, for durations only.
    monotonic = staticmethod(time.monotonic)

    def set_to(self, state: ClockState) -> None:
        """Set the clock to the state of another one and wake all waiting tasks."""
        self._state = state
        for event in self._wake_events:
            event.set()

    def move_to(self, moment: datetime) -> None:
        """Set gateway time to this moment; a frozen clock stays frozen."""
        self.set_to(self._state.moved(moment - self.now()))

    def freeze(self) -> None:
        """Stop gateway time."""
        self.set_to(self._state.frozen(datetime.now(UTC)))

    def resume(self) -> None:
        """Let gateway time run again, from the time it shows."""
        self.set_to(self._state.resumed(datetime.now(UTC)))

    async def pause(self, seconds: float) -> None:
        """Sleep in real time."""
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """A time limit in real time for an `async with`; None for one that is set later."""
        return asyncio.timeout(seconds)

    async def wait_at_most(self, wake: asyncio.Event, seconds: float) -> None:
        """Wait until `wake` is set, for at most this many seconds of real time."""
        await self._wait(wake, seconds)

    async def wait(self, wake: asyncio.Event, until: datetime | None) -> None:
        """Wait until `wake` is set or gateway time reaches `until`.

        It also returns when the clock is set, and after a minute, so callers must check the time
        again.
        """
        seconds = None
        if until is not None:
            remaining_s = (until - self.now()).total_seconds()
            if remaining_s <= 0 or self._state.frozen_at is None:
                seconds = min(max(remaining_s, RESOLUTION_S), RECHECK_S)
        await self._wait(wake, seconds)

    async def _wait(self, wake: asyncio.Event, seconds: float | None) -> None:
        self._wake_events.add(wake)
        try:
            async with asyncio.timeout(seconds):
                await wake.wait()
        except TimeoutError:
            pass
        finally:
            self._wake_events.discard(wake)


class VirtualClock(SystemClock):
    """A clock for tests: frozen from the start, and `pause` does not wait."""

    def __init__(self, frozen_at: datetime = datetime(2026, 1, 1, 9, tzinfo=UTC)) -> None:
        super().__init__(frozen_at)

    async def pause(self, seconds: float) -> None:
        """Let other tasks run, without waiting."""
        await asyncio.sleep(0)


# Network transaction ids have eleven digits and do not begin with 0 (D18); those of seeded records
# begin with 9.
_FIRST_NETWORK_ID: Final = 10**10
_NETWORK_IDS: Final = 8 * 10**10

# Makes a hex digit a letter. With letters at two places no id has the thirteen digits in a row that
# a card number has at least, so none is masked.
_A_LETTER: Final = 0xA


class RandomIds:
    """Identifiers that start at a random number; with a `seed` they are the same in every run.

    A store that already has records continues after their numbers: see `use_numbers`.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 -- no secret is derived from it
        self._draws = random.Random(seed)  # noqa: S311 -- separate, so draws change no id
        self._requests = itertools.count(1)
        self._messages = itertools.count(1)
        self.first = self._random.randrange(10**10)
        self.use_numbers(range(self.first, self.first + _NETWORK_IDS), on_low=lambda: None)

    def use_numbers(self, numbers: range, on_low: Callable[[], None]) -> None:
        """Derive all further ids from these numbers; ids of different numbers never repeat.

        on_low: called when half of the numbers are used.
        """
        self._numbers = iter(numbers)
        self._low_at, self._on_low = numbers[len(numbers) // 2], on_low
        self._random.seed(f"{self._random.getrandbits(128)} {numbers.start}")
        self._run_id = f"{self._random.getrandbits(32) | _A_LETTER:08x}"

    def network_transaction_id(self) -> str:
        """Eleven digits, increasing (D18).

        Raises `StoreError` if all reserved numbers are used.
        """
        number = next(self._numbers, None)
        if number is None:
            raise StoreError("no network transaction ids are left until the store is back")
        if number == self._low_at:
            self._on_low()
        return str(_FIRST_NETWORK_ID + number % _NETWORK_IDS)

    def record_id(self) -> str:
        """Thirty-two hex digits that increase within a run of the server.

        So a database adds new records at one place of its index.
        """
        number = next(self._messages) << 64 | self._random.getrandbits(64) | _A_LETTER << 44
        return f"{self._run_id}{number:024x}"

    def request_id(self) -> str:
        """The run of the server and a number within it."""
        return f"{self._run_id}-{next(self._requests):x}"

    def token(self) -> str:
        """An unguessable text, even with a seed."""
        return secrets.token_urlsafe(16)

    def uuid(self) -> str:
        """A random UUID, version 4, even with a seed."""
        return str(uuid.uuid4())

    def draw(self) -> float:
        """A random number, at least 0 and below 1."""
        return self._draws.random()
