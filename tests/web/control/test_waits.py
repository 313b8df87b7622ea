"""POST …/wait: when it searches the store, and when it ends."""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import pytest

from sandbox_sim.control.record_search import RecordSearch
from tests.conftest import Sandbox
from tests.stores.conftest import eventually
from tests.web.control_api import post


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kind of record of each search that a waiter makes."""
    made: list[str] = []
    search = RecordSearch._search_for_waiter

    async def recorded(self: RecordSearch, *args: object) -> object:
        made.append(str(args[0].type))  # type: ignore[attr-defined]
        return await search(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(RecordSearch, "_search_for_waiter", recorded)
    return made


async def wait(sandbox: Sandbox, path: str, **body: object) -> tuple[int, object]:
    seen = await post(sandbox, f"{path}/wait", **{"timeout_s": 60, **body})
    return seen.status, seen.body


@pytest.mark.parametrize("path", ["requests", "transactions", "callbacks", "sms", "inbox/another"])
async def test_a_wait_does_not_search_again_for_payments_of_another_service(
    searches: list[str], sandbox: Sandbox, path: str
) -> None:
    """The connection of a wait that timed out can be used again."""
    match = {} if path.startswith("inbox") else {"service_id": 7}
    assert (await wait(sandbox, path, match=match, timeout_s=0))[0] == 408
    waiting = asyncio.create_task(wait(sandbox, path, match=match))
    await eventually(lambda: len(searches) == 2)

    for number in range(10):
        await sandbox.collect(transaction_id=f"T{number}")
    await sandbox.advance(seconds=1)

    assert len(searches) == 2
    waiting.cancel()
    await asyncio.wait({waiting})


Leave = Callable[[asyncio.StreamWriter], Awaitable[None]]


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


async def abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@pytest.mark.parametrize("leave", [close, abort])
async def test_a_wait_ends_when_its_client_disconnects(sandbox: Sandbox, leave: Leave) -> None:
    waiting = sandbox.gateway.waiters.waiting
    address = urlsplit(sandbox.url)
    body = b'{"timeout_s": 600}'
    for path in ("requests", "inbox/orders"):
        _, writer = await asyncio.open_connection(address.hostname, address.port)
        head = f"POST /_sandbox/{path}/wait HTTP/1.1\r\nHost: localhost\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await eventually(lambda: bool(waiting))

        await leave(writer)

        await eventually(lambda: not waiting)
        assert (await sandbox.collect()).code == "202"
