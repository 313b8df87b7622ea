"""HTTP: every request, even a broken one, gets an answer in the interface's shape, with a rule."""

import asyncio
import gzip
import logging
import re
from itertools import product
from unittest.mock import Mock

import pytest
from aiohttp import http_parser
from aiohttp.web_protocol import RequestHandler

from sandbox_sim.cli.serve import workers
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.web.transport.server import GRACE_S
from tests.conftest import Sandbox, StartSandbox
from tests.kit.requests import OPERATIONS, PATHS
from tests.production.client import live
from tests.web.control_api import ask, assert_error
from tests.web.raw_requests import PAYMENT, connected
from tests.web.wire import Wire, assert_in_shape, exchange, request_bytes


@pytest.mark.spec("codes")
@pytest.mark.decision("D5")
async def test_an_unknown_path_is_404(sandbox: Sandbox) -> None:
    paths = (
        *("/", "/unknown", "/make_payment/", "//make_payment", "/make_payment/x", "/MAKE_PAYMENT"),
        *("/sms", "/sms/", "/sms/unknown", "/v1/make_payment", "/_sandboxes", "/%00", "/%zz"),
        *("/a%0Ab", "/make_payment;x", "/../etc/passwd", "/%F0%9F%98%80", "/?path=/make_payment"),
    )
    for method, path in product(["POST", "GET", "DELETE"], paths):
        answer = await exchange(sandbox, request_bytes(path, method=method))

        assert (path, answer.status, answer.code) == (path, 404, "404")


@pytest.mark.decision("D5", "D6")
async def test_another_method_is_405_with_allow(sandbox: Sandbox) -> None:
    methods = ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
    for path, method in product(PATHS, methods):
        answer = await exchange(sandbox, request_bytes(path, method=method))

        assert (answer.status, answer.code) == (405, "400"), (path, method)
        assert answer.headers["allow"] == "POST"
    head = await exchange(sandbox, request_bytes(method="HEAD"), head=True)
    assert (head.status, head.headers["allow"], head.raw) == (405, "POST", b"")


@pytest.mark.decision("D5", "D6")
async def test_a_too_large_body_is_413(start_sandbox: StartSandbox) -> None:
    """By default a body may have 1 MiB. A body in chunks is refused too."""
    sandbox = await start_sandbox(max_body_bytes=1000)
    for path in PATHS:
        fits = await exchange(sandbox, request_bytes(path, b" " * 1000))
        too_large = await exchange(sandbox, request_bytes(path, b" " * 1001))

        assert (fits.status, fits.code) == (200 if path.startswith("/sms/") else 400, "400")
        assert (too_large.status, too_large.code) == (413, "400")
        assert "max_body_bytes allows: 1000 bytes" in too_large.body["response_message"]

    chunked = b"Transfer-Encoding: chunked"
    for size, status in ((1000, 202), (1001, 413)):
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (size, PAYMENT.ljust(size))
        request = request_bytes("/make_payment", chunks, chunked, length=False)
        answer = await exchange(sandbox, request)
        assert answer.status == status
        assert_in_shape(answer)

    by_default = await start_sandbox()
    for size, status in ((1024 * 1024, 202), (1024 * 1024 + 1, 413)):
        answer = await exchange(by_default, request_bytes(body=PAYMENT.ljust(size)))
        assert answer.status == status
        assert_in_shape(answer)


@pytest.mark.decision("D42")
@pytest.mark.parametrize("fast_path", [True, False])
async def test_an_encoded_body_is_415_on_every_path_and_is_not_read(
    start_sandbox: StartSandbox, *, fast_path: bool
) -> None:
    """The connection stays open."""
    sandbox = await start_sandbox(fast_path=fast_path)
    body = gzip.compress(PAYMENT)
    encodings = (b"gzip", b"deflate", b"br", b"zstd", b"GZip, gzip", b"x")

    for encoding, path in product(encodings, PATHS):
        header = b"Content-Encoding: " + encoding
        answer = await exchange(sandbox, request_bytes(path, body, header))

        assert (answer.status, answer.code) == (415, "400"), path
        assert answer.headers["x-sandbox-rule"] == "D42"
        assert "Content-Encoding" in answer.body["response_message"]

    reader, writer = await connected(sandbox)
    encoded = request_bytes("/make_payment", body, b"Content-Encoding: gzip")
    writer.write(encoded + request_bytes("/make_payment", PAYMENT, b"Connection: close"))
    async with asyncio.timeout(10):
        answers = await reader.read()
    writer.close()
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"415", b"202"]

    production = await live(
        start_sandbox, {"staging": {"adapter": "simulated"}}, fast_path=fast_path
    )
    below = ("ledger/topup", "inbox/orders", "login", "pay/1", "unknown")
    for path in (*(f"/_sandbox/{each}" for each in below), "/_networks/staging/A1"):
        request = request_bytes(path, gzip.compress(b"{}"), b"Content-Encoding: gzip")

        refused = await exchange(production, request)

        assert_error(refused, 415, "Content-Encoding")
        assert refused.body["error"]["code"] == "encoded_body"


