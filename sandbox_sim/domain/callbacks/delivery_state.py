"""The states of a callback: pending, retrying, delivered, failed and dropped (D30)."""

from enum import StrEnum


class DeliveryState(StrEnum):
    """The state of a callback."""

    PENDING = "pending"  # never tried
    RETRYING = "retrying"  # tried, and another attempt follows
    DELIVERED = "delivered"
    FAILED = "failed"
    DROPPED = "dropped"  # an override keeps it from being sent

    @property
    def is_waiting(self) -> bool:
        """Whether an attempt is still to come."""
        return self is DeliveryState.PENDING or self is DeliveryState.RETRYING

    @property
    def is_unacknowledged(self) -> bool:
        """Whether the receiver was called and has not acknowledged."""
        return self is DeliveryState.RETRYING or self is DeliveryState.FAILED


def waiting_state(*, tried: bool) -> DeliveryState:
    """The state of a callback that waits for an attempt."""
    return DeliveryState.RETRYING if tried else DeliveryState.PENDING
