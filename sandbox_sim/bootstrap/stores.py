"""Makes the store that the settings name."""

from sandbox_sim.adapters.stores.memory.memory_store import MemoryStore
from sandbox_sim.adapters.stores.postgres.postgres_url import is_postgres, masked
from sandbox_sim.config import Settings
from sandbox_sim.gateway.ports import AnswerGate, Clock, Relay, Store, StoreError


def store_of(settings: Settings, clock: Clock, gate: AnswerGate) -> tuple[Store, Relay | None]:
    """The store that the settings name, and the relay to other servers if they can share it.

    Imports only what that store needs. Raises `StoreError` if a package for it is not installed.
    """
    if settings.store.startswith("sqlite:"):
        from sandbox_sim.adapters.stores.sqlite.sqlite_store import SqliteStore  # noqa: PLC0415

        return SqliteStore(settings.sqlite_path, clock, settings.durability), None
    if is_postgres(settings.store):
        try:
            from sandbox_sim.adapters.stores.postgres.postgres_store import PostgresStore  # noqa: PLC0415
        except ModuleNotFoundError as error:
            needed = f"a Postgres store needs {error.name}: pip install {error.name}"
            raise StoreError(f"{masked(settings.store)}: {needed}") from None
        store = PostgresStore(settings.store, clock, gate)
        return store, store.relay
    return MemoryStore(clock), None
