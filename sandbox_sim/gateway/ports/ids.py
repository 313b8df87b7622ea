"""Identifiers and random numbers."""

from collections.abc import Callable
from typing import Protocol


class Ids(Protocol):
    """Identifiers, of which each call returns a new one, and random numbers.

    first: the number to begin with on a state that none were reserved on.
    """

    first: int

    def take(self, numbers: range, low: Callable[[], None]) -> None:
        """Make every id from these numbers; call `low` once when half of them are used."""
        ...

    def network_transaction_id(self) -> str:
        """Eleven digits (D18)."""
        ...

    def message_id(self) -> str:
        """For `processing_id`, `batch_id`, and the ids of callbacks and user rules."""
        ...

    def request_id(self) -> str:
        """For `X-Sandbox-Request-Id`."""
        ...

    def token(self) -> str:
        """An id that nobody can guess, for addresses that work without credentials."""
        ...

    def draw(self) -> float:
        """A random number, at least 0 and below 1."""
        ...
