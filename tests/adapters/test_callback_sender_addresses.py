"""The sender can call every address that the gateway accepts as a callback_url (D37)."""

import asyncio
import re
import socket
import ssl
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from sandbox_sim.adapters.callback_sender import HttpCallbackSender
from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.http_addresses import MAX_CHARACTERS, BadAddress, check, parse
from sandbox_sim.records.callbacks import FailureKind, ReceiverResponse
from tests.adapters.conftest import FakeDns, Receiver, http, post
from tests.addresses import CALLABLE, NOT_CALLABLE, NOT_TEXT, ODD_ADDRESSES
from tests.conftest import StartSandbox
from tests.production.settings import BUILT_IN, LIVE

pytestmark = pytest.mark.decision("D37")

TLS = ssl.create_default_context()


def can_be_called(address: str) -> bool:
    try:
        check(address)
    except BadAddress:
        return False
    return True


async def attempts_at(*addresses: str, warns_of_public: bool = False) -> list[ReceiverResponse]:
    """The responses to one callback to each address; one receiver has every IP address and port.

    Only the socket connections are redirected to it, so no other machine is called.
    """
    loop: Any = asyncio.get_running_loop()
    connect = loop.sock_connect
    receiver = Receiver(http("200 OK", b"", "Connection: close"))
    server = await asyncio.start_server(receiver.serve, ["127.0.0.1", "::1"], 0)
    where = {each.family: each.getsockname() for each in server.sockets}

    async def connect_there(sock: socket.socket, _address: object) -> None:
        await connect(sock, where[sock.family])

    loop.sock_connect = connect_there
    async with (
        server,
        HttpCallbackSender(
            VirtualClock(), resolver=FakeDns(["127.0.0.1"]), warns_of_public=warns_of_public
        ) as sender,
    ):
        return [await post(sender, address, timedelta(seconds=20)) for address in addresses]


async def test_the_sender_warns_once_about_each_public_receiver(
    caplog: pytest.LogCaptureFixture,
) -> None:
    private = ("http://127.0.0.1/a", "http://10.0.0.1/a", "http://shop.example/a")
    public = ("http://ama:s3cret@8.8.8.8/a", "http://8.8.8.8/b", "http://[2606:4700::1]:8080/a")

    answers = await attempts_at(*private, *public, warns_of_public=True)

    assert all(map(arrives, answers))
    lines = [each.getMessage() for each in caplog.records]
    assert [line.partition(",")[0] for line in lines] == [
        "callbacks go to http://8.8.8.8",
        "callbacks go to http://[2606:4700::1]:8080",
    ]
    assert 'callback_rewrites = { "http://8.8.8.8" = "http://127.0.0.1:5000" }' in lines[0]


@pytest.mark.parametrize("production", [False, True])
async def test_a_gateway_warns_about_public_receivers_except_in_production(
    start_sandbox: StartSandbox,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    production: bool,
) -> None:
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect

    async def connect_here(sock: socket.socket, address: Any) -> None:
        if address[0] == "8.8.8.8":
            raise ConnectionRefusedError
        await connect(sock, address)

    monkeypatch.setattr(loop, "sock_connect", connect_here)
    sandbox = await start_sandbox(
        production=production, allow_memory=production, credentials=[BUILT_IN, LIVE]
    )

    await sandbox.collect(callback_url="http://8.8.8.8/callback")
    await sandbox.advance(seconds=1)

    warned = any("a public address" in each.getMessage() for each in caplog.records)
    assert warned is not production


def arrives(answer: ReceiverResponse) -> bool:
    return (answer.status_code, answer.problem, answer.failure_kind) == (200, None, None)


@pytest.fixture(scope="module", autouse=True)
def _needs_both_families() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no ::1")


async def not_reached(addresses: Iterable[str]) -> list[str]:
    """Those of the addresses that a callback does not reach, with http instead of https."""
    plain = [re.sub("^https:", "http:", each, flags=re.IGNORECASE) for each in addresses]
    answers = await attempts_at(*plain)
    return [each for each, answer in zip(plain, answers, strict=True) if not arrives(answer)]


async def test_the_sender_calls_the_listed_valid_addresses() -> None:
    assert await not_reached(CALLABLE) == []


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ODD_ADDRESSES, max_size=20))
def test_the_sender_calls_any_valid_address(addresses: list[str]) -> None:
    assert asyncio.run(not_reached(filter(can_be_called, addresses))) == []


@given(ODD_ADDRESSES)
def test_tls_takes_the_host_of_each_address(address: str) -> None:
    assume(can_be_called(address))
    host = (parse(address).raw_host or "").rstrip(".")

    wrapped = TLS.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=host)

    assert wrapped.server_hostname == host


async def test_an_attempt_at_an_invalid_address_fails() -> None:
    """A store may have such an address from an earlier version, and the attempts must end."""
    refused = [each for each in NOT_CALLABLE + NOT_TEXT if len(each) <= MAX_CHARACTERS]

    for address, answer in zip(refused, await attempts_at(*refused), strict=True):
        assert (answer.status_code, answer.failure_kind) == (None, FailureKind.ADDRESS), address
        assert answer.problem == "callback_url is not a valid http or https address"
