"""Identifiers and chance."""

from collections.abc import Callable
from typing import Protocol


class Ids(Protocol):
    """Identifiers; each call gives one that was not given before. And chance."""

    first: int  # the number to begin with on a state that none were reserved on

    def use_numbers(self, numbers: range, on_low: Callable[[], None]) -> None:
        """Make every id of these numbers from now on; call `low` when half of them are given."""
        ...

    def network_transaction_id(self) -> str:
        """Eleven digits (D18)."""
        ...

    def record_id(self) -> str:
        """For `processing_id` and `batch_id`."""
        ...

    def request_id(self) -> str:
        """For `X-Sandbox-Request-Id`."""
        ...

    def token(self) -> str:
        """Unguessable, for addresses that are their own key."""
        ...

    def draw(self) -> float:
        """A random number, at least 0 and below 1."""
        ...