@pytest.mark.decision("D5", "D42")
async def test_the_encoding_identity_and_any_content_type_are_accepted(sandbox: Sandbox) -> None:
    codings = (b"identity", b"Identity", b"")
    types = (b"", b"text/plain", b"application/x-www-form-urlencoded", b";;charset=x")
    for header in (
        *(b"Content-Encoding: " + each for each in codings),
        *(b"Content-Type: " + each for each in types),
    ):
        answer = await exchange(sandbox, request_bytes("/make_payment", PAYMENT, header))

        assert answer.code == "202"


@pytest.mark.decision("D42")
@pytest.mark.parametrize("fast_path", [True, False])
async def test_an_encoded_body_is_not_unpacked(
    start_sandbox: StartSandbox, monkeypatch: pytest.MonkeyPatch, *, fast_path: bool
) -> None:
    """A body of 4 MB can hold 4 GB."""
    sandbox = await start_sandbox(fast_path=fast_path)
    unpack = Mock(return_value=False)
    monkeypatch.setattr(http_parser.DeflateBuffer, "feed_data", unpack)
    bomb, gzipped = gzip.compress(b" " * 10_000_000), b"Content-Encoding: gzip"
    for path, known in product(("/make_payment", "/_sandbox/inbox/orders"), (True, False)):
        answer = await exchange(sandbox, request_bytes(path, bomb, gzipped, credentials=known))

        assert answer.status == (415 if known or path.startswith("/_sandbox") else 401)
        unpack.assert_not_called()


@pytest.mark.decision("D3", "D5")
async def test_any_expectation_and_any_target_get_an_answer(sandbox: Sandbox) -> None:
    expectations = (b"100-continue", b"100-Continue", b"a miracle", b"")
    paths = (("/make_payment", "202"), ("/unknown", "404"))
    for (path, code), expectation in product(paths, expectations):
        answer = await exchange(sandbox, request_bytes(path, PAYMENT, b"Expect: " + expectation))
        assert answer.code == code, expectation

    targets = (("OPTIONS", "*"), ("GET", "http://other.example/unknown"))
    for (method, target), known in product(targets, (True, False)):
        answer = await exchange(sandbox, request_bytes(target, method=method, credentials=known))
        assert answer.code == ("404" if known else "100")


UNREADABLE = {
    "no HTTP": b"hello\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "no version": b"POST /make_payment\r\nHost: gateway\r\n\r\n",
    "odd version": b"POST /make_payment HTTP/9.9\r\nHost: gateway\r\n\r\n",
    "unknown method": request_bytes(method="FROBNICATE"),
    "method in lower case": request_bytes(method="post"),
    "method of symbols": request_bytes(method="<POST>"),
    "CONNECT": request_bytes("gateway:443", b"", method="CONNECT"),
    "space in the path": request_bytes("/make payment"),
    "control character in the path": request_bytes("/make\x01payment"),
    "raw bytes in the path": request_bytes(b"/\xff\xfe"),
    "very long path": request_bytes("/" + "x" * 70_000),
    "very long header": request_bytes("/make_payment", b"{}", b"X-Long: " + b"x" * 70_000),
    "very many headers": request_bytes("/make_payment", b"{}", *[b"X: 1"] * 40_000),
    "header without a colon": request_bytes("/make_payment", b"{}", b"nonsense"),
    "header without a name": request_bytes("/make_payment", b"{}", b": nonsense"),
    "space in a header's name": request_bytes("/make_payment", b"{}", b"X Y: nonsense"),
    "NUL in a header": request_bytes("/make_payment", b"{}", b"X-Y: \x00"),
    "folded header": request_bytes("/make_payment", b"{}", b"X-Y: 1\r\n 2"),
    "two lengths": request_bytes("/make_payment", b"{}", b"Content-Length: 3"),
    "negative length": request_bytes("/make_payment", b"", b"Content-Length: -1", length=False),
    "length in words": request_bytes("/make_payment", b"", b"Content-Length: two", length=False),
    "length and chunks": request_bytes("/make_payment", b"{}", b"Transfer-Encoding: chunked"),
    "unknown transfer": request_bytes(
        "/make_payment", b"{}", b"Transfer-Encoding: carrier-pigeon", length=False
    ),
    "chunk without a size": request_bytes(
        "/make_payment", b"xyz\r\n{}\r\n", b"Transfer-Encoding: chunked", length=False
    ),
}


