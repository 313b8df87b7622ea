"""How a callback is sent."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Protocol

from sandbox_sim.domain.callbacks.callbacks import ReceiverResponse


class CallbackSender(Protocol):
    """How a callback leaves the house."""

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: timedelta,
        on_status: Callable[[], None] = lambda: None,
    ) -> ReceiverResponse:
        """One POST. Whatever goes wrong comes back as an answer that says so; nothing raises.

        on_status: called as soon as the receiver's HTTP status is there.
        """
        ...
