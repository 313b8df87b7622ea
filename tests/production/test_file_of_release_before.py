"""A server starts on a file of the release before, in the middle of its work. D39.

The file has version 9, with an open attempt whose network put its next status query off to 2099,
notifications with their secrets in clear, one of them not read yet, and a callback that is still
to be sent.
"""

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from sandbox_sim.callbacks.bodies import sign
from sandbox_sim.stores.sql import schema
from sandbox_sim.stores.sql.rows import to_micros
from tests.conftest import Sandbox, StartSandbox
from tests.kit.http_servers import listening
from tests.production.client import live, settled
from tests.sample_records import NOW
from tests.sqlite_files import opened, outside
from tests.stores.versions import know_versions
from tests.web.control_api import only

pytestmark = pytest.mark.decision("D39")

VERSION = 9
SECRET = "far_secret"
TOKEN = "Bearer token-in-clear"
BEGAN, IN_2099 = to_micros(NOW), to_micros(datetime(2099, 1, 1, tzinfo=UTC))


@dataclass
class Far:
    """The other gateway, where every payment has succeeded, and the shop."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    submits: int = 0
    callbacks: list[str] = field(default_factory=list)

    async def status(self, request: web.Request) -> web.Response:
        name = (await request.json())["transaction_id"]
        self.asked.append(name)
        record = {"transaction_id": name, "network_transaction_id": "77", "status": "000"}
        body = {"response_code": "000", "response_message": "Success", "response_data": record}
        return web.json_response(body)

    async def submit(self, _request: web.Request) -> web.Response:
        self.submits += 1
        return web.Response(status=500)

    async def callback(self, request: web.Request) -> web.Response:
        self.callbacks.append((await request.json())["trans_ref"])
        return web.Response()


@pytest.fixture
async def far() -> AsyncIterator[Far]:
    far = Far()
    async with listening(
        web.post("/get_transaction_status", far.status),
        web.post("/make_payment", far.submit),
        web.post("/callback", far.callback),
    ) as far.url:
        yield far


def notification(**said: object) -> str:
    """The document of a signed notification as that release kept it, with its secrets."""
    body = json.dumps({"trans_status": "000/SUCCESS", "message": "SUCCESSFUL", **said}).encode()
    headers = {"x-service-signature": sign(body, SECRET), "authorization": TOKEN}
    return json.dumps(["POST", "A2", f"key={TOKEN}", headers, base64.b64encode(body).decode()])


def rows(shop: str) -> dict[str, list[tuple[object, ...]]]:
    """The rows that the release wrote into its tables; T1 is open, and T2 has succeeded."""
    order = "Order", "10.5", "MTN", "0244000001", "MOM", "GHS", f"{shop}/callback", ""
    at_network = "account", "account"
    sums = "collect", "10.5", "GHS"
    said = {"trans_ref": "T2", "trans_id": "77", "amount": "10.5"}
    called = f"{shop}/callback", "trans", '{"trans_ref":"T2","trans_status":"000/SUCCESS"}'
    available, clearing = "service/55/collection/available/GHS", "network/account/clearing/GHS"
    return {
        "live_transactions": [
            (
                *(1, "collect", 55, "T1", *order, "10000000001", "live_key", BEGAN),
                *("002", None, None, 0, None, None),
            ),
            (
                *(2, "collect", 55, "T2", *order, "10000000002", "live_key", BEGAN),
                *("000", BEGAN, None, 0, None, None),
            ),
        ],
        "attempts": [
            (
                *(1, "A1", 55, "10000000001", 1, *at_network, "T1", *sums, BEGAN, "unknown"),
                *(0, 1, 1, 0, BEGAN, IN_2099, None, None),
                *("", "", "", "", None, "", "", "{}", "T1"),
            ),
            (
                *(2, "A2", 55, "10000000002", 1, *at_network, "T2", *sums, BEGAN, "succeeded"),
                *(0, 1, 0, 0, None, None, None, BEGAN),
                *("77", "", "", "", None, "", "", "", "T2"),
            ),
        ],
        "jobs": [
            (1, IN_2099, "ask-network", 55, "A1", 0),
            (2, BEGAN, "deliver-live", 55, "C2", 0),
            (3, BEGAN, "read-notification", 0, "2", 0),
        ],
        "raw_notifications": [
            (1, "account", BEGAN, notification(**said), "applied", 1, "A2", ""),
            (2, "account", BEGAN, notification(**said), "new", 0, "", ""),
        ],
        "callbacks": [
            (
                *(1, "C2", 55, "T2", "10000000002", *called, "signature", BEGAN, "pending"),
                *("[]", None, 0, None, "P"),
            )
        ],
        "accounts": [
            (available, "available", "GHS", 55, "collection", "", "10.5"),
            (clearing, "clearing", "GHS", 0, None, "account", "-10.5"),
        ],
        "entries": [(1, "collected", "10000000002", BEGAN)],
        "legs": [(1, 1, clearing, "-10.5"), (2, 1, available, "10.5")],
    }


@pytest.fixture
async def file(in_memory: Path, monkeypatch: pytest.MonkeyPatch, far: Far) -> Path:
    path = in_memory / "state.sqlite3"
    with monkeypatch.context() as then:
        know_versions(then, schema.MIGRATIONS[:VERSION])
        async with opened(path):
            pass
    for table, found in rows(far.url).items():
        for row in found:
            values = ", ".join("NULL" if each is None else repr(each) for each in row)
            outside(path, f"INSERT INTO {table} VALUES ({values})")  # noqa: S608 -- of this test
    return path


@pytest.fixture
async def sandbox(file: Path, far: Far, start_sandbox: StartSandbox) -> Sandbox:
    account = {"adapter": "upstream", "client_key": "k", "secret_key": SECRET, "base_url": far.url}
    network = {**account, "rejects_duplicates": True}
    return await live(start_sandbox, {"account": network}, store=f"sqlite:{file}")


async def test_an_open_payment_is_queried_within_an_hour(sandbox: Sandbox, far: Far) -> None:
    assert (await sandbox.status("T1")).data["status"] == "002"

    await settled(sandbox, hours=1)

    assert "T1" in far.asked
    assert far.submits == 0
    assert (await sandbox.status("T1")).data["status"] == "000"
    assert sorted(far.callbacks) == ["T1", "T2"]


async def test_the_kept_notifications_lose_their_secrets(sandbox: Sandbox, file: Path) -> None:
    await settled(sandbox, seconds=1)
    await sandbox.stop()

    found = outside(file, "SELECT state, attempt_id, document FROM raw_notifications")
    assert [each[:2] for each in found] == [("applied", "A2")] * 2
    assert [each for *_, each in found if TOKEN in each] == []
    assert all(json.loads(each)[4] for *_, each in found)  # the body stays


async def test_payments_callbacks_and_transfers_are_kept(sandbox: Sandbox, file: Path) -> None:
    await settled(sandbox, hours=1)

    assert (await sandbox.status("T2")).data["status"] == "000"
    assert (await sandbox.balance()).data["collection_balance"] == 21
    callback = await only(sandbox, "callbacks", "transaction_id=T2")
    assert callback["state"] == "delivered"
    await sandbox.stop()
    assert outside(file, "PRAGMA user_version") == [(len(schema.MIGRATIONS),)]
    assert outside(file, "PRAGMA integrity_check") == [("ok",)]
    assert outside(file, "SELECT name, available, pending FROM wallets WHERE mode = 'P'") == [
        ("service/55/collection/GHS", "21.0", "0")
    ]
    moved = "SELECT kind, debit, credit, amount, service_id, wallet FROM transfers ORDER BY number"
    collected = "posted", "network/account/clearing/GHS", "service/55/collection/GHS"
    assert outside(file, moved) == [(*collected, "10.5", 55, "collection")] * 2
