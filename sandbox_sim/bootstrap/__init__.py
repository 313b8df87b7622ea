"""Builds a gateway from its settings: the only place that connects the parts.

Source: auth.5, D2.
"""

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from sandbox_sim.adapters import tls
from sandbox_sim.adapters.callback_sender import HttpCallbackSender
from sandbox_sim.adapters.clock_and_ids import RandomIds, SystemClock
from sandbox_sim.bootstrap.parts import Gateway
from sandbox_sim.callbacks.delivery_queue import ProcessAnswerGate
from sandbox_sim.ports import AnswerGate, CallbackSender, Clock, Ids, Relay, Store, StoreError
from sandbox_sim.records.transactions import KEPT_IN_A_DATABASE, KEPT_IN_MEMORY
from sandbox_sim.settings.schema import Settings, authority_folder
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.values.hosts import WILDCARD_ADDRESSES, is_postgres, mask_url

if TYPE_CHECKING:
    from sandbox_sim.callbacks.doctor import Doctor, Orders, SamplePayments


__all__ = ["Gateway", "build", "open_doctor", "store_of", "tls_context"]


def store_of(settings: Settings, clock: Clock, gate: AnswerGate) -> tuple[Store, Relay | None]:
    """The store that the settings name, and the relay to other servers if they can share it.

    Imports only what that store needs. Raises `StoreError` if a package for it is not installed.
    """
    keep = settings.keep_transactions
    if settings.store.startswith("sqlite:"):
        from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore  # noqa: PLC0415

        try:
            path = settings.sqlite_path
        except OSError as error:
            raise StoreError(str(error)) from None
        return SqliteStore(path, clock, settings.durability, keep or KEPT_IN_A_DATABASE), None
    if is_postgres(settings.store):
        try:
            from sandbox_sim.stores.postgres.postgres_store import PostgresStore  # noqa: PLC0415
        except ModuleNotFoundError as error:
            needed = f"a Postgres store needs {error.name}: pip install {error.name}"
            raise StoreError(f"{mask_url(settings.store)}: {needed}") from None
        kept = keep or KEPT_IN_A_DATABASE
        store = PostgresStore(settings.store, clock, gate, keep_transactions=kept)
        return store, store.relay
    return MemoryStore(clock, keep or KEPT_IN_MEMORY), None


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """The context of the server; None where it speaks plain HTTP.

    Raises `TlsError` if the certificate cannot be read or made.
    """
    if settings.cert and settings.key:
        return tls.from_files(settings.cert, settings.key)
    if not settings.tls:
        return None
    hosts = [] if settings.host in WILDCARD_ADDRESSES else [settings.host]
    names = [*hosts, *(each.name for each in settings.listed_hosts())]
    return tls.for_development(authority_folder(), names, SystemClock().now())


def build(
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    sender: CallbackSender | None = None,
) -> Gateway:
    """Build a gateway. A part that is not given is the real one.

    Raises `StoreError` if the store of the settings needs a package that is not installed.
    """
    settings = settings or Settings()
    clock = clock or SystemClock()
    gate = ProcessAnswerGate()
    store, relay = store_of(settings, clock, gate)
    return Gateway(settings, clock, ids or RandomIds(), store, relay, gate, sender)


@contextlib.asynccontextmanager
async def open_doctor(
    orders: "Orders | None" = None, payments: "SamplePayments | None" = None
) -> AsyncIterator["Doctor"]:
    """A `Doctor` with an HTTP session of its own; only `payments` needs a running gateway."""
    from sandbox_sim.callbacks.doctor import Doctor  # noqa: PLC0415 -- serve starts without it

    clock = SystemClock()
    async with HttpCallbackSender(clock) as sender:
        yield Doctor(sender, clock, RandomIds(), orders, payments)
