"""Reads the double-entry books of our gateway from its database, after its servers have stopped."""

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

from chaos.production.observations import Books

_ACCOUNTS = "SELECT name, kind, asset, service_id, wallet, balance FROM accounts"
_LEGS = "SELECT account, amount FROM legs"
_HOLDS = "SELECT id, service_id FROM holds WHERE state = 'open'"

Rows = Sequence[Any]  # tuples, or records of asyncpg


async def read(store: str, services: Collection[int]) -> Books:
    """The books in a store, as `--store` names it. services: those of this run."""
    if store.startswith("sqlite:"):
        return _books(*_of_sqlite(Path(store.removeprefix("sqlite:"))), services)
    return _books(*await _of_postgres(store), services)


def _of_sqlite(path: Path) -> tuple[Rows, Rows, Rows]:
    with closing(sqlite3.connect(path)) as database:
        accounts, legs, holds = (
            database.execute(query).fetchall() for query in (_ACCOUNTS, _LEGS, _HOLDS)
        )
    return accounts, legs, holds


async def _of_postgres(dsn: str) -> tuple[Rows, Rows, Rows]:
    # Imported only here, because a run on SQLite needs no asyncpg.
    import asyncpg  # noqa: PLC0415

    from sandbox_sim.adapters.stores.postgres.postgres_connection import (  # noqa: PLC0415
        SCHEMA,
    )

    connection = await asyncpg.connect(dsn, server_settings={"search_path": SCHEMA})
    try:
        accounts, legs, holds = [
            await connection.fetch(query) for query in (_ACCOUNTS, _LEGS, _HOLDS)
        ]
    finally:
        await connection.close()
    return accounts, legs, holds


def _books(accounts: Rows, legs: Rows, holds: Rows, services: Collection[int]) -> Books:
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    for name, amount in legs:
        sums[name] += Decimal(amount)
    books = Books(open_holds=[each for each, service in holds if service in services])
    for name, kind, asset, service, wallet, text in accounts:
        balance = Decimal(text)
        books.assets[asset] = books.assets.get(asset, Decimal(0)) + balance
        if balance != sums.pop(name, Decimal(0)):
            books.wrong.append(name)
        if service in services and kind == "available":
            books.available[service, wallet] = balance
        if service in services and kind == "held":
            books.held[service] = books.held.get(service, Decimal(0)) + balance
    books.wrong += [name for name, total in sums.items() if total]
    return books
