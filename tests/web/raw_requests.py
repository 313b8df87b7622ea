"""Requests as bytes, and the connections that the server has open."""

import asyncio
import json
from typing import Any, cast

from sandbox_sim.web.transport.fast_connection import Connection
from tests.conftest import Sandbox
from tests.kit.requests import OPERATIONS
from tests.web.wire import request_bytes

PAYMENT = json.dumps(OPERATIONS["collection"].body).encode()
PLAIN = request_bytes(body=PAYMENT)
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(PAYMENT), PAYMENT)
REQUESTS = {
    "plain": PLAIN,
    "plain_sms": request_bytes("/sms/balance", b'{"service_id": 55}'),
    "bad_body": request_bytes(body=b"{"),
    "no_body": request_bytes(length=False),
    "no_credentials": request_bytes(body=PAYMENT, credentials=False),
    "no_agent": request_bytes(body=PAYMENT, agent=False),
    "chunked": request_bytes("/make_payment", CHUNKED, b"Transfer-Encoding: chunked", length=False),
    "expecting": request_bytes("/make_payment", PAYMENT, b"Expect: 100-continue"),
    "keep_alive": request_bytes("/make_payment", PAYMENT, b"Connection: keep-alive"),
    "not_gzip": request_bytes("/make_payment", PAYMENT, b"Content-Encoding: gzip"),
    "query": request_bytes("/make_payment?a=b", PAYMENT),
    "absolute": request_bytes("http://127.0.0.1/make_payment", PAYMENT),
    "get": request_bytes(method="GET"),
    "unknown": request_bytes("/unknown", PAYMENT),
    "control_api": b"GET /_sandbox/livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "large": request_bytes(body=PAYMENT.ljust(70_000)),
    "odd_case": PLAIN.replace(b"Content-Length", b"cOnTENT-lENGTH").replace(b": ", b":   \t"),
    "blank_before": b"\r\n\r\n" + PLAIN,
}
# The server closes the connection after these.
LAST = {
    "closing": request_bytes("/make_payment", PAYMENT, b"Connection: close"),
    "upgrade": request_bytes(
        "/make_payment", PAYMENT, b"Connection: upgrade, close", b"Upgrade: h2c"
    ),
    "http_1_0": request_bytes("/make_payment", PAYMENT, version=b"HTTP/1.0"),
    "not_http": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "two_lengths": request_bytes("/make_payment", PAYMENT, b"Content-Length: 1"),
    "both_lengths": request_bytes("/make_payment", CHUNKED, b"Transfer-Encoding: chunked"),
    "longer_than_its_length": PLAIN + b"}",
    "folded": request_bytes("/make_payment", PAYMENT, b"X-Folded: a", b" b"),
    "bare_line_feeds": PLAIN.replace(b"\r\n", b"\n"),
    "nul": request_bytes("/make_payment", PAYMENT, b"X-Odd: \x00"),
    "space_in_name": request_bytes("/make_payment", PAYMENT, b"X Odd: 1"),
    "large_head": request_bytes("/make_payment", PAYMENT, b"X-Much: " + b"x" * 70_000),
}
CLOSE = LAST["closing"]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connected(sandbox: Sandbox) -> Streams:
    """Open a connection to the server."""
    return await asyncio.open_connection("127.0.0.1", sandbox.runner.addresses[0][1])


def connections(sandbox: Sandbox) -> set[Connection]:
    """The open connections that aiohttp has not taken over."""
    opened: set[Connection] = cast("Any", sandbox.runner.server)._opened
    return opened
