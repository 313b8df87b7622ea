"""Random numbers and identifiers; only this module and `people` draw random numbers."""

import itertools
import random
import secrets
import uuid
from collections.abc import Callable
from typing import Final

from sandbox_sim.ports import StoreError

# Network transaction ids have eleven digits and do not begin with 0 (D18); those of seeded records
# begin with 9.
_FIRST_NETWORK_ID: Final = 10**10
_NETWORK_IDS: Final = 8 * 10**10


class RandomIds:
    """Identifiers that start at a random number; with a `seed` they are the same in every run.

    That holds for a new state only: see `use_numbers`.
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
        self._run = f"{self._random.getrandbits(32):08x}"

    def network_transaction_id(self) -> str:
        """Eleven digits, increasing (D18).

        Raises `StoreError` where no reserved numbers are left.
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
        return f"{self._run}{next(self._messages):08x}{self._random.getrandbits(64):016x}"

    def request_id(self) -> str:
        """The run of the server and a number within it."""
        return f"{self._run}-{next(self._requests):x}"

    def token(self) -> str:
        """An unguessable text, even with a seed."""
        return secrets.token_urlsafe(16)

    def uuid(self) -> str:
        """A random UUID, version 4, even with a seed."""
        return str(uuid.uuid4())

    def draw(self) -> float:
        """A random number, at least 0 and below 1."""
        return self._draws.random()
