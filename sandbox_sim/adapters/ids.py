"""The only place that draws random numbers, beside the made-up people."""

import itertools
import random
import secrets
from collections.abc import Callable
from typing import Final

from sandbox_sim.gateway.ports import StoreError

# Network transaction ids have eleven digits, and the first is no 0 (D18); those of made-up people
# begin with 9.
_FIRST_NETWORK_ID: Final = 10**10
_NETWORK_IDS: Final = 8 * 10**10


class RandomIds:
    """Identifiers that start anywhere; with a `seed` they come out the same every time.

    The same, that is, on a state that is new: see `take`.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 -- nothing secret is made of it
        self._chance = random.Random(seed)  # noqa: S311 -- of its own: no id changes by a draw
        self._requests = itertools.count(1)
        self._messages = itertools.count(1)
        self.first = self._random.randrange(10**10)
        self.take(range(self.first, self.first + _NETWORK_IDS), low=lambda: None)

    def take(self, numbers: range, low: Callable[[], None]) -> None:
        """From now on give ids of these numbers, all of them unlike those of other numbers."""
        self._numbers = iter(numbers)
        self._low_at, self._low = numbers[len(numbers) // 2], low
        self._random.seed(f"{self._random.getrandbits(128)} {numbers.start}")
        self._run = f"{self._random.getrandbits(32):08x}"

    def network_transaction_id(self) -> str:
        """Eleven digits, one after another (D18)."""
        number = next(self._numbers, None)
        if number is None:
            raise StoreError("no network transaction ids are left until the store is back")
        if number == self._low_at:
            self._low()
        return str(_FIRST_NETWORK_ID + number % _NETWORK_IDS)

    def message_id(self) -> str:
        """Thirty-two hex digits; those of one run of the server are in the order it gave them.

        So a database puts what is new in one place of its index.
        """
        return f"{self._run}{next(self._messages):08x}{self._random.getrandbits(64):016x}"

    def request_id(self) -> str:
        """The run of the server and a number within it."""
        return f"{self._run}-{next(self._requests):x}"

    def token(self) -> str:
        """Unguessable, seed or not."""
        return secrets.token_urlsafe(16)

    def draw(self) -> float:
        """At least 0 and below 1."""
        return self._chance.random()
