"""`make walk`: the files of ours that run for one mobile-money collection on the memory store.

It prints those that run from the first byte of the request to its answer, and those that also run
until a receiver outside the server has answered the callback and the attempt is recorded. A payment
before it, on the same connection, does what is done only once. `ARGS=-v` names the files.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from types import FrameType
from typing import Any, Final
from urllib.parse import urlsplit

import sandbox_sim
from sandbox_sim.testing import SandboxGateway
from tests.kit.requests import collection
from tests.turns import idle

PACKAGE: Final = Path(sandbox_sim.__file__).parent
# Between the answer and the settlement, so that their files can be told apart.
_DELAY_MS: Final = 300
# The code that drives the server in its thread; the requests of a client do not run it.
_DRIVES: Final = "testing/"
_SOON: Final = 10  # seconds; reached only when something is broken


class _Receiver(ThreadingHTTPServer):
    """Acknowledges every callback, and puts its path into `called`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Acknowledge)
        self.called: Queue[str] = Queue()
        self.url = f"http://127.0.0.1:{self.server_port}/callback"


class _Acknowledge(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        assert isinstance(self.server, _Receiver)
        self.server.called.put(self.path)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def _receiver() -> Iterator[_Receiver]:
    with _Receiver() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class Recorder:
    """Records which files run in the thread of the server, also until it first writes bytes."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.to_the_answer: frozenset[str] = frozenset()

    def __call__(self, frame: FrameType, event: str, called: Any) -> None:
        """A profile function of `sys.setprofile`."""
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(PACKAGE)):
            name = Path(path).relative_to(PACKAGE).as_posix()
            if not name.startswith(_DRIVES):
                self.files.add(name)
        elif event == "c_call" and called.__name__ == "send" and not self.to_the_answer:
            self.to_the_answer = frozenset(self.files)


def _pay(gateway: SandboxGateway, client: HTTPConnection, callback_url: str, name: str) -> None:
    body = collection(name, service_id=gateway.service_id, callback_url=callback_url)
    client.request("POST", "/make_payment", json.dumps(body), gateway.headers)
    with client.getresponse() as answer:
        assert json.load(answer)["response_code"] == "202"


async def _record(recorder: Recorder | None) -> None:
    sys.setprofile(recorder)


def walk() -> tuple[frozenset[str], frozenset[str]]:
    """The files until the answer, and those until the receiver has answered."""
    recorder = Recorder()
    with (
        _receiver() as receiver,
        SandboxGateway(settle_delay_ms=_DELAY_MS) as gateway,
        closing(HTTPConnection(urlsplit(gateway.url).netloc)) as client,
    ):
        server = gateway._server
        server.run(server.gateway.clock_control.resume())
        _pay(gateway, client, receiver.url, "before")
        receiver.called.get(timeout=_SOON)
        server.run(idle(server.gateway.deliveries))
        server.run(_record(recorder))
        _pay(gateway, client, receiver.url, "walked")
        receiver.called.get(timeout=_SOON)
        server.run(idle(server.gateway.deliveries))
        server.run(_record(None))
    return recorder.to_the_answer, frozenset(recorder.files)


def main(arguments: list[str]) -> None:
    """Print both figures."""
    to_the_answer, in_all = walk()
    if "-v" in arguments:
        print(*sorted(to_the_answer), sep="\n")
        print("until the receiver has answered, also:")
        print(*sorted(in_all - to_the_answer), sep="\n")
    print(f"{len(to_the_answer)} files of ours to the answer, {len(in_all)} to the receiver's")


if __name__ == "__main__":
    main(sys.argv[1:])
