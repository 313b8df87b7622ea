"""How a callback is sent."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Protocol

from sandbox_sim.domain.callbacks.callbacks import ReceiverResponse


class CallbackSender(Protocol):
    """Sends callbacks over the network."""

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: timedelta,
        on_status: Callable[[], None] = lambda: None,
    ) -> ReceiverResponse:
        """Make one POST; returns the receiver's answer, or one that says what went wrong.

        Raises nothing of the network. timeout: real time for all of it.
        on_status: called as soon as the receiver's HTTP status has arrived.
        """
        ...
