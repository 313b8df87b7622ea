"""Gateways behind the port of another: each answers for its services as at its own port."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sandbox_sim import SandboxGateway
from sandbox_sim.adapters.tls import client_context
from sandbox_sim.settings.loading import settings_from
from sandbox_sim.settings.schema import Settings
from tests.testing.conftest import collection


def settings(*service_ids: int, **others: Any) -> Settings:
    credentials = {"client_key": "a", "secret_key": "b", "service_ids": service_ids}
    chosen = {"store": "memory:", "port": 0, "quiet": True, "credentials": [credentials], **others}
    return settings_from(chosen, "a test")


Serve = Callable[..., tuple[SandboxGateway, SandboxGateway, SandboxGateway]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a front for the services 55 to 57 with gateways behind it, for 56 and for 57."""
    with ExitStack() as running:

        def start(**others: Any) -> tuple[SandboxGateway, SandboxGateway, SandboxGateway]:
            front = SandboxGateway(settings(55, 56, 57, **others))
            running.enter_context(front)
            behind = [SandboxGateway(settings(number, **others), front) for number in (56, 57)]
            first, second = map(running.enter_context, behind)
            return front, first, second

        yield start


class Client:
    """A connection to a gateway that stays open."""

    def __init__(self, gateway: SandboxGateway) -> None:
        parts = urlsplit(gateway.url)
        self._gateway = gateway
        self.connection = http.client.HTTPConnection(parts.netloc, timeout=5)
        if gateway.settings.trusted is not None:
            context = client_context(gateway.settings.trusted)
            self.connection = http.client.HTTPSConnection(parts.netloc, timeout=5, context=context)

    def post(self, service_id: Any, path: str = "/make_payment", **fields: Any) -> tuple[int, str]:
        body = {**collection(self._gateway), "service_id": service_id, **fields}
        return self.send(path, json.dumps(body).encode())

    def send(self, path: str, body: Any, **headers: str) -> tuple[int, str]:
        self.connection.request("POST", path, body, {**self._gateway.headers, **headers})
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())["response_code"]


Connect = Callable[[SandboxGateway], Client]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens connections, and closes them."""
    clients: list[Client] = []

    def connected(gateway: SandboxGateway) -> Client:
        clients.append(Client(gateway))
        return clients[-1]

    yield connected
    for client in clients:
        client.connection.close()


def test_each_service_is_answered_by_its_gateway_over_one_connection(
    serve: Serve, connect: Connect
) -> None:
    """Also if the body is chunked, or refused unread."""
    front, first, second = serve()
    client = connect(front)

    assert [client.post(number) for number in (55, 56, 57)] == [(202, "202")] * 3
    assert [len(each.transactions) for each in (front, first, second)] == [1, 1, 1]
    first.advance(minutes=1)
    assert (first.transactions[0].status, second.transactions[0].status) == ("000", "002")

    chunked = {**collection(front), "service_id": 56, "transaction_id": "T2"}
    body = json.dumps(chunked).encode()
    assert connect(front).send("/make_payment", iter([body[:9], body[9:]])) == (202, "202")
    assert first.transactions[-1].transaction_id == "T2"
    refused = connect(front).send("/make_payment", body, **{"Content-Encoding": "gzip"})
    assert refused == (415, "400")


def test_the_front_answers_for_an_unknown_service_and_a_stopped_gateway(
    serve: Serve, connect: Connect
) -> None:
    front, first, _ = serve()
    client = connect(front)
    for service_id, answer in ((58, (403, "403")), ("56", (400, "400")), (None, (400, "400"))):
        assert client.post(service_id) == answer

    client.post(56)
    first.__exit__(None, None, None)
    assert client.post(56, "/get_transaction_status") == (200, "027")
    first.__enter__()


def test_a_gateway_behind_another_refuses_a_taken_port(serve: Serve) -> None:
    front, *_ = serve()
    taken = urlsplit(front.url).port
    with pytest.raises(OSError, match="address already in use"):
        SandboxGateway(settings(58, port=taken), front).__enter__()


def test_a_fault_cuts_only_connections_that_ask_its_service(serve: Serve, connect: Connect) -> None:
    front, first, _ = serve()
    other, cut = connect(front), connect(front)
    other.post(57)
    first.fault(connection_reset=True)

    with pytest.raises(ConnectionError):
        cut.post(56)

    assert other.post(57, transaction_id="T2") == (202, "202")


def test_a_waiting_client_does_not_delay_another_service(serve: Serve, connect: Connect) -> None:
    front, first, _ = serve()
    waiting = connect(front)
    first.fault(timeout=True)
    waiting.connection.request(
        *("POST", "/make_payment", json.dumps({**collection(front), "service_id": 56})),
        front.headers,
    )

    assert connect(front).post(57) == (202, "202")
    first.__exit__(None, None, None)  # ends the wait
    with pytest.raises(http.client.RemoteDisconnected):
        waiting.connection.getresponse()
    first.__enter__()


def test_a_gateway_behind_another_serves_https(
    serve: Serve, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    front, first, _ = serve(tls=True)
    first.fault(status=500, times=1)  # by the control API

    assert first.url.startswith("https://")
    assert [connect(front).post(56) for _ in range(2)] == [(500, "500"), (202, "202")]
    assert len(first.transactions) == 1
