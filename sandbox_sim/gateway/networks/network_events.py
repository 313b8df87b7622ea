"""Where networks put what does not come as the result of a call: exchanges and notifications."""

import asyncio
import logging
from collections import deque
from typing import Final

from sandbox_sim.domain.networks.exchanges import Exchange
from sandbox_sim.domain.networks.message_parts import MessagePart
from sandbox_sim.gateway.networks.notifications import NetworkNotifications
from sandbox_sim.gateway.ports import STORE_PAUSE_S, Clock, Store, StoreError
from sandbox_sim.gateway.ports.network import Notification

# So many exchanges wait for a store that is away; the oldest are dropped.
MOST_WAITING: Final = 10_000
# Exchanges of so many seconds of real time are saved together; a crash loses those of that time.
TOGETHER_S: Final = 0.05

log = logging.getLogger("sandbox_sim.networks")


class ExchangeLog:
    """Saves scrubbed exchanges in the background, so that no network waits for it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._noted: deque[Exchange] = deque(maxlen=MOST_WAITING)
        self._any = asyncio.Event()

    def note(self, exchange: Exchange) -> None:
        """Remember an exchange; never waits and never fails."""
        self._noted.append(exchange)
        self._any.set()

    async def run_forever(self) -> None:
        """Save exchanges soon after they were noted."""
        while True:
            await self._any.wait()
            await self._clock.pause(TOGETHER_S)
            try:
                await self.save()
            except StoreError as error:
                log.error("exchanges with networks wait for the store: %s", error)  # noqa: TRY400
                await self._clock.pause(STORE_PAUSE_S)

    async def save(self) -> None:
        """Save all noted exchanges. Raises `StoreError`; then they are kept for the next time."""
        self._any.clear()
        noted, self._noted = list(self._noted), deque(maxlen=MOST_WAITING)
        if not noted:
            return
        try:
            await self._store.run(lambda unit: unit.add_exchanges(noted))
        except StoreError:
            self._noted = deque([*noted, *self._noted], maxlen=MOST_WAITING)
            self._any.set()
            raise


class NetworkEventSink:
    """The events of one network, as `NetworkEvents` says."""

    def __init__(
        self, network: str, exchanges: ExchangeLog, notifications: NetworkNotifications
    ) -> None:
        self._network = network
        self._exchanges = exchanges
        self._notifications = notifications

    def exchanged(self, exchange: Exchange) -> None:
        """As `NetworkEvents.exchanged`."""
        self._exchanges.note(exchange)

    async def notified(self, notification: Notification) -> None:
        """As `NetworkEvents.notified`."""
        await self._notifications.notified(self._network, notification)

    async def part_taken(self, attempt_id: str, number: int, total: int, network_id: str) -> None:
        """As `NetworkEvents.part_taken`."""
        part = MessagePart(self._network, attempt_id, number, total, network_id)
        await self._notifications.part_taken(part)
