"""`sandbox-sim serve --workers N` as processes: one gateway on one port, run by a parent."""

import asyncio
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sandbox_sim.cli.serve import workers
from sandbox_sim.cli.serve.workers import CannotStart, _WorkerPool
from sandbox_sim.settings.schema import Settings
from sandbox_sim.testing.network_contract.http_peer import closed_address
from sandbox_sim.values.hosts import mask_url
from tests import postgres
from tests.cli.processes import (
    FORK_WORKERS,
    IGNORE_CTRL_C,
    end,
    ended,
    eventually,
    first_line,
    post,
    ready_url,
    running,
)
from tests.kit.requests import collection
from tests.tls_files import certificate_files, trusting


@pytest.fixture
def store() -> str:
    return postgres.empty_database()


def parents() -> dict[int, int]:
    """The processes that run, each with its parent; a zombie has ended."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="],  # noqa: S607 -- wherever it is
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}


def children(pid: int) -> set[int]:
    return {child for child, parent in parents().items() if parent == pid}


def run_of(url: str, context: ssl.SSLContext | None = None) -> str:
    """The run of the process that answers a request."""
    return post(url, "/sms/balance", context)[1].partition("-")[0]


def two_that_answer(url: str) -> set[str]:
    """The runs of two processes, once both have answered."""
    seen: set[str] = set()

    def both() -> bool:
        seen.update(run_of(url) for _ in range(8))
        return len(seen) == 2

    eventually(both)
    return seen


@pytest.mark.decision("D1", "D18")
def test_two_workers_share_requests_and_a_killed_worker_is_replaced(store: str) -> None:
    """The server is in the background, so Ctrl-C in its terminal does not stop it.

    One test makes all these checks, because the start of three processes takes most of the time.
    """
    settings = ("--port", "0", "--workers", "2", "--store", store, "--set", "settle_delay_ms=0")
    with running("--json", "serve", *settings, before=IGNORE_CTRL_C + FORK_WORKERS) as server:
        ready = json.loads(first_line(server))
        url = ready["url"]
        assert ready["pid"] == server.pid
        workers = children(server.pid)
        assert len(workers) == 2

        server.send_signal(signal.SIGINT)
        before = two_that_answer(url)
        in_turn = Counter(run_of(url) for _ in range(10))
        assert set(in_turn.values()) == {5}

        for number in range(20):
            payment = collection(f"T{number}", callback_url=f"{url}/_sandbox/inbox/orders")
            assert post(url, "/make_payment", **payment)[0]["response_code"] == "202"
        assert len(eventually(lambda: inbox(url, 20))) == 20

        killed = min(workers)
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: len(children(server.pid) - {killed}) == 2)
        assert len(before | two_that_answer(url)) == 3, "one of them stayed"
        assert (
            post(url, "/get_transaction_status", transaction_id="T0")[0]["response_code"] == "000"
        )

        begun = time.monotonic()
        code, out, err = end(server, signal.SIGTERM)
        assert time.monotonic() - begun < 10
        assert (code, out) == (0, "")
        assert re.search(rf"worker [12] \(pid {killed}\) ended with code -9; restarting it", err)
        assert re.search(r"worker [12] runs again with pid \d+", err)
        assert "Traceback" not in err
        assert not workers & parents().keys()
        with pytest.raises(urllib.error.URLError):
            run_of(url)


def inbox(url: str, count: int) -> list[str]:
    """The references of the payments, once this many callbacks came; an empty list before."""
    with urllib.request.urlopen(f"{url}/_sandbox/inbox/orders/messages") as answer:  # noqa: S310
        messages = json.load(answer)["messages"]
    return [each["json"]["trans_ref"] for each in messages] if len(messages) >= count else []


def test_workers_whose_parent_was_killed_end_by_themselves(store: str) -> None:
    arguments = ("serve", "--port", "0", "--workers", "2", "--store", store)
    with running(*arguments, before=FORK_WORKERS) as server:
        ready_url(server)
        workers = children(server.pid)

        server.kill()
        server.wait()

        eventually(lambda: not workers & parents().keys())


@pytest.mark.spec("auth.5")
@pytest.mark.decision("D1")
def test_workers_serve_https_with_a_certificate_from_files_and_end_on_ctrl_c(
    store: str, tmp_path: Path
) -> None:
    cert, key = certificate_files(tmp_path)
    settings = ("--port", "0", "--workers", "2", "--store", store, "--log-level", "warning")
    with running("serve", *settings, "--cert", cert, "--key", key) as server:
        url = ready_url(server, "https")
        workers = children(server.pid)

        runs = {run_of(url, trusting()) for _ in range(4)}
        assert len(runs) == len(workers) == 2

        code, out, err = end(server, signal.SIGINT)

        assert code == 130
        assert err.splitlines()[1:] == []
        assert err.startswith("stopping: waiting for 2 workers") or not err
        assert "authority" not in out
        assert f"state: {mask_url(store)}" in out
        assert not workers & parents().keys()


async def test_the_log_names_a_worker_that_is_killed_before_it_is_ready(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A machine that is out of memory kills processes like this; only the parent can report it."""
    monkeypatch.setattr(workers, "_WORKER", "import os; os.kill(os.getpid(), 9)")

    with pytest.raises(CannotStart):
        await _WorkerPool(Settings()).start()

    (line,) = caplog.messages
    assert re.fullmatch(r"a worker \(pid \d+\) ended with code -9 before it was ready", line)


async def test_a_connection_that_arrives_during_the_stop_is_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        crew = _WorkerPool(Settings())
        crew.listen([listening])
        await asyncio.sleep(0)  # the pool waits for connections
        with socket.create_connection(listening.getsockname()):
            await asyncio.sleep(0)  # the loop knows this connection, but runs `stop` first
            await crew.stop([listening])

    assert caplog.messages == []


def test_workers_whose_store_cannot_be_opened_do_not_start_and_name_it_once() -> None:
    postgres.server_url()  # asyncpg must be there
    store = f"postgresql://me:s3same@{urlsplit(closed_address()).netloc}/gateway"

    arguments = ("serve", "--port", "0", "--workers", "2", "--store", store)
    result = ended(*arguments, before=FORK_WORKERS)

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("the store cannot be opened: postgresql://me:***@") == 1
    assert len(result.stderr.splitlines()) == 1
