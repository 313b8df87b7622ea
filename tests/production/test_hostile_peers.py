"""Hostile input from networks and from impostors, on each store (D39)."""

import asyncio
import json
import resource
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sandbox_sim.web.control.networks import MAX_NOTIFICATION_BYTES
from tests import postgres
from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live
from tests.production.momo import Paying, paying_over_momo
from tests.units import unit_of
from tests.web.control_api import get, only

pytestmark = pytest.mark.decision("D39")

HALF_AN_EMOJI = "no funds \ud83d"


async def kept(sandbox: Sandbox) -> list[dict[str, Any]]:
    """The notifications that the gateway keeps."""
    return list((await get(sandbox, "networks/notifications"))["notifications"])


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, in_memory: Path) -> str:
    """The setting `store`."""
    match request.param:
        case "memory":
            return "memory:"
        case "sqlite":
            return f"sqlite:{in_memory / 'state.sqlite3'}"
        case _:
            return postgres.empty_database()


@pytest.fixture
async def paying(store: str, start_sandbox: StartSandbox) -> AsyncIterator[Paying]:
    async with paying_over_momo(start_sandbox, store=store) as paying:
        yield paying


async def test_a_failure_with_half_an_emoji_in_its_reason_ends_the_payment(paying: Paying) -> None:
    await paying.sandbox.collect()
    reason = {"code": "X", "message": HALF_AN_EMOJI}
    paying.momo.fake.decide(paying.only().reference, "FAILED", reason)

    await paying.settled(seconds=5.5)  # poll_after_s and its jitter

    assert (await paying.sandbox.status()).data["status"] == "001"
    (attempt,) = (await paying.record())["attempts"]
    assert attempt["reason"] == "X: no funds \ufffd"
    assert paying.queries == 1


@pytest.mark.parametrize("number", ["0e-1000000000", "1e1000000000", "9" * 5_000])
async def test_a_number_with_a_huge_exponent_takes_no_memory(paying: Paying, number: str) -> None:
    await paying.sandbox.collect()
    body = f'{{"status":"X","financialTransactionId":{number}}}'.encode()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert await paying.forge("", body) == await paying.forge(paying.attempt_id, body) == 200
    await paying.settled()

    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 100 * 1024
    (found,) = await kept(paying.sandbox)
    assert (found["state"], found["attempt_id"]) == ("applied", paying.attempt_id)
    assert found["note"].startswith("it cannot be read")


async def test_hundreds_of_unstorable_notifications_are_dropped_and_counted(paying: Paying) -> None:
    await paying.sandbox.collect()
    hostile = {"status": "FAILED\x00", "financialTransactionId": HALF_AN_EMOJI, "reason": "\x00"}
    body, statuses = json.dumps(hostile).encode(), set()

    for _ in range(30):
        found = await asyncio.gather(*(paying.forge("A9", body) for _ in range(10)))
        statuses.update(found)
    await paying.settled()

    assert statuses == {200, 429}
    assert await kept(paying.sandbox) == []
    network = await only(paying.sandbox, "networks")
    assert network["dropped_notifications"] == 300
    assert await unit_of(paying.sandbox.gateway.store).failed_jobs(9) == []


async def test_a_receipt_with_unstorable_text_is_answered(
    store: str, start_sandbox: StartSandbox
) -> None:
    pytest.importorskip("smpp34")
    from sandbox_sim.networks.smpp import pdus  # noqa: PLC0415 -- an extra
    from tests.networks.smpp.fake_smsc import FakeSmsc  # noqa: PLC0415 -- an extra
    from tests.networks.smpp.network import PASSWORD, until  # noqa: PLC0415

    async with FakeSmsc().running() as smsc:
        account = {"host": "127.0.0.1", "port": smsc.port, "system_id": "shop"}
        network = {"adapter": "smpp", "password": PASSWORD, **account}
        sandbox = await live(start_sandbox, {"sms": network}, store=store)
        await until(lambda: smsc.bound)

        assert await smsc.receipt("7\0f\x9f") == 0
        too_long = b"id:" + b"z" * 12_000 + b" stat:DELIVRD"
        assert await smsc.deliver(payload=too_long) == pdus.PERMANENT_ERROR

        (found,) = await kept(sandbox)
        assert json.loads(found["body"])["part_id"] == "7"
        await sandbox.stop()


async def test_a_header_that_is_not_utf_8_counts_as_a_wrong_signature(paying: Paying) -> None:
    await paying.sandbox.collect()
    host, _, port = paying.sandbox.url.removeprefix("http://").partition(":")
    body = b'{"status": "FAILED"}'
    head = (
        f"POST /_networks/mtn/{paying.attempt_id} HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n"
    )
    raw = head.encode() + b"X-Signature: \xff\xfe\r\n\r\n" + body

    def sent() -> bytes:
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(raw)
            return connection.makefile("rb").readline()

    assert await asyncio.to_thread(sent) == b"HTTP/1.1 200 OK\r\n"
    await paying.settled()

    (attempt,) = (await paying.record())["attempts"]
    (shown,) = (each for each in attempt["exchanges"] if each["purpose"] == "notification")
    assert shown["request_headers"]["x-signature"] == "\ufffd\ufffd"
    assert [each["state"] for each in await kept(paying.sandbox)] == ["applied"]


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_long_body_is_refused_before_it_is_read(paying: Paying, chunked: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(2):
            yield b" " * MAX_NOTIFICATION_BYTES

    url = f"{paying.sandbox.url}/_networks/mtn/"
    body = chunks() if chunked else b" " * (MAX_NOTIFICATION_BYTES + 1)
    async with paying.sandbox.session.post(url, data=body) as answer:
        assert answer.status == 413
        assert "at most 65,536 bytes" in await answer.text()
    assert await kept(paying.sandbox) == []
