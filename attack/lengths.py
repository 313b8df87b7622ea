"""Values that are longer than a column of Postgres takes, on each store: refused by name (D43)."""

import asyncio
import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from attack.plan import Plan
from attack.results import Result, at_most, none_of
from attack.servers import serving
from attack.wire import KeptConnection, Response, request_bytes
from tests.kit.postgres import databases
from tests.kit.requests import OPERATIONS

_LENGTHS: Final = (3_000, 7_000, 60_000)
# The fields of the interface that have a length, each with what it must not exceed.
_FIELDS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("transaction_id", "account_number", "sender_id", "batch_id"), 255),
    **dict.fromkeys(("reference", "nickname"), 1_000),
    "msg_body": 10_000,
}


async def attack(plan: Plan) -> list[Result]:
    """Send each value to a server on each store; on Postgres if there is a server."""
    stores = {"SQLite": f"sqlite:{plan.directory / 'state.sqlite3'}"}
    async with databases(plan.directory, "lengths") as made:
        stores.update(("Postgres", dsn) for dsn in made.values())
        found = await asyncio.gather(*(_answers(plan, *each) for each in stores.items()))
    first = found[0][0]
    not_refused = [
        f"{store}: {what}: HTTP {each.status} {each.body[:100]!r}"
        for store, (answers, _) in zip(stores, found, strict=True)
        for what, each in answers.items()
        if not _is_refusal(what, each)
    ]
    different = [
        f"{what}: HTTP {answers[what].status} and HTTP {each.status}"
        for answers, _ in found
        for what, each in first.items()
        if (each.status, each.body) != (answers[what].status, answers[what].body)
    ]
    name, tracebacks = f"lengths on {' and '.join(stores)}:", sum(each for _, each in found)
    return [
        none_of(f"{name} not refused by name with 400", not_refused, len(first)),
        none_of(f"{name} answered otherwise by another store", different, len(first)),
        at_most(f"{name} tracebacks in the log", tracebacks, 0),
    ]


async def _answers(plan: Plan, name: str, store: str) -> tuple[dict[str, Response], int]:
    """The answers of a server on this store, by what was sent, and the tracebacks in its log."""
    async with serving(plan.directory / f"{name}.log", store=store) as server:
        connection = KeptConnection(server.port)
        answers = {what: await connection.send(request) for what, request in _requests().items()}
        connection.close()
        return answers, server.tracebacks


def _requests() -> dict[str, bytes]:
    """A request for each field, operation and length, and for each name of ours in a path."""
    found = {}
    for name, operation in OPERATIONS.items():
        for field, most in _FIELDS.items():
            for length in _LENGTHS if field in operation.body else ():
                if length > most:
                    body = json.dumps({**operation.body, field: "x" * length}).encode()
                    found[f"{name}.{field} of {length}"] = request_bytes(operation.path, body)
    for length in _LENGTHS[:2]:  # HTTP has no longer first line
        text = quote("é" * (length // 6))
        found[f"name of an inbox of {length}"] = request_bytes(f"/_sandbox/inbox/{text}", {})
        snapshot = {"name": "x" * length}
        found[f"name of a snapshot of {length}"] = request_bytes("/_sandbox/snapshots", snapshot)
    return found


def _is_refusal(what: str, answer: Response) -> bool:
    """Whether it is HTTP 400, or HTTP 200 with code 400 for an SMS, and names the field."""
    field = what.partition(" ")[0].rpartition(".")[2].encode()
    refused = answer.status == 400 or (answer.status == 200 and answer.code == "400")
    return refused and field in answer.body
