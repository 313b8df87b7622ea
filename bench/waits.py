"""How much slower open waits make a payment: two servers, one with waiters, the same records.

No record matches what they wait for, so every waiter stays until the end.
"""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from bench import load
from bench.figures import BEYOND_THE_RUN, NOWHERE, paired, report, serve
from bench.processes import started
from bench.requests import collections
from tests.kit.servers import free_port

FEW, MANY, WAITERS = 5_000, 100_000, 100
_LONGEST_S = 600


def measure(rounds: int, seconds: float) -> None:
    """Measure one waiter with few records, and a hundred with many, on the memory store."""
    ports = free_port(), free_port()
    waited, free = (f"http://127.0.0.1:{port}" for port in ports)
    with ExitStack() as servers:
        for port in ports:
            servers.enter_context(started(*serve(port, *BEYOND_THE_RUN)))
        _fill((waited, free), FEW, "few")
        with _waiting(waited, "requests", 1):
            name = f"one open wait on requests, {FEW:,} records"
            _compare(name, rounds, seconds, waited, free)
        _fill((waited, free), MANY, "many")
        with _waiting(waited, "transactions", WAITERS):
            name = f"{WAITERS} open waits on transactions, {MANY:,} records"
            _compare(name, rounds, seconds, waited, free)


def _fill(urls: tuple[str, ...], count: int, name: str) -> None:
    for url in urls:
        load.run(url, collections(NOWHERE, name), count=count)


def _compare(name: str, rounds: int, seconds: float, waited: str, free: str) -> None:
    def payments(url: str) -> Callable[[int], load.Run]:
        def run(number: int) -> load.Run:
            requests = collections(NOWHERE, f"{name[:7]}{number}")
            return load.run(url, requests, seconds=seconds, connections=1)

        return run

    rate, tail = paired(rounds, payments(waited), payments(free))
    print(name)
    report("time of a payment, times that without waiters", 1 / rate, "<= 1.5")
    report("p99, times that without waiters", tail, "<= 2.0")


@contextmanager
def _waiting(url: str, plural: str, count: int) -> Iterator[None]:
    """Open this many waiters, each on its own connection; return when each has searched once."""
    with ExitStack() as opened:
        for number in range(count):
            match = {"service_id": 55, "transaction_id": f"never-{number}"}
            wire = opened.enter_context(_connected(url))
            wire.sendall(_wait(plural, match, _LONGEST_S))
        last = opened.enter_context(_connected(url))
        last.sendall(_wait(plural, {"service_id": 55, "transaction_id": "never"}, 0))
        assert last.recv(65_536).startswith(
            b"HTTP/1.1 408"
        )  # the last waiter searches after all others
        yield


def _connected(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)))


def _wait(plural: str, match: dict[str, object], timeout_s: int) -> bytes:
    body = json.dumps({"match": match, "timeout_s": timeout_s}).encode()
    head = (
        f"POST /_sandbox/{plural}/wait HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
