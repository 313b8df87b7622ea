"""The only place that draws random numbers."""

import itertools
import random
import secrets


class RandomIds:
    """Identifiers that start anywhere; with a `seed` they come out the same every time."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 -- nothing secret is made of it
        self._transactions = itertools.count(self._random.randrange(10**10))
        self._requests = itertools.count(1)
        self._run = f"{self._random.getrandbits(32):08x}"

    def network_transaction_id(self) -> str:
        """Eleven digits, one after another from a random start (D18)."""
        return str(10**10 + next(self._transactions))

    def message_id(self) -> str:
        """Thirty-two hex digits."""
        return f"{self._random.getrandbits(128):032x}"

    def request_id(self) -> str:
        """The run of the server and a number within it."""
        return f"{self._run}-{next(self._requests):x}"

    def token(self) -> str:
        """Unguessable, seed or not."""
        return secrets.token_urlsafe(16)
