"""`serve` on a SQLite file: it is killed and started again, or it refuses the file."""

import asyncio
import json
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from types import MappingProxyType
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.cli.processes import SOON, end, ended, first_line, running
from tests.conftest import basic
from tests.sqlite_files import contents, opened


class Shop:
    """A merchant's server. It records callbacks, and answers none while `go_on` is not set."""

    def __init__(self) -> None:
        self.callbacks: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.go_on = Event()
        self.go_on.set()
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                shop.callbacks.put(json.loads(body))
                shop.go_on.wait(SOON)
                try:
                    self.send_response(200)
                    self.end_headers()
                except OSError:
                    pass  # the gateway that sent the callback was killed

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- http.server's
                """Write no log."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/callback"


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()
    thread = Thread(target=shop.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield shop
    shop.go_on.set()
    shop.server.shutdown()
    thread.join(SOON)
    shop.server.server_close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite3"


def ask(server: subprocess.Popen[str], operation: str, **fields: object) -> dict[str, Any]:
    """Send a POST to a server."""
    headers = {"Authorization": basic(), "User-Agent": "tests"}
    data = json.dumps({"service_id": 55, **fields}).encode()
    return answer(server, "POST", operation, data, headers)


def control(server: subprocess.Popen[str], method: str, path: str) -> dict[str, Any]:
    """Send a request to the control API of a server."""
    return answer(server, method, f"/_sandbox/{path}")


def answer(
    server: subprocess.Popen[str],
    method: str,
    path: str,
    data: bytes | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Send one request to a server. The first call reads the URL in its ready line."""
    url = getattr(server, "url", None)
    if url is None:
        url = server.url = json.loads(first_line(server))["url"]  # type: ignore[attr-defined]
    sent = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url + path, data, sent, method=method)  # noqa: S310 -- http
    with urllib.request.urlopen(request, timeout=SOON) as response:  # noqa: S310 -- http
        document: dict[str, Any] = json.load(response)
        return document


def collect(
    server: subprocess.Popen[str], callback_url: str, transaction_id: str = "T1"
) -> dict[str, Any]:
    return ask(
        server,
        "/make_payment",
        reference="Order 1",
        transaction_id=transaction_id,
        trans_type="CTM",
        amount=10.5,
        nw="MTN",
        payment_option="MOM",
        customer_number="0244000001",
        callback_url=callback_url,
        request_time="2026-01-01 09:00",
    )


def serve(path: Path, **settings: object) -> tuple[object, ...]:
    """The arguments that start a server on this file."""
    flags = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return ("--json", "serve", "--port", 0, "--store", f"sqlite:{path}", *flags)


def kill(server: subprocess.Popen[str]) -> None:
    """Kill a server: no handler runs, and nothing is flushed."""
    server.send_signal(signal.SIGKILL)
    assert server.wait(SOON) == -signal.SIGKILL


@pytest.mark.spec("service.8", "sandbox.10")
@pytest.mark.decision("D16")
def test_killed_right_after_its_202_it_still_calls_back(path: Path, shop: Shop) -> None:
    with running(*serve(path)) as server:
        for _ in range(3):
            ask(server, "/sms/send", customer_number="0244000001", msg_body="Hi", sender_id="Shop")
        assert collect(server, shop.url)["response_code"] == "202"
        kill(server)

    with running(*serve(path)) as server:
        balance = ask(server, "/sms/balance")["response_data"]["sms_balance"]
        assert balance == 497
        assert shop.callbacks.get(timeout=SOON)["trans_ref"] == "T1"
        record = ask(server, "/get_transaction_status", transaction_id="T1")["response_data"]
        assert record["status"] == "000"
        code, _, err = end(server, signal.SIGTERM)
        assert code == 0
        assert "Traceback" not in err


