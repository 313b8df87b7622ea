"""The answer gate of one process, in memory. `gateway.ports.answer_gate` says what it is for."""

import asyncio
from collections.abc import Callable


class ProcessAnswerGate:
    """The `AnswerGate` of this process.

    An event is made only for a transaction that something waits for: most answers are written
    before their callback is due.
    """

    def __init__(self) -> None:
        self._held: dict[str, asyncio.Event | None] = {}
        self._calls: dict[str, Callable[[], None]] = {}

    def hold(self, network_transaction_id: str) -> None:
        """Hold the callbacks of this transaction until it is released."""
        self._held[network_transaction_id] = None

    def release(self, network_transaction_id: str) -> None:
        """Let the callbacks leave, and run what waits for that."""
        event = self._held.pop(network_transaction_id, None)
        if event is not None:
            event.set()
        act = self._calls.pop(network_transaction_id, None)
        if act is not None:
            act()

    def is_held(self, network_transaction_id: str) -> bool:
        """Whether the answer of this transaction is still to be written."""
        return network_transaction_id in self._held

    def call_when_released(self, network_transaction_id: str, act: Callable[[], None]) -> None:
        """Call `act` on release; at once if the transaction is not held."""
        if network_transaction_id in self._held:
            self._calls[network_transaction_id] = act
        else:
            act()

    async def wait_until_released(self, network_transaction_id: str) -> None:
        """Return when the transaction is not held."""
        if network_transaction_id in self._held:
            event = self._held[network_transaction_id] or asyncio.Event()
            self._held[network_transaction_id] = event
            await event.wait()
