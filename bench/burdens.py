"""Clients that keep a server busy beside its payments: python -m bench.burdens NAME PORT

The process prints a line once its clients are there. On SIGTERM it prints how many answers, pages,
events or bytes they got.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Final

from attack.wire import KeptConnection, connected, request_bytes
from bench.requests import payment
from sandbox_sim.values.response_codes import Code

DASHBOARDS, FEEDS, WAITS, SLOW = 5, 100, 1_000, 100
EACH_S: Final = 0.01
MIB: Final = 2**20
RECIPIENTS: Final = 1_000
# As in static/dashboard.js.
_MIN_PAUSE_S, _PAUSE_TIMES, _MOST_PAUSE_S = 0.7, 20, 5.0
_PAGE: Final = request_bytes("/_sandbox/", None, b"Accept: text/html", method=b"GET")
# Requests that are sent before the first of them has its answer.
_AT_ONCE: Final = 4
_PATIENT_S: Final = 60


class Progress:
    """What the clients of this process got."""

    def __init__(self) -> None:
        self.count = 0

    def ready(self) -> None:
        """Say that the clients are there."""
        print("ready", flush=True)


Burden = Callable[[int, Progress], Coroutine[None, None, None]]


async def dashboards(port: int, progress: Progress) -> None:
    """Pages that load again when something happened, as static/dashboard.js does."""
    async with asyncio.TaskGroup() as pages:
        for _ in range(DASHBOARDS):
            happened, connection = asyncio.Event(), KeptConnection(port)
            await connection.send(_PAGE, _PATIENT_S)
            pages.create_task(_listen(port, happened))
            pages.create_task(_load_again(connection, happened, progress))
        progress.ready()


async def _listen(port: int, happened: asyncio.Event) -> None:
    async with connected(port) as (reader, writer):
        writer.write(request_bytes("/_sandbox/changes", method=b"GET"))
        async for line in reader:
            if line.startswith(b"event: changed"):
                happened.set()


async def _load_again(
    connection: KeptConnection, happened: asyncio.Event, progress: Progress
) -> None:
    while await happened.wait():
        happened.clear()
        began = time.perf_counter()
        answer = await connection.send(_PAGE, _PATIENT_S)
        assert answer.status == 200, answer
        progress.count += 1
        took_s = time.perf_counter() - began
        await asyncio.sleep(min(_MOST_PAUSE_S, max(_MIN_PAUSE_S, took_s * _PAUSE_TIMES)))


async def feeds(port: int, progress: Progress) -> None:
    """Live feeds, each of one service; one of them is the service of the payments."""
    async with AsyncExitStack() as opened, asyncio.TaskGroup() as reading:
        for service_id in range(1, FEEDS + 1):
            reader, writer = await opened.enter_async_context(connected(port))
            path = f"/_sandbox/events?service_id={service_id}"
            writer.write(request_bytes(path, method=b"GET"))
            await reader.readuntil(b"\r\n\r\n")
            reading.create_task(_drain(reader, progress))
        progress.ready()


async def _drain(reader: asyncio.StreamReader, progress: Progress) -> None:
    while some := await reader.read(2**18):
        progress.count += some.count(b"\nevent: ")


async def waits(port: int, progress: Progress) -> None:
    """Waits for a payment that never comes."""
    async with AsyncExitStack() as opened:
        for _ in range(WAITS):
            _, writer = await opened.enter_async_context(connected(port))
            writer.write(_wait(timeout_s=600))
        await KeptConnection(port).send(_wait(timeout_s=0), _PATIENT_S)  # after those before it
        progress.ready()
        await asyncio.Event().wait()


def _wait(*, timeout_s: int) -> bytes:
    match = {"service_id": 55, "transaction_id": "never"}
    return request_bytes("/_sandbox/transactions/wait", {"match": match, "timeout_s": timeout_s})


async def bodies(port: int, progress: Progress) -> None:
    """Payments with a body of exactly the limit: the server reads it all and refuses it."""
    length = len(json.dumps(payment("large", reference="")))
    body = json.dumps(payment("large", reference="x" * (MIB - length))).encode()
    await _each(port, request_bytes("/make_payment", body), Code.BAD_REQUEST, progress)


async def bulk(port: int, progress: Progress) -> None:
    """Messages to a thousand recipients."""
    recipients = [f"0244{number:06d}" for number in range(0, RECIPIENTS * 10, 10)]
    sms = {"service_id": 56, "msg_body": "Sale", "sender_id": "Shop", "recipients": recipients}
    await _each(port, request_bytes("/sms/bulk", sms), Code.SMS_RECEIVED, progress)


async def _each(port: int, request: bytes, code: str, progress: Progress) -> None:
    """Send the request every 10 ms, or later where `_AT_ONCE` of them have no answer yet."""
    free: asyncio.Queue[KeptConnection] = asyncio.Queue()
    for _ in range(_AT_ONCE):
        free.put_nowait(KeptConnection(port))

    async def send(connection: KeptConnection) -> None:
        answer = await connection.send(request, _PATIENT_S)
        assert json.loads(answer.body)["response_code"] == code, answer
        progress.count += 1
        free.put_nowait(connection)

    async with asyncio.TaskGroup() as sending:
        progress.ready()
        while True:
            sending.create_task(send(await free.get()))
            await asyncio.sleep(EACH_S)


async def slow(port: int, progress: Progress) -> None:
    """Clients that ask for a long list, and read a byte of it each 10 ms."""
    find = request_bytes("/_sandbox/requests/find", {"match": {}, "limit": 1000})
    async with AsyncExitStack() as opened, asyncio.TaskGroup() as reading:
        for _ in range(SLOW):
            reader, writer = await opened.enter_async_context(connected(port, limit=1))
            writer.write(find)
            await reader.readexactly(1)  # the answer is ready
            reading.create_task(_read_slowly(reader, progress))
        progress.ready()


async def _read_slowly(reader: asyncio.StreamReader, progress: Progress) -> None:
    while await reader.read(1):
        progress.count += 1
        await asyncio.sleep(EACH_S)


BURDENS: Final[Mapping[str, Burden]] = {
    each.__name__: each for each in (dashboards, waits, feeds, bodies, bulk, slow)
}


async def main(name: str, port: int) -> None:
    progress = Progress()
    burden = asyncio.create_task(BURDENS[name](port, progress))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, burden.cancel)
    with suppress(asyncio.CancelledError):
        await burden
    print(progress.count, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