def test_killed_after_its_log_was_removed_it_still_has_all_that_it_acknowledged(
    path: Path, shop: Shop
) -> None:
    """After the removal it acknowledges no payment."""
    with running(*serve(path)) as server:
        for number in range(20):
            paid = collect(server, shop.url, transaction_id=f"T{number}")
            assert paid["response_code"] == "202"
        path.with_name(f"{path.name}-wal").unlink()
        for _ in range(20):
            with pytest.raises(HTTPError) as refused:
                collect(server, shop.url, transaction_id="refused")
            assert refused.value.code == 500
            refused.value.close()
        with pytest.raises(HTTPError) as not_ready:
            control(server, "GET", "readyz")
        assert not_ready.value.code == 503
        not_ready.value.close()
        kill(server)

    with running(*serve(path)) as server:
        for number in range(20):
            record = ask(server, "/get_transaction_status", transaction_id=f"T{number}")
            assert record["response_code"] == "000"
        assert end(server, signal.SIGTERM)[0] == 0


@pytest.mark.decision("D18", "D30")
def test_killed_while_a_callback_is_on_its_way_it_calls_again(path: Path, shop: Shop) -> None:
    shop.go_on.clear()
    with running(*serve(path, settle_delay_ms=0)) as server:
        assert collect(server, shop.url)["response_code"] == "202"
        first = shop.callbacks.get(timeout=SOON)
        kill(server)
    shop.go_on.set()

    with running(*serve(path)) as server:
        again = shop.callbacks.get(timeout=SOON)
        assert again == first
        assert end(server, signal.SIGTERM)[0] == 0


def test_a_frozen_clock_is_frozen_at_the_same_moment_after_a_kill(path: Path) -> None:
    with running(*serve(path)) as server:
        frozen = control(server, "POST", "clock/freeze")
        kill(server)

    with running(*serve(path)) as server:
        assert control(server, "GET", "clock") == frozen
        assert control(server, "POST", "clock/resume")["frozen"] is False


async def make(path: Path) -> None:
    async with opened(path):
        pass


class TestCtrlC:
    @pytest.mark.spec("service.8")
    def test_the_first_says_what_it_waits_for_and_the_second_ends_it_at_once(
        self, path: Path, shop: Shop
    ) -> None:
        shop.go_on.clear()
        with running(*serve(path, settle_delay_ms=0, log_level="warning")) as server:
            collect(server, shop.url)
            shop.callbacks.get(timeout=SOON)

            server.send_signal(signal.SIGINT)
            assert server.stderr is not None
            receiver = shop.url.removesuffix("/callback")
            assert server.stderr.readline() == (
                f"stopping: waiting for the callbacks to {receiver}, at most 4.5 s for each; "
                "Ctrl-C again ends it at once\n"
            )
            code, _, _ = end(server, signal.SIGINT)

            assert code == 130
            # A store that was closed properly has no log.
            assert path.with_name(f"{path.name}-wal").exists()
            shop.go_on.set()

        with running(*serve(path)) as server:
            assert ask(server, "/get_transaction_status", transaction_id="T1")["response_data"]
            assert shop.callbacks.get(timeout=SOON)["trans_ref"] == "T1"

    def test_it_says_nothing_where_nothing_is_waited_for(self, path: Path) -> None:
        with running(*serve(path)) as server:
            assert answer(server, "GET", "/_sandbox/livez")

            assert end(server, signal.SIGINT) == (130, "", "")


class TestItDoesNotStart:
    def test_on_a_file_that_another_server_has(self, path: Path) -> None:
        with running(*serve(path)) as server:
            assert ask(server, "/sms/balance")["response_code"] == "388"

            second = ended(*serve(path))

            assert (second.returncode, second.stdout) == (1, "")
            assert second.stderr.startswith(
                f"the store cannot be opened: {path}: another server is using it\n"
            )
            assert ask(server, "/sms/balance")["response_code"] == "388"

    def test_on_a_damaged_file(self, path: Path) -> None:
        asyncio.run(make(path))
        path.write_bytes(path.read_bytes()[:8192])
        before = contents(path.parent)

        failed = ended(*serve(path))

        assert (failed.returncode, failed.stdout) == (1, "")
        assert failed.stderr == (
            f"the store cannot be opened: {path}: it is damaged\n"
            "  choose another store: --store sqlite:PATH or --store memory:\n"
        )
        assert contents(path.parent) == before
