"""A database of an earlier version is migrated with its records."""

import asyncpg
import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.stores.postgres.postgres_connection import SCHEMA
from sandbox_sim.stores.postgres.postgres_store import PostgresStore
from sandbox_sim.stores.sql import schema
from tests import postgres
from tests.stores.two_ledgers import VERSION, assert_one_ledger, two_ledgers
from tests.stores.versions import know_versions

TODAY = schema.MIGRATIONS


@pytest.mark.decision("D39")
async def test_a_database_of_version_12_gets_one_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    url = postgres.empty_database()
    await postgres.execute(url, "DROP SCHEMA IF EXISTS sandbox_sim CASCADE")
    know_versions(monkeypatch, TODAY[:VERSION])
    before = PostgresStore(url, VirtualClock())
    await before.open()
    await before.close()
    connection = await asyncpg.connect(url, server_settings={"search_path": SCHEMA})
    for table, row in two_ledgers():
        marks = ", ".join(f"${number}" for number in range(1, len(row) + 1))
        await connection.execute(f"INSERT INTO {table} VALUES ({marks})", *row)  # noqa: S608 -- ours
    await connection.close()
    know_versions(monkeypatch, TODAY)

    store = PostgresStore(url, VirtualClock())
    await store.open()
    try:
        await assert_one_ledger(store)
    finally:
        await store.close()
