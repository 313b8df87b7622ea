"""The server of a `SandboxGateway` in a test run with a problem: no loop, a signal, or a fork."""

import asyncio
import http.client
import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from unittest.mock import Mock

import pytest

from sandbox_sim import SandboxGateway
from sandbox_sim.testing import server
from tests.testing.conftest import collected, status


def test_an_event_loop_that_cannot_be_created_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_Loop", Mock(side_effect=OSError("Too many open files")))

    with pytest.raises(OSError, match="Too many open files"):
        SandboxGateway().__enter__()


def test_a_stop_does_not_wait_for_the_open_waits_of_clients() -> None:
    gateway = SandboxGateway().__enter__()
    client = http.client.HTTPConnection(gateway.url.removeprefix("http://"))
    wait = json.dumps({"timeout_s": 60})
    client.request("POST", "/_sandbox/sms/wait", wait, {"Content-Type": "application/json"})
    collected(gateway)  # by then the gateway has received the wait
    stopping = threading.Thread(target=gateway.__exit__, args=(None, None, None), daemon=True)

    stopping.start()
    stopping.join(4)  # aiohttp alone would wait ten seconds

    assert not gateway.is_running
    client.close()


class Interruption(BaseException):
    """Raised by a signal, as Ctrl-C or pytest-timeout send it."""


@pytest.fixture
def interrupting() -> Iterator[str]:
    """The address of a receiver that interrupts the test as soon as it is called."""

    def interrupt(*_: object) -> None:
        raise Interruption

    def once_called() -> None:
        called, _ = receiver.accept()
        with called:
            os.kill(os.getpid(), signal.SIGUSR1)
            while called.recv(1 << 16):
                pass  # until the gateway has given up

    before = signal.signal(signal.SIGUSR1, interrupt)
    with socket.create_server(("127.0.0.1", 0)) as receiver:
        waiting = threading.Thread(target=once_called)
        waiting.start()
        yield f"http://127.0.0.1:{receiver.getsockname()[1]}/callbacks"
        waiting.join()
    signal.signal(signal.SIGUSR1, before)


async def awaiting(call: Callable[[], object]) -> None:
    call()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals here")
@pytest.mark.parametrize("in_a_coroutine", [False, True])
@pytest.mark.parametrize("call", ["advance", "wait_callback"])
def test_an_interrupted_call_no_longer_moves_the_clock(
    gateway: SandboxGateway, interrupting: str, call: str, in_a_coroutine: bool
) -> None:
    calls: dict[str, Callable[[], object]] = {
        "advance": lambda: gateway.advance(seconds=1),
        "wait_callback": gateway.wait_callback,
    }
    wait = calls[call]
    collected(gateway, callback_url=interrupting)
    with pytest.raises(Interruption):
        asyncio.run(awaiting(wait)) if in_a_coroutine else wait()

    gateway.renew()
    collected(gateway)

    assert [status(gateway)["response_data"]["status"] for _ in range(20)] == ["002"] * 20
    assert gateway.now == datetime(2026, 1, 1, 9, tzinfo=UTC)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_may_send_requests_and_its_other_calls_are_refused(
    gateway: SandboxGateway,
) -> None:
    def run(sending: Connection) -> None:
        sending.send(collected(gateway)["response_code"])
        try:
            gateway.wait_callback()
        except RuntimeError as refusal:
            sending.send(str(refusal))

    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    fork = context.Process(target=run, args=(sending,), daemon=True)
    fork.start()

    assert receiving.recv() == "202"
    assert receiving.poll(10)
    assert receiving.recv().startswith("the gateway runs in the parent process")
    fork.join()
    assert gateway.wait_callback(transaction_id="T1").state == "delivered"
