"""The gateway refuses a request by its headers before the body has arrived (D9)."""

import asyncio
import re

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import listed
from tests.web.raw_requests import PAYMENT, PLAIN, connected, connections
from tests.web.wire import request_bytes

pytestmark = pytest.mark.decision("D3", "D9")

CHUNKS = b"Transfer-Encoding: chunked"
EXPECT = b"Expect: 100-continue"


def head(*headers: bytes, credentials: bool = False, agent: bool = True) -> bytes:
    """The head of a request whose body has ten thousand bytes, or comes in chunks."""
    length = [] if CHUNKS in headers else [b"Content-Length: 10000"]
    lines = (*length, *headers)
    return request_bytes(
        "/make_payment", b"", *lines, length=False, credentials=credentials, agent=agent
    )


HEADS = {
    "plain": head(),
    "chunked": head(CHUNKS),
    "expecting": head(EXPECT),
    "expecting chunks": head(EXPECT, CHUNKS),
    "closing": head(b"Connection: close"),
    "kept alive": head(b"Connection: keep-alive"),
    "with wrong credentials": head(b"Authorization: Basic bm9ib2R5Om5vdGhpbmc="),
    "large": head().replace(b"10000", b"1000000"),
    "of an unknown path": head().replace(b"/make_payment", b"/unknown"),
}


async def answered(reader: asyncio.StreamReader) -> bytes:
    """Read one answer: its head, and as many bytes as its Content-Length says."""
    async with asyncio.timeout(10):
        lines = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", lines)
        assert length is not None
        return lines + await reader.readexactly(int(length[1]))


async def assert_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send three payments behind a refused request, and assert that the server answers none."""
    writer.write(PLAIN * 3)
    writer.write_eof()
    async with asyncio.timeout(10):
        assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("name", HEADS)
async def test_missing_credentials_get_401_and_end_the_connection(
    sandbox: Sandbox, name: str
) -> None:
    """The server sends no `100 Continue` before, and reads no request after it."""
    for begun in (b"", b"{", b"x" * 5000):
        reader, writer = await connected(sandbox)
        chunk = b"%x\r\n%b" % (10_000, begun)
        writer.write(HEADS[name] + (chunk if CHUNKS in HEADS[name] else begun))

        answer = await answered(reader)

        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b'"response_code": "100"' in answer or b'"response_code":"100"' in answer
        assert b"\r\nConnection: close\r\n" in answer
        await assert_closed(reader, writer)
    assert (await sandbox.status()).code == "027"


@pytest.mark.decision("D5")
async def test_a_too_large_body_gets_413_before_it_is_sent(start_sandbox: StartSandbox) -> None:
    """The server sends no `100 Continue` before, and reads no request after it."""
    sandbox = await start_sandbox(max_body_bytes=9999)
    expecting = head(EXPECT, credentials=True)
    for path in (b"/make_payment", b"/_sandbox/reset", b"/_sandbox/inbox/orders"):
        reader, writer = await connected(sandbox)
        writer.write(expecting.replace(b"/make_payment", path))

        answer = await answered(reader)

        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"larger than the setting max_body_bytes allows: 9999 bytes" in answer
        assert b"\r\nConnection: close\r\n" in answer
        await assert_closed(reader, writer)
    assert (await sandbox.status()).code == "027"

    reader, writer = await connected(await start_sandbox(max_body_bytes=10_000))
    writer.write(expecting)
    async with asyncio.timeout(10):
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.close()


@pytest.mark.decision("D5")
@pytest.mark.parametrize("path", ["/make_payment", "/_sandbox/clock/freeze"])
async def test_a_client_of_http_1_0_gets_no_100_continue(sandbox: Sandbox, path: str) -> None:
    """It would take `100 Continue` for the answer (RFC 9110, 10.1.1)."""
    reader, writer = await connected(sandbox)
    writer.write(request_bytes(path, PAYMENT, EXPECT, version=b"HTTP/1.0"))

    async with asyncio.timeout(10):
        assert b" 100 " not in await reader.readline()
    writer.close()


async def test_a_head_in_pieces_is_answered_when_it_is_complete(sandbox: Sandbox) -> None:
    for size in (10**6, 50, 1):
        reader, writer = await connected(sandbox)
        for at in range(0, len(HEADS["plain"]), size):
            writer.write(HEADS["plain"][at : at + size])
            await asyncio.sleep(0)

        assert b"HTTP/1.1 401 " in await answered(reader)
        writer.close()
    entries = await listed(sandbox, "requests")
    found = [(entry["code"], entry["rule"], entry["path"]) for entry in entries]
    assert found == [("100", "D3", "/make_payment")] * 3


@pytest.mark.decision("D4")
async def test_a_missing_user_agent_gets_403_and_ends_the_connection(sandbox: Sandbox) -> None:
    """A client that sends its next request in place of the body gets no answer to it."""
    for more in ((), (CHUNKS,), (EXPECT,)):
        reader, writer = await connected(sandbox)
        refused = head(*more, credentials=True, agent=False)
        writer.write(refused.replace(b"10000", b"%d" % len(PLAIN)))

        answer = await answered(reader)

        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"\r\nConnection: close\r\n" in answer
        await assert_closed(reader, writer)
    assert (await sandbox.status()).code == "027"


async def test_a_complete_refused_request_keeps_the_connection(start_sandbox: StartSandbox) -> None:
    """The connection also stays on the fast protocol, with both spellings of the scheme.

    A known client may send the body slowly.
    """
    sandbox = await start_sandbox(fast_path=True)
    reader, writer = await connected(sandbox)
    for body in (PAYMENT, b""):
        writer.write(request_bytes(body=body, credentials=False))
        answer = await answered(reader)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"Connection: close" not in answer

    for scheme in (b"Basic ", b"basic  "):
        whole = PLAIN.replace(b"Basic ", scheme)
        for at in range(0, len(whole), 40):
            writer.write(whole[at : at + 40])
            await asyncio.sleep(0)
        assert (await answered(reader)).startswith(b"HTTP/1.1 202 ")
    assert len(connections(sandbox)) == 1
    writer.close()
