"""Identifiers and random numbers, and the reservation of numbers so that no id is used twice.

Source: D18.

A server reserves numbers in the store before it uses its first id, and makes all ids from them.
When half of them are used it reserves more. So a new id costs no query, and no two servers or
starts on the same state use the same id.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from sandbox_sim.ports.clock import Clock
from sandbox_sim.ports.store import STORE_PAUSE_S, Store, StoreError


class Ids(Protocol):
    """Makes identifiers, a new one with each call, and random numbers.

    first: the number that a new store begins with.
    """

    first: int

    def use_numbers(self, numbers: range, on_low: Callable[[], None]) -> None:
        """Make all further ids from these numbers; call `on_low` once when half are used."""

    def network_transaction_id(self) -> str:
        """Eleven digits (D18)."""

    def record_id(self) -> str:
        """For `processing_id`, `batch_id`, and the ids of callbacks, user rules and deliveries."""

    def request_id(self) -> str:
        """For `X-Sandbox-Request-Id`."""

    def token(self) -> str:
        """An id that cannot be guessed, for addresses that work without credentials."""

    def uuid(self) -> str:
        """A UUID, version 4, that cannot be guessed."""

    def draw(self) -> float:
        """A random number, at least 0 and below 1."""


RESERVED_AT_ONCE: Final = 10**6


log = logging.getLogger("sandbox_sim.store")


class IdAllocation:
    """Reserves numbers for the ids of this server."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._low = asyncio.Event()

    async def reserve(self) -> None:
        """Reserve numbers; call it before the first id is used. Raises `StoreError`."""
        ids, count = self._ids, RESERVED_AT_ONCE
        first = await self._store.run(lambda unit: unit.reserve(ids.first, count))
        self._low.clear()
        ids.use_numbers(range(first, first + count), self._low.set)

    async def run_forever(self) -> None:
        """Reserve more numbers each time half of them are used; never returns."""
        while True:
            await self._low.wait()
            try:
                await self.reserve()
            except StoreError as error:
                log.warning("no more ids could be reserved, trying again: %s", error)
                await self._clock.pause(STORE_PAUSE_S)
