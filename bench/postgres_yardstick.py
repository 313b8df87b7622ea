"""The yardstick of the Postgres store: a bare aiohttp and asyncpg handler with the same statement.

It checks Basic auth, parses the body with orjson, runs the statement of a payment of ours in tables
that a server of ours has made, over as many connections, and answers a fixed 202.
"""

import itertools
import sys
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import asyncpg
import orjson
from aiohttp import web

from bench.requests import AUTHORIZATION
from bench.yardstick import ANSWER
from sandbox_sim.stores.postgres.postgres_connection import CONNECTIONS, SCHEMA

POOL: Final = web.AppKey("pool", asyncpg.Pool)

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


async def answer(request: web.Request) -> web.Response:
    if request.headers.get("Authorization") != AUTHORIZATION:
        return web.Response(status=401)
    body = orjson.loads(await request.read())
    async with request.app[POOL].acquire() as connection:
        await connection.fetch(STATEMENT, *_values(body, next(_NUMBERS)))
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
    app.cleanup_ctx.append(pool)
    web.run_app(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        access_log=None,
        print=lambda _: print("ready", flush=True),
    )
