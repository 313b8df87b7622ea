"""The figures of the pytest fixture: a gateway in a thread of the test process.

The yardstick is a bare aiohttp test server in such a thread, and a round trip to it over one
connection. Each measurement is taken beside one of the yardstick.
"""

import asyncio
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from aiohttp.test_utils import TestServer

from bench.figures import NOWHERE, report
from bench.processes import every_core
from bench.requests import AUTHORIZATION, payment
from bench.yardstick import bare
from sandbox_sim import SandboxGateway

OTHER, OTHERS = 5, 10_000
TESTS, RUNS, WORKERS = 200, 20, 2
PROCESSES = 7
SUITE = """
import pytest
from bench.fixture import Client, whole_test

@pytest.fixture(scope="session")
def client():
    return Client()

@pytest.mark.parametrize("number", range({tests}))
def test_a_payment(sandbox_gateway, client, number):
    whole_test(sandbox_gateway, client)
"""
HEADERS = {
    "Authorization": AUTHORIZATION,
    "Content-Type": "application/json",
    "User-Agent": "bench",
}


class Client:
    """Blocking requests over one connection to each server."""

    def __init__(self) -> None:
        self._connections: dict[str, http.client.HTTPConnection] = {}

    def post(self, url: str, path: str, body: dict[str, object]) -> str:
        """The code of the answer."""
        if url not in self._connections:
            self._connections[url] = http.client.HTTPConnection(url.removeprefix("http://"))
        connection = self._connections[url]
        connection.request("POST", path, json.dumps(body), HEADERS)
        return str(json.loads(connection.getresponse().read())["response_code"])

    def collect(
        self,
        url: str,
        transaction_id: str = "T1",
        service_id: int = OTHER,
        callback_url: str = NOWHERE,
    ) -> str:
        """The code of the answer to a collection."""
        body = payment(transaction_id, service_id=service_id, callback_url=callback_url)
        return self.post(url, "/make_payment", body)


def whole_test(gateway: SandboxGateway, client: Client) -> None:
    """Five round trips: collect, callback, status, expire, status."""
    url, service_id = gateway.url, gateway.service_id
    asked: dict[str, object] = {"service_id": service_id, "transaction_id": "T1"}
    inbox = gateway.inbox_url()
    assert client.collect(url, service_id=service_id, callback_url=inbox) == "202"
    assert gateway.wait_callback(transaction_id="T1").status == "000"
    assert client.post(url, "/get_transaction_status", asked) == "000"
    gateway.advance(minutes=15)
    assert client.post(url, "/get_transaction_status", asked) == "027"


@contextmanager
def gateway_url() -> Iterator[str]:
    """Start a gateway as the fixture does."""
    with SandboxGateway() as gateway:
        yield gateway.url


@contextmanager
def bare_url() -> Iterator[str]:
    """A bare aiohttp test server in a thread of its own."""
    started, stop = threading.Event(), asyncio.Event()
    server = TestServer(bare())
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        await server.start_server()
        started.set()
        await stop.wait()
        await server.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait()
    yield f"http://{server.host}:{server.port}"
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


def measure(rounds: int) -> None:
    """Measure and print all figures of this module."""
    with every_core():
        print("pytest fixture")
        start(20 * rounds)
        in_a_test(100 * rounds)
        suite()


def start(times: int) -> None:
    """Time from the call of the fixture to the first answer."""
    ratios = [_until_an_answer(gateway_url) / _until_an_answer(bare_url) for _ in range(times)]
    name = "start to first answer, times that of a bare test server"
    report(name, statistics.median(ratios), "<= 3")


def _until_an_answer(make: Callable[[], AbstractContextManager[str]]) -> float:
    before = time.perf_counter()
    with make() as url:
        assert Client().collect(url) == "202"
        return time.perf_counter() - before


def in_a_test(times: int) -> None:
    """The time of a test in round trips to a bare server: the medians of several processes.

    It depends by a quarter on whether the system runs the two threads of a process on one core or
    on both, which differs between processes.
    """
    measured = []
    for _ in range(PROCESSES):
        command = (sys.executable, "-m", "bench.fixture", str(times // PROCESSES))
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        measured.append(json.loads(run.stdout))
    reset, whole, crowded = map(statistics.median, zip(*measured, strict=True))
    report("reset before a test, in bare round trips", reset, "<= 1")
    report("a whole test of five round trips, in bare ones", whole, "<= 8")
    report(f"`reset()`, with {OTHERS:,} records of another service", crowded, "<= 1")


def _in_this_process(times: int) -> Iterator[float]:
    """Measure the reset before a test, a whole test, and `reset()` beside many other records."""
    client = Client()
    with SandboxGateway() as gateway, bare_url() as yardstick:

        def tested() -> None:
            whole_test(gateway, client)

        def paid() -> None:
            client.collect(gateway.url, service_id=gateway.service_id)

        def ratio(ours: Callable[[], None], prepare: Callable[[], None]) -> float:
            ratios = []
            for _ in range(times):
                prepare()
                ratios.append(_seconds(ours) / _seconds(lambda: client.collect(yardstick)))
            return statistics.median(ratios)

        for _ in range(times):
            tested()
            gateway.renew()
        yield ratio(gateway.renew, tested)
        yield ratio(tested, gateway.renew)
        for number in range(OTHERS):
            client.collect(gateway.url, transaction_id=f"T{number}")
        yield ratio(gateway.reset, paid)


def _seconds(do: Callable[[], object]) -> float:
    before = time.perf_counter()
    do()
    return time.perf_counter() - before


def suite() -> None:
    """Run many such tests, many times, in several workers."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_suite.py").write_text(SUITE.format(tests=TESTS), "utf-8")
        pytest = (sys.executable, "-m", "pytest", "-q", "-n", str(WORKERS), folder)
        options = ("-p", "no:cacheprovider", "-c", "/dev/null", f"--rootdir={folder}")
        failed = sum(not _passes(*pytest, *options) for _ in range(RUNS))
    report(f"{TESTS} tests under -n {WORKERS}, runs of {RUNS} that failed", failed, "<= 0")


def _passes(*command: str) -> bool:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        print(run.stdout[-3000:])
    return run.returncode == 0


if __name__ == "__main__":
    print(json.dumps([*_in_this_process(int(sys.argv[1]))]))
