"""Reads the double-entry books of our gateway from its database, after its servers have stopped."""

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

from chaos.production.observations import Books, Entry

_WALLETS = "SELECT name, service_id, available, pending FROM wallets WHERE mode = 'P'"
_TRANSFERS = (
    "SELECT t.number, t.kind, t.debit, t.credit, t.amount, t.subject, t.pending, t.reason, "
    'm."by", m.why FROM transfers t LEFT JOIN manual_entries m ON m.transfer = t.number '
    "WHERE t.mode = 'P' ORDER BY t.number"
)
_ATTEMPTS = (
    "SELECT network_transaction_id, service_id, transaction_id, amount, confirmed_amount, mismatch "
    "FROM attempts ORDER BY serial"
)
_DECISIONS = (
    'SELECT a.service_id, d."by", d.reason, a.transaction_id, d.status FROM decisions d '
    "JOIN attempts a ON a.id = d.attempt_id ORDER BY d.number"
)
_REFUNDS = (
    "SELECT service_id, refunded_by, refund_reason, transaction_id FROM transactions "
    "WHERE mode = 'P' AND refund_of IS NOT NULL ORDER BY number"
)
_ALL = (_WALLETS, _TRANSFERS, _ATTEMPTS, _DECISIONS, _REFUNDS)
# What only a person enters.
_BY_HAND = {"resolved", "adjusted", "undone", "closed", "topup"}

Rows = Sequence[Any]  # tuples, or records of asyncpg


async def read(store: str, services: Collection[int]) -> Books:
    """The books in a store, as `--store` names it. services: those of this run."""
    if store.startswith("sqlite:"):
        path = Path(store.removeprefix("sqlite:"))
        with closing(sqlite3.connect(path)) as database:
            return _books([database.execute(query).fetchall() for query in _ALL], services)
    # Imported only here, because a run on SQLite needs no asyncpg.
    import asyncpg  # noqa: PLC0415

    from sandbox_sim.stores.postgres.postgres_connection import SCHEMA  # noqa: PLC0415

    connection = await asyncpg.connect(store, server_settings={"search_path": SCHEMA})
    try:
        return _books([await connection.fetch(query) for query in _ALL], services)
    finally:
        await connection.close()


def _books(tables: Sequence[Rows], services: Collection[int]) -> Books:
    wallets, transfers, attempts, decisions, refunds = tables
    books = Books()
    _add_up(books, wallets, transfers, services)
    names = {}
    for subject, service, name, amount, confirmed, mismatch in attempts:
        if service in services:
            names[subject] = name
            books.asked[name] = Decimal(amount)
            books.moved[name] = Decimal(confirmed or amount)
            if mismatch:
                books.doubted.add(name)
    for service, by, why, name, *status in (*decisions, *refunds):
        if service in services:
            books.entries.append(Entry(by, why, service, name, *status))
    for transfer in transfers:
        _enter(books, transfer, names, services)
    return books


def _add_up(books: Books, wallets: Rows, transfers: Rows, services: Collection[int]) -> None:
    """Compare the balances with what the transfers sum to, and find what is held."""
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    ended = {each[6] for each in transfers}
    for number, kind, debit, credit, text, subject, *_ in transfers:
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


def _enter(books: Books, transfer: Any, names: dict[str, str], services: Collection[int]) -> None:
    """Note what one transfer does that is more than the network and the clients did."""
    _, kind, debit, credit, text, subject, _, reason, by, why = transfer
    if kind not in {"posted", "post"}:
        return
    amount, name = Decimal(text), names.get(subject, "")
    into, out = (_service_of(each) in services for each in (credit, debit))
    if (into or out) and (reason in _BY_HAND or by is not None):
        service, wallet = _wallet_of(credit if into else debit)
        signed = amount if into else -amount
        entry = Entry(by or "", why or "", service, wallet=wallet, amount=signed)
        books.entries.append(entry)
    elif by is not None and (name or not subject):
        books.entries.append(Entry(by, why))
    if not name:
        return
    if reason == "collected":
        books.collected[name] = books.collected.get(name, Decimal(0)) + amount
    for account, signed in ((credit, amount), (debit, -amount)):
        if account.startswith("suspense/"):
            books.in_suspense += signed
            if by is None:
                books.suspended[name] = books.suspended.get(name, Decimal(0)) + signed


def _service_of(name: str) -> int:
    """The service of a wallet, by its name; 0 for an account of ours."""
    return _wallet_of(name)[0]


def _wallet_of(name: str) -> tuple[int, str]:
    """The service and the wallet that an account is; 0 and nothing for an account of ours."""
    first, _, rest = name.partition("/")
    if first != "service":
        return 0, ""
    service, wallet, _ = rest.split("/", 2)
    return int(service), wallet
