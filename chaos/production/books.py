"""Reads the double-entry books of our gateway from its database, after its servers have stopped."""

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

from chaos.production.observations import Books

_WALLETS = "SELECT name, service_id, available, pending FROM wallets WHERE mode = 'P'"
_TRANSFERS = (
    "SELECT number, kind, debit, credit, amount, subject, pending FROM transfers WHERE mode = 'P'"
)

Rows = Sequence[Any]  # tuples, or records of asyncpg


async def read(store: str, services: Collection[int]) -> Books:
    """The books in a store, as `--store` names it. services: those of this run."""
    if store.startswith("sqlite:"):
        return _books(*_of_sqlite(Path(store.removeprefix("sqlite:"))), services)
    return _books(*await _of_postgres(store), services)


def _of_sqlite(path: Path) -> tuple[Rows, Rows]:
    with closing(sqlite3.connect(path)) as database:
        wallets, transfers = (
            database.execute(query).fetchall() for query in (_WALLETS, _TRANSFERS)
        )
    return wallets, transfers


async def _of_postgres(dsn: str) -> tuple[Rows, Rows]:
    # Imported only here, because a run on SQLite needs no asyncpg.
    import asyncpg  # noqa: PLC0415

    from sandbox_sim.stores.postgres.postgres_connection import SCHEMA  # noqa: PLC0415

    connection = await asyncpg.connect(dsn, server_settings={"search_path": SCHEMA})
    try:
        wallets, transfers = [await connection.fetch(query) for query in (_WALLETS, _TRANSFERS)]
    finally:
        await connection.close()
    return wallets, transfers


def _books(wallets: Rows, transfers: Rows, services: Collection[int]) -> Books:
    books = Books()
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    ended = {each[-1] for each in transfers}
    for number, kind, debit, credit, text, subject, _ in transfers:
        amount, service = Decimal(text), _service_of(debit)
        if kind in {"posted", "post"}:
            sums[debit] -= amount
            sums[credit] += amount
        elif kind == "pending" and number not in ended and service in services:
            books.open_holds.append(subject)
    for name, service, available, pending in wallets:
        _, _, wallet, asset = name.split("/", 3)
        balance = Decimal(available) + Decimal(pending)
        books.assets[asset] = books.assets.get(asset, Decimal(0)) + balance
        if balance != sums.pop(name, Decimal(0)):
            books.wrong.append(name)
        if service in services:
            books.available[service, wallet] = Decimal(available)
            books.held[service] = books.held.get(service, Decimal(0)) + Decimal(pending)
    for name, total in sums.items():
        if _service_of(name):
            books.wrong.append(name)  # a wallet without a balance
        asset = name.rpartition("/")[2]
        books.assets[asset] = books.assets.get(asset, Decimal(0)) + total
    return books


def _service_of(name: str) -> int:
    """The service of a wallet, by its name; 0 for an account of ours."""
    first, _, rest = name.partition("/")
    return int(rest.partition("/")[0]) if first == "service" else 0
