"""`/_sandbox/faults`: each kind of fault, which requests it matches, how often, and its records."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

from sandbox_sim.overrides.faults import MAX_LATENCY_S
from sandbox_sim.web.transport.server import GRACE_S
from tests.conftest import Sandbox, Seen, StartSandbox, basic
from tests.kit.requests import OPERATIONS
from tests.turns import SOON_S
from tests.web.control_api import ask, assert_error, listed
from tests.web.wire import Wire, request_bytes

FAULTS = "/_sandbox/faults"
LOSSES = ("connection_reset", "empty_response", "malformed_json", "timeout")


async def post(sandbox: Sandbox, rule: object) -> Seen:
    return await ask(sandbox, "POST", FAULTS, json.dumps(rule).encode())


async def add(sandbox: Sandbox, fault: dict[str, Any], **rule: Any) -> str:
    """Add a fault and return its id."""
    answer = await post(sandbox, {"fault": fault, **rule})
    assert answer.status == 201, answer.body
    return str(answer.body["id"])


async def journal(sandbox: Sandbox, count: int = 1) -> list[dict[str, Any]]:
    """Wait until the journal has `count` entries, and return the newest `count`."""
    body = json.dumps({"count": count, "timeout_s": 5}).encode()
    answer = await ask(sandbox, "POST", "/_sandbox/requests/wait", body)
    entries: list[dict[str, Any]] = answer.body["requests"]
    return entries


class Peer:
    """A client on a plain socket, so that a test sees how the server ends the connection."""

    def __init__(self, sandbox: Sandbox) -> None:
        parts = urlsplit(sandbox.url)
        address = (parts.hostname or "", parts.port or 80)
        self._socket = socket.create_connection(address, timeout=10)

    def send(self, *bodies: dict[str, Any]) -> None:
        """Send a payment with each body, all in one write."""
        self._socket.sendall(b"".join(request_bytes(body=json.dumps(b).encode()) for b in bodies))

    async def received(self) -> bytes:
        """Return all bytes that arrive until the server closes the connection."""
        parts = iter(lambda: self._socket.recv(65_536), b"")
        return await asyncio.to_thread(b"".join, parts)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
async def peer(sandbox: Sandbox) -> AsyncIterator[Peer]:
    peer = Peer(sandbox)
    yield peer
    peer.close()


@dataclass
class HeldPause:
    """Replaces `pause` of the clock: a pause of this length lasts until `over` is set."""

    seconds: float
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, seconds: float) -> None:
        if seconds == self.seconds:
            self.begun.set()
            await self.over.wait()


class TestRefusals:
    async def test_a_429_fault_sends_retry_after_and_does_nothing(self, sandbox: Sandbox) -> None:
        fault_id = await add(sandbox, {"status": 429}, times=1, retry_after_s=7)

        refused, status = await sandbox.collect(), await sandbox.status()

        assert (refused.status, refused.code, refused.rule) == (429, "429", "fault")
        assert refused.headers["Retry-After"] == "7"
        assert set(refused.body) == {"response_code", "response_message"}
        assert status.code == "027"
        (entry,) = (await journal(sandbox, 2))[1:]
        assert (entry["http_status"], entry["code"], entry["rule"]) == (429, "429", "fault")
        assert (entry["service_id"], entry["operation"]) == (55, "collect")
        assert entry["transaction_id"] == "T1"
        assert fault_id in entry["why"]
        assert (await sandbox.collect()).code == "202"

    async def test_a_fault_affects_all_gateway_paths_and_no_others(self, sandbox: Sandbox) -> None:
        """It does not affect a request with wrong credentials."""
        await add(sandbox, {"status": 503})
        unknown = await sandbox.post("/make_payment", sandbox.payment(), Authorization="Basic x")
        assert unknown.code == "100"
        assert (await listed(sandbox, "faults"))[0]["seen"] == 0

        for operation in OPERATIONS.values():
            assert (await sandbox.post(operation.path, operation.body)).status == 503
        assert (await sandbox.post("/unknown", {})).status == 404
        assert (await ask(sandbox, "GET", "/_sandbox/readyz")).status == 200


class TestLatency:
    async def test_the_payment_settles_while_its_answer_is_delayed_and_its_callback_waits(
        self, start_sandbox: StartSandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sandbox = await start_sandbox(settle_delay_ms=0)
        latency = {"latency": {"fixed_ms": 200}}
        fault_id = await add(sandbox, latency, match={"operation": "collect"})
        pause = HeldPause(0.2)
        monkeypatch.setattr(sandbox.gateway.clock, "pause", pause)
        paying = asyncio.create_task(sandbox.collect())
        await pause.begun.wait()

        assert (await sandbox.status()).data["status"] == "000"
        assert await sandbox.inbox() == []

        pause.over.set()
        seen = await paying
        assert (seen.code, seen.rule) == ("202", "sandbox.3")
        (entry,) = [each for each in await journal(sandbox, 2) if each["operation"] == "collect"]
        assert entry["warnings"] == [f"fault {fault_id} delayed the answer by 200 ms"]
        await sandbox.advance(seconds=0)
        assert len(await sandbox.inbox()) == 1

    async def test_a_stopping_server_sends_a_delayed_answer_at_once(
        self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await add(sandbox, {"latency": {"fixed_ms": 300_000}})
        pause = HeldPause(300)
        monkeypatch.setattr(sandbox.gateway.clock, "pause", pause)
        paying = asyncio.create_task(sandbox.collect())
        await pause.begun.wait()

        async with asyncio.timeout(GRACE_S):
            await sandbox.stop()

        assert (await paying).code == "202"


class TestLostAnswers:
    """By default the gateway processes the request, and only the answer is lost."""

    async def send_until_in_journal(self, sandbox: Sandbox, peer: Peer) -> None:
        """Send a payment, and close the connection when the journal has the request."""
        peer.send(sandbox.payment())
        await journal(sandbox)
        peer.close()

    @pytest.mark.parametrize("loss", LOSSES)
    async def test_a_payment_with_a_lost_answer_is_in_the_journal_and_settles(
        self, sandbox: Sandbox, peer: Peer, loss: str
    ) -> None:
        fault_id = await add(sandbox, {loss: True}, times=1)
        await self.send_until_in_journal(sandbox, peer)
        (entry,) = await journal(sandbox)
        await sandbox.advance(seconds=1)

        assert (entry["http_status"], entry["code"], entry["rule"]) == (202, "202", "fault")
        assert entry["why"].startswith(f"fault {fault_id} affected the answer of rule sandbox.3: ")
        assert "the answer was" in entry["warnings"][0]

        assert (await sandbox.status()).data["status"] == "000"
        assert (await sandbox.callback())["trans_ref"] == "T1"

    @pytest.mark.parametrize("loss", LOSSES)
    async def test_a_request_with_processed_false_is_not_processed(
        self, sandbox: Sandbox, peer: Peer, loss: str
    ) -> None:
        await add(sandbox, {loss: True}, times=1, processed=False)
        await self.send_until_in_journal(sandbox, peer)

        await sandbox.advance(seconds=1)

        assert (await sandbox.status()).code == "027"
        assert await sandbox.inbox() == []
        (entry,) = (await journal(sandbox, 2))[1:]
        assert (entry["service_id"], entry["transaction_id"]) == (55, "T1")

    async def test_a_connection_is_reset_or_closed_without_a_byte(
        self, sandbox: Sandbox, peer: Peer
    ) -> None:
        await add(sandbox, {"empty_response": True}, times=1)
        peer.send(sandbox.payment())
        assert await peer.received() == b""
        peer.close()

        await add(sandbox, {"connection_reset": True})
        other = Peer(sandbox)
        other.send(sandbox.payment())
        with pytest.raises(ConnectionResetError):
            await other.received()
        other.close()

    async def test_an_answer_with_malformed_json_is_complete_http(self, sandbox: Sandbox) -> None:
        await add(sandbox, {"malformed_json": True}, times=1)
        wire = Wire(sandbox.url)
        asked = request_bytes(body=json.dumps(sandbox.payment()).encode())

        spoiled, whole = [await asyncio.to_thread(wire.send, asked) for _ in range(2)]
        wire.close()

        assert (spoiled.status, "connection" in spoiled.headers) == (202, False)
        assert spoiled.raw.startswith(b"{")
        with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
            json.loads(spoiled.raw)
        assert whole.code == "202"

    @pytest.mark.parametrize("loss", ["empty_response", "connection_reset", "timeout"])
    async def test_requests_pipelined_behind_a_lost_answer_are_not_processed(
        self, sandbox: Sandbox, peer: Peer, loss: str
    ) -> None:
        await add(sandbox, {loss: True}, times=1)

        peer.send(sandbox.payment(), sandbox.payment(transaction_id="T2"))
        await journal(sandbox)

        assert (await sandbox.status("T1")).data["status"] == "002"
        assert (await sandbox.status("T2")).code == "027"


class TestTimeout:
    @staticmethod
    def open_requests() -> set[asyncio.Task[Any]]:
        names = {"_handle_request", "_answer_requests"}
        tasks = asyncio.all_tasks()
        return {task for task in tasks if getattr(task.get_coro(), "__name__", None) in names}

    @pytest.mark.parametrize("requests", [1, 500])
    async def test_a_hanging_request_ends_when_its_client_disconnects(
        self, sandbox: Sandbox, peer: Peer, requests: int
    ) -> None:
        await add(sandbox, {"timeout": True})
        peer.send(*[sandbox.payment()] * requests)
        await journal(sandbox)
        (request,) = self.open_requests()

        peer.close()

        async with asyncio.timeout(SOON_S):
            await asyncio.wait({request})

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [("POST", "reset", b'{"service_id": %d}'), ("DELETE", "faults?service_id=%d", b"")],
    )
    async def test_a_hanging_request_ends_when_its_fault_is_deleted(
        self, sandbox: Sandbox, peer: Peer, method: str, path: str, body: bytes
    ) -> None:
        """A shop of one thread without a time limit could take no request of the next test."""
        await add(sandbox, {"timeout": True}, times=1, match={"service_id": 55})
        peer.send(sandbox.payment())
        await journal(sandbox)
        (request,) = self.open_requests()

        async def delete_of(service_id: int) -> None:
            url = f"/_sandbox/{path % service_id if '%' in path else path}"
            answer = await ask(sandbox, method, url, body % service_id if body else b"")
            assert answer.status == 200

        await delete_of(56)
        assert (await sandbox.status()).data["status"] == "002"
        assert not request.done()
        await delete_of(55)

        assert await peer.received() == b""

    async def test_a_hanging_request_ends_on_a_stop(self, sandbox: Sandbox, peer: Peer) -> None:
        await add(sandbox, {"timeout": True}, times=1)
        peer.send(sandbox.payment())
        await journal(sandbox)
        (request,) = self.open_requests()
        assert (await sandbox.status()).data["status"] == "002"
        assert not request.done()

        async with asyncio.timeout(GRACE_S):
            await sandbox.stop()

        assert await peer.received() == b""

    async def test_a_hanging_request_ends_after_five_minutes(
        self, sandbox: Sandbox, peer: Peer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock, passed = sandbox.gateway.clock, [0.0]
        monkeypatch.setattr(clock, "monotonic", lambda: passed[0])

        async def wait_at_most(_wake: asyncio.Event, seconds: float) -> None:
            passed[0] += seconds

        monkeypatch.setattr(clock, "wait_at_most", wait_at_most)
        await add(sandbox, {"timeout": True})

        peer.send(sandbox.payment())

        assert await peer.received() == b""
        assert passed == [MAX_LATENCY_S]


async def test_a_fault_for_a_service_ignores_other_clients(start_sandbox: StartSandbox) -> None:
    """A bad request matches by its valid fields."""
    own = {"client_key": "own", "secret_key": "s", "service_ids": [55]}
    other = {"client_key": "other", "secret_key": "s", "service_ids": [56]}
    sandbox = await start_sandbox(credentials=[own, other])
    await add(sandbox, {"status": 429}, match={"service_id": 55})

    async def code(client_key: str, **body: object) -> str:
        headers = {"Authorization": basic(client_key, "s")}
        return (await sandbox.post("/pay_bill", body, **headers)).code

    assert await code("other", **sandbox.payment()) == "400"
    assert await code("other", service_id=55) == "400"
    assert (await listed(sandbox, "faults"))[0]["seen"] == 0
    assert await code("own", service_id=55, amount="ten") == "429"
    assert await code("own", service_id="55") == "400"


async def test_a_fault_is_listed_with_its_given_fields(sandbox: Sandbox) -> None:
    for latency in (
        {"lognormal_ms": {"median": 90.0, "sigma": 0.4}},
        {"uniform_ms": [50.0, 300.0]},
    ):
        given = {
            "match": {"service_id": 55}, "fault": {"latency": latency},
            "probability": 0.5, "every": 2, "times": 3,
        }  # fmt: skip

        added = await post(sandbox, given)

        assert (await listed(sandbox, "faults"))[0] == added.body
        assert {name: added.body[name] for name in given} == given


async def test_faults_are_deleted_by_id_and_by_service(sandbox: Sandbox) -> None:
    other_id = await add(sandbox, {"status": 500}, match={"service_id": 56})
    for method, path, body in (
        ("DELETE", f"{FAULTS}?service_id=55", b""),
        ("DELETE", f"{FAULTS}/ID", b""),
        ("POST", "/_sandbox/reset", b'{"service_id": 55}'),
    ):
        fault_id = await add(sandbox, {"status": 500}, match={"service_id": 55})

        await ask(sandbox, method, path.replace("ID", fault_id), body)

        assert [rule["id"] for rule in await listed(sandbox, "faults")] == [other_id]
        assert (await sandbox.collect()).code == "202"
    assert (await sandbox.collect(service_id=56)).status == 500


async def test_bad_input_names_each_field(sandbox: Sandbox) -> None:
    one_of = "exactly one of latency, status, connection_reset"
    rows: list[tuple[object, tuple[str, ...]]] = [
        ({}, ("fault is required", one_of)),
        ([], ("fault",)),
        ({"fault": {}}, ("fault must", one_of)),
        ({"fault": {"status": 429, "timeout": True}}, ("fault must", one_of)),
        ({"fault": {"status": 418}}, ("fault.status must be one of 429, 500, 502, 503",)),
        ({"fault": {"timeout": False}}, ("fault.timeout must be true",)),
        ({"fault": {"slow": True}}, ("fault.slow", "unknown")),
        ({"fault": {"latency": {}}}, ("fault.latency must", "exactly one of fixed_ms")),
        ({"fault": {"latency": {"fixed_ms": -1}}}, ("fault.latency.fixed_ms", "0 to 300000")),
        ({"fault": {"latency": {"fixed_ms": 300_001}}}, ("fault.latency.fixed_ms",)),
        ({"fault": {"latency": {"uniform_ms": [300, 50]}}}, ("uniform_ms", "lower one first")),
        ({"fault": {"latency": {"uniform_ms": [300]}}}, ("fault.latency.uniform_ms must",)),
        ({"fault": {"latency": {"lognormal_ms": {"median": 1}}}}, ("lognormal_ms.sigma is",)),
        (
            {"fault": {"latency": {"lognormal_ms": {"median": "1", "sigma": 11}}}},
            ("lognormal_ms.median must", "lognormal_ms.sigma must"),
        ),
        (
            {"fault": {"status": 500}, "probability": 1.1, "every": 0, "times": 0},
            ("probability must", "every must", "times must"),
        ),
        ({"fault": {"status": 500}, "retry_after_s": 1}, ("retry_after_s", "status 429")),
        ({"fault": {"status": 429}, "retry_after_s": -1}, ("retry_after_s",)),
        ({"fault": {"status": 429}, "processed": True}, ("processed", "timeout")),
        ({"fault": {"status": 500}, "match": {"service_id": "55"}}, ("match.service_id",)),
        ({"fault": {"status": 500}, "match": {"operation": "pay"}}, ("match.operation",)),
        ({"fault": {"status": 500}, "delay": 1}, ("delay", "unknown")),
    ]
    for rule, named in rows:
        assert_error(await post(sandbox, rule), 400, *named)
        assert await listed(sandbox, "faults") == []
