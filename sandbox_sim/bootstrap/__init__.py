"""Builds a gateway from its settings: the only place that connects the parts."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

from sandbox_sim.adapters.callback_sender import HttpCallbackSender
from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.bootstrap.parts import Parts
from sandbox_sim.bootstrap.stores import store_of
from sandbox_sim.config import Settings
from sandbox_sim.gateway.callbacks.answer_gate import ProcessAnswerGate
from sandbox_sim.gateway.callbacks.callback_dispatcher import CallbackDispatcher
from sandbox_sim.gateway.control.callback_retries import CallbackRetries
from sandbox_sim.gateway.control.clock_control import ClockControl
from sandbox_sim.gateway.control.journal import Journal
from sandbox_sim.gateway.control.manual_actions import ManualActions
from sandbox_sim.gateway.control.wait_for_change import ChangeWaiter
from sandbox_sim.gateway.ports import CallbackSender, Clock, Ids, Relay, Store
from sandbox_sim.gateway.scheduler import Scheduler

if TYPE_CHECKING:
    from sandbox_sim.gateway.callbacks.doctor import Doctor, Orders


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway and its parts. `app` starts and stops the background tasks with itself.

    store: writing to it directly publishes no events.
    """

    app: web.Application
    store: Store
    clock: Clock
    jobs: Scheduler
    deliveries: CallbackDispatcher
    journal: Journal
    watch: ChangeWaiter
    manual_actions: ManualActions
    callback_retries: CallbackRetries
    clock_control: ClockControl


def build(
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    store: Store | None = None,
    sender: CallbackSender | None = None,
) -> Gateway:
    """Build a gateway. A part that is not given is the real one.

    Raises `StoreError` if the store of the settings needs a package that is not installed.
    """
    settings = settings or Settings()
    clock = clock or SystemClock()
    gate = ProcessAnswerGate()
    relay: Relay | None = None
    if store is None:
        store, relay = store_of(settings, clock, gate)
    parts = Parts(settings, clock, ids or RandomIds(), store, relay, gate, sender)
    return Gateway(
        parts.app(),
        store,
        clock,
        parts.jobs,
        parts.deliveries,
        parts.journal,
        parts.watch,
        parts.manual_actions,
        parts.callback_retries,
        parts.clock_control,
    )


@contextlib.asynccontextmanager
async def open_doctor(orders: "Orders | None" = None) -> AsyncIterator["Doctor"]:
    """A `Doctor` with an HTTP session of its own; it needs no running gateway."""
    from sandbox_sim.gateway.callbacks.doctor import Doctor  # noqa: PLC0415 -- serve starts without it

    clock = SystemClock()
    async with HttpCallbackSender(clock) as sender:
        yield Doctor(sender, clock, RandomIds(), orders)
