"""Identifiers and random numbers."""

from collections.abc import Callable
from typing import Protocol


class Ids(Protocol):
    """Identifiers, of which each call returns a new one, and random numbers.

    first: the number to begin with on a state that none were reserved on.
    """

    first: int

    def use_numbers(self, numbers: range, on_low: Callable[[], None]) -> None:
        """Make every id from these numbers; call `on_low` once when half of them are used."""
        ...

    def network_transaction_id(self) -> str:
        """Eleven digits (D18)."""
        ...

    def record_id(self) -> str:
        """For `processing_id`, `batch_id`, and the ids of callbacks, user rules and deliveries."""
        ...

    def request_id(self) -> str:
        """For `X-Sandbox-Request-Id`."""
        ...

    def token(self) -> str:
        """An id that cannot be guessed, for addresses that work without credentials."""
        ...

    def uuid(self) -> str:
        """A UUID, version 4, that cannot be guessed."""
        ...

    def draw(self) -> float:
        """A random number, at least 0 and below 1."""
        ...