@pytest.mark.decision("D5")
async def test_an_unreadable_request_gets_a_well_formed_answer(sandbox: Sandbox) -> None:
    for name, request in UNREADABLE.items():
        answer = await exchange(sandbox, request)

        assert_in_shape(answer)
        assert answer.headers["x-sandbox-request-id"], name
        assert 400 <= answer.status < 500, name
        assert (await sandbox.collect()).code == "202", name


@pytest.mark.decision("D5")
async def test_a_client_that_disconnects_does_not_affect_others(sandbox: Sandbox) -> None:
    whole, other = request_bytes(body=PAYMENT), request_bytes(body=PAYMENT, method="GET")
    for part in (b"", b"POST /make", whole[:60], whole[:-10], other[:-10]):
        wire = Wire(sandbox.url)
        wire.connect().sendall(part)
        wire.close()

        assert (await sandbox.collect()).code == "202"


@pytest.mark.spec("codes", "errors")
@pytest.mark.decision("D6")
async def test_an_error_of_the_server_is_500_and_reveals_no_details(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_store: object, _work: object) -> None:
        raise OSError("the disk of /var/secret is full")

    monkeypatch.setattr(MemoryStore, "run", broken)
    for name in ("collection", "status", "sms"):
        caplog.clear()
        operation = OPERATIONS[name]

        answer = await sandbox.post(operation.path, operation.body)

        assert (answer.status, answer.code, answer.rule) == (500, "500", "errors")
        assert set(answer.body) == {"response_code", "response_message"}
        assert "disk" not in answer.message
        assert "the disk of /var/secret is full" in caplog.text
    for method, path in (
        *(("GET", "readyz"), ("GET", "ledger"), ("POST", "inbox/orders")),
        *(("GET", "inbox/orders/messages"), ("GET", "pay/guess")),
    ):
        caplog.clear()
        refused = await ask(sandbox, method, f"/_sandbox/{path}")

        assert_error(refused, 500)
        assert "disk" not in refused.body["error"]["message"]
        (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
        assert record.getMessage() == f"{method} /_sandbox/{path} failed"
        assert "the disk of /var/secret is full" in caplog.text


@pytest.mark.decision("D1", "D6")
@pytest.mark.parametrize("prefix", ["", "/gateway/v1"])
async def test_every_path_works_under_base_path(start_sandbox: StartSandbox, prefix: str) -> None:
    sandbox = await start_sandbox(base_path="/gateway/v1")

    for number, operation in enumerate(OPERATIONS.values()):
        path, body = prefix + operation.path, {**operation.body}
        if "transaction_id" in body:
            body["transaction_id"] = f"T{number}"
        assert (await sandbox.post(path, body)).code == operation.code
        bad = await sandbox.post(path, {})
        assert (bad.status, bad.code) == (200 if path.startswith(f"{prefix}/sms/") else 400, "400")


@pytest.mark.decision("D1")
async def test_a_stop_takes_less_than_ten_seconds(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit includes the work in progress: callbacks end first, then aiohttp waits twice."""
    waits: list[float] = []

    async def shutdown(protocol: RequestHandler, timeout: float) -> None:
        waits.append(timeout)
        protocol.force_close()

    monkeypatch.setattr(RequestHandler, "shutdown", shutdown)
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/livez") as answer:
        assert answer.status == 200

    await sandbox.runner.cleanup()

    (wait,) = waits
    assert GRACE_S + 2 * wait < workers._STOP_TIMEOUT_S < 10
