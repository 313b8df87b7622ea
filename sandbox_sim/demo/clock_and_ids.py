"""The time of the shop, which tests replace so that they never wait, and its random ids."""

import asyncio
import secrets
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits."""

    def now(self) -> datetime:
        """The time, in UTC."""

    async def sleep(self, seconds: float) -> None:
        """Wait for this time."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """The time, in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait for this time."""
        await asyncio.sleep(seconds)


def order_key() -> str:
    """The secret part of the address of an order: 22 characters that are safe in a URL."""
    return secrets.token_urlsafe(16)


def new_transaction_id(order_number: int) -> str:
    """A new `transaction_id`, unique over restarts of the shop too.

    Each payment of an order has its own, because for the gateway the same id means a repeat.
    """
    return f"SHOP-{order_number}-{secrets.token_hex(4)}"
