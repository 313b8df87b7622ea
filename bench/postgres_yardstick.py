"""The yardstick of the Postgres store: a bare aiohttp and asyncpg handler with the same statements.

It checks Basic auth, parses the body with orjson, runs the statement of a payment of ours in tables
that a server of ours has made, over as many connections, and answers a fixed 202. In the background
it saves each request in the journal by our statements, as many of them together as we do.
"""

import asyncio
import itertools
import sys
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import asyncpg
import orjson
from aiohttp import web

from bench.requests import AUTHORIZATION
from bench.yardstick import ANSWER
from sandbox_sim.control.journal import ENTRIES_PER_UNIT, SAVE_DELAY_S
from sandbox_sim.records.journal import KEPT_REQUESTS
from sandbox_sim.stores.postgres.postgres_connection import CONNECTIONS, SCHEMA
from sandbox_sim.stores.postgres.postgres_store import with_numbered_parameters
from sandbox_sim.stores.sql import messages
from sandbox_sim.stores.sql.rows import ENTRY

POOL: Final = web.AppKey("pool", asyncpg.Pool)
NOTED: Final = web.AppKey("noted", list[tuple[object, ...]])

_COLUMNS: Final = (
    *("operation", "service_id", "transaction_id", "reference", "amount"),
    *("nw", "party", "payment_mode", "currency_code"),
    *("callback_url", "landing_page", "network_transaction_id", "client_key", "initiated_at"),
    *("status", "by_hand", "mode"),
)
_JOB: Final = ("due_at", "kind", "service_id", "subject", "failures")
_HOUR: Final = 3_600_000_000


def _adding(table: str, columns: tuple[str, ...], first: int) -> str:
    marks = ", ".join(f"${number}" for number in range(first, first + len(columns)))
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {marks} FROM first WHERE is_unused"


STATEMENT: Final = (
    "WITH first AS (SELECT lock_if_unused($1, $2, $3) AS is_unused), "
    f"added0 AS ({_adding('transactions', _COLUMNS, 4)}), "
    f"added1 AS ({_adding('jobs', _JOB, 4 + len(_COLUMNS))}) SELECT is_unused FROM first"
)

_ADD_ENTRY, _COUNT_KEPT, _DELETE_OLDEST, _COUNT_DROPPED = map(
    with_numbered_parameters,
    (messages.ADD_ENTRY, messages.COUNT_KEPT, messages.DELETE_OLDEST["S"], messages.COUNT_DROPPED),
)


async def answer(request: web.Request) -> web.Response:
    if request.headers.get("Authorization") != AUTHORIZATION:
        return web.Response(status=401)
    raw = await request.read()
    body, number = orjson.loads(raw), next(_NUMBERS)
    async with request.app[POOL].acquire() as connection:
        await connection.fetch(STATEMENT, *_values(body, number))
    request.app[NOTED].append(_entry(raw, body, number))
    return web.Response(body=ANSWER, status=202, content_type="application/json")


_NUMBERS: Final = itertools.count(time.time_ns())


def _values(body: dict[str, Any], number: int) -> tuple[object, ...]:
    """The values of `STATEMENT`. number: also the number of the lock, which nothing else takes."""
    now, network_id = time.time_ns() // 1000, f"{number % 10**11:011d}"
    service_id, transaction_id = body["service_id"], body["transaction_id"]
    transaction = (
        *("collect", service_id, transaction_id, body["reference"], str(body["amount"])),
        *(body["nw"], body["customer_number"], body["payment_option"], "GHS"),
        *(body["callback_url"], "", network_id, "sandbox_key", now),
        *("002", 0, "S"),
    )
    job = now + _HOUR, "settle", service_id, network_id, 0
    return (number, service_id, transaction_id, *transaction, *job)


def _entry(raw: bytes, body: dict[str, Any], number: int) -> tuple[object, ...]:
    """The values of `messages.ADD_ENTRY`."""
    given = {
        "id": f"b18f8a9a-{number}",
        "at": time.time_ns() // 1000,
        "service_id": body["service_id"],
        "operation": "collect",
        "transaction_id": body["transaction_id"],
        "method": "POST",
        "path": "/make_payment",
        "request": raw.decode(),
        "http_status": 202,
        "code": "202",
        "rule": "sandbox.3",
        "why": "allowlisted number, last digit 0 to 8",
        "warnings": "[]",
        "answer": ANSWER.decode(),
        "duration_ms": 1.5,
        "mode": "S",
    }
    return tuple(given[name] for name in ENTRY.columns)


async def save_entries(app: web.Application) -> AsyncIterator[None]:
    """Save what was noted, until the end, as `sandbox_sim.control.journal` does."""

    async def save_forever() -> None:
        while True:
            await asyncio.sleep(SAVE_DELAY_S)
            noted, app[NOTED][:] = [*app[NOTED]], []
            for first in range(0, len(noted), ENTRIES_PER_UNIT):
                await _save(app[POOL], noted[first : first + ENTRIES_PER_UNIT])

    app[NOTED] = []
    task = asyncio.create_task(save_forever())
    yield
    task.cancel()


async def _save(pool: asyncpg.Pool, entries: Sequence[tuple[object, ...]]) -> None:
    service_id = entries[0][ENTRY.columns.index("service_id")]
    async with pool.acquire() as connection, connection.transaction():
        await connection.executemany(_ADD_ENTRY, entries)
        kept = await connection.fetchval(_COUNT_KEPT, service_id, "S", len(entries))
        if (excess := kept - KEPT_REQUESTS) > 0:
            await connection.fetch(_DELETE_OLDEST, service_id, excess)
            await connection.fetch(_COUNT_DROPPED, excess, excess, service_id, "S")


async def _no_reset(_connection: object) -> None:
    """Do nothing: a bare handler leaves no state in a session."""


async def pool(app: web.Application) -> AsyncIterator[None]:
    async with asyncpg.create_pool(
        sys.argv[2],
        min_size=0,
        max_size=CONNECTIONS,
        reset=_no_reset,
        server_settings={"search_path": SCHEMA},
    ) as app[POOL]:
        yield


if __name__ == "__main__":
    app = web.Application()
    app.router.add_post("/make_payment", answer)
    app.cleanup_ctx.extend([pool, save_entries])
    web.run_app(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        access_log=None,
        print=lambda _: print("ready", flush=True),
    )
