"""The measurements for Prometheus: counts of this process, and of the store for all processes.

Requests, attempts at callbacks, submits and breakers are those of this process, since it started.
Open attempts and jobs are those of the store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sandbox_sim.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.events.activity_log import ActivityLog
from sandbox_sim.ports import Clock, Store, StoreError, Unit
from sandbox_sim.production.network_overview import (
    NetworkOverview,
    NetworkState,
    StoredCounts,
    stored_counts,
)
from sandbox_sim.records.callbacks import DeliveryState

MAX_FAILING: Final = 1_000


class StoreMeasurement(NamedTuple):
    """The counts of the store, and how long reading them took.

    late_s: how long the earliest unclaimed job is overdue, in seconds of gateway time.
    failing: how many jobs failed three times or more; `MAX_FAILING` at most.
    duration_s: of the reads, in real time.
    """

    late_s: float
    failing: int
    duration_s: float


class Measurements(NamedTuple):
    """The numbers at one moment.

    requests: how many requests were answered, by path and response code.
    callback_attempts: how many attempts at callbacks were recorded, by the state that followed.
    store: None if it could not be read; the number of open attempts is then unknown too.
    """

    requests: Mapping[tuple[str, str], int]
    callback_attempts: Mapping[DeliveryState, int]
    callbacks_waiting: int
    store: StoreMeasurement | None
    networks: Sequence[NetworkState]


@dataclass(eq=False, repr=False)
class Metering:
    """Takes the measurements."""

    store: Store
    clock: Clock
    activity: ActivityLog
    callbacks: CallbackDispatcher
    networks: NetworkOverview

    async def measure(self) -> Measurements:
        """The numbers now. Does not raise if the store is unavailable; `store` is then None."""
        began = self.clock.monotonic()
        store, counts = None, StoredCounts()
        try:
            late_s, failing, counts = await self.store.run(self._read)
            store = StoreMeasurement(late_s, failing, self.clock.monotonic() - began)
        except StoreError:
            pass
        return Measurements(
            self.activity.requests,
            self.activity.callback_attempts,
            self.callbacks.waiting,
            store,
            self.networks.states_with(counts),
        )

    async def _read(self, unit: Unit) -> tuple[float, int, StoredCounts]:
        due = await unit.next_due()
        late_s = 0.0 if due is None else (self.clock.now() - due).total_seconds()
        failing = len(await unit.failed_jobs(MAX_FAILING))
        return max(late_s, 0.0), failing, await stored_counts(unit)
