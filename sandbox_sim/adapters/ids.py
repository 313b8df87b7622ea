"""The only place that draws random numbers, beside the made-up people."""

import itertools
import random
import secrets
from collections.abc import Iterator


class RandomIds:
    """Identifiers that start anywhere; with a `seed` they come out the same every time.

    network_numbers: of eleven digits, where somebody else sees to it that they are unique.
    """

    def __init__(
        self, seed: int | None = None, network_numbers: Iterator[int] | None = None
    ) -> None:
        self._random = random.Random(seed)  # noqa: S311 -- nothing secret is made of it
        first = 10**10 + self._random.randrange(10**10)
        self._transactions = network_numbers or itertools.count(first)
        self._requests = itertools.count(1)
        self._chance = random.Random(seed)  # noqa: S311 -- of its own: no id changes by a draw
        self._run = f"{self._random.getrandbits(32):08x}"

    def network_transaction_id(self) -> str:
        """Eleven digits, by default one after another from a random start (D18)."""
        return str(next(self._transactions))

    def message_id(self) -> str:
        """Thirty-two hex digits."""
        return f"{self._random.getrandbits(128):032x}"

    def request_id(self) -> str:
        """The run of the server and a number within it."""
        return f"{self._run}-{next(self._requests):x}"

    def token(self) -> str:
        """Unguessable, seed or not."""
        return secrets.token_urlsafe(16)

    def draw(self) -> float:
        """At least 0 and below 1."""
        return self._chance.random()
