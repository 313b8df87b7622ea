"""`serve --production` as a process, a merchant's server, and another gateway that can hang."""

import json
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any
from urllib.error import HTTPError

from tests.cli.processes import SOON, first_line, running
from tests.conftest import basic

Answer = tuple[int, dict[str, Any]]

CONFIGURATION = """\
production = true
settle_delay_ms = 0
callback_hosts = {{ allow = ["127.0.0.0/8"] }}

[[credentials]]
client_key = "live_key"
secret_key = "live_secret"
mode = "P"

[[credentials]]
client_key = "sandbox_key"
secret_key = "sandbox_secret"

{networks}
"""
SIMULATED = """\
[networks.staging]
adapter = "simulated"
settle_after_ms = 50
poll_after_s = 0.2
timeout_s = 1

[[routes]]
network = "staging"
"""


class Server:
    """A running gateway."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.url = json.loads(first_line(process))["url"]

    def post(self, path: str, *, mode: str = "P", **fields: object) -> Answer:
        """POST as a client; returns the HTTP status and the body."""
        pair = ("live_key", "live_secret") if mode == "P" else ("sandbox_key", "sandbox_secret")
        headers = {
            "Authorization": basic(*pair),
            "Content-Type": "application/json",
            "User-Agent": "tests",
        }
        return self.ask("POST", path, {"service_id": 55, **fields}, headers)

    def ask(
        self,
        method: str,
        path: str,
        fields: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        data = None if fields is None else json.dumps(fields).encode()
        request = urllib.request.Request(  # noqa: S310 -- our own server
            self.url + path, data, dict(headers or {}), method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=SOON) as response:  # noqa: S310
                return response.status, json.loads(response.read() or b"{}")
        except HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def status(self, transaction_id: str) -> str:
        _, body = self.post("/get_transaction_status", transaction_id=transaction_id)
        return str(body["response_data"]["status"])

    def balance(self, wallet: str) -> float:
        path, at = "/get_account_balance", "2026-01-31 09:30:00"
        _, body = self.post(path, request_time=at)
        return float(body["response_data"][f"{wallet}_balance"])


@contextmanager
def serving(folder: Path, networks: str = SIMULATED, *flags: str) -> Iterator[Server]:
    """A gateway on a SQLite file in this folder; killed at the end."""
    file = folder / "sandbox_sim.toml"
    file.write_text(CONFIGURATION.format(networks=networks))
    store = f"sqlite:{folder / 'state.sqlite3'}"
    with running(
        *("--json", "serve", "--config", file, "--store", store, "--port", 0, *flags)
    ) as process:
        yield Server(process)


class Other:
    """A server that keeps its requests and answers as a test decides.

    answer: makes the HTTP status and body of an answer from the path and the body.
    """

    def __init__(self, answer: Callable[[str, dict[str, Any]], Answer]) -> None:
        self.came: SimpleQueue[tuple[str, dict[str, Any]]] = SimpleQueue()
        other = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                other.came.put((self.path, body))
                status, fields = answer(self.path, body)
                written = json.dumps(fields).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(written)))
                    self.end_headers()
                    self.wfile.write(written)
                except OSError:
                    pass  # the client was killed

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- http.server's
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def next(self) -> tuple[str, dict[str, Any]]:
        """The path and the body of the next request."""
        return self.came.get(timeout=SOON)


@contextmanager
def other(answer: Callable[[str, dict[str, Any]], Answer]) -> Iterator[Other]:
    """Such a server on a free port."""
    found = Other(answer)
    thread = Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield found
    finally:
        found.server.shutdown()
        thread.join(SOON)
        found.server.server_close()


def shop() -> AbstractContextManager[Other]:
    """A merchant's server, which takes every callback."""
    return other(lambda _path, _body: (200, {}))


class HangingUpstream:
    """Another gateway that takes a payment and answers only when `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = Event()
        self.taken: list[str] = []

    def answer(self, path: str, body: dict[str, Any]) -> Answer:
        if path == "/get_transaction_status":
            record = {"status": "000", "transaction_id": body["transaction_id"]}
            described = {"status_desc": "Transaction Successful", "message": "SUCCESSFUL"}
            data = {**record, **described, "network_transaction_id": "10000000009"}
            success = {"response_code": "000", "response_message": "Success"}
            return 200, {**success, "response_data": data}
        self.taken.append(body["transaction_id"])
        self.go_on.wait(SOON)
        return 202, {"response_code": "202", "response_message": "received"}
