"""A thousand odd requests, ten thousand with --hypothesis-profile=long: each gets an answer in
the interface's shape.

One gateway runs in a thread of its own on a clock that stands still, so no callback ever leaves.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings, strategies as st

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.bootstrap import build
from sandbox_sim.config import Settings
from sandbox_sim.web.transport.server import GatewayRunner
from tests.conftest import basic
from tests.web.operations import OPERATIONS, PATHS
from tests.web.wire import Answer, Wire, assert_in_shape, request_bytes

pytestmark = [pytest.mark.spec("codes"), pytest.mark.decision("D5")]


def examples(count: int) -> settings:
    """So many of them, and ten times as many in the long profile."""
    return settings(
        max_examples=count * 10 if settings.get_current_profile_name() == "long" else count,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


async def serve(store: str, started: threading.Event, found: list[Any]) -> None:
    gateway = build(Settings(store=store), clock=VirtualClock(), ids=RandomIds(seed=1))
    runner = GatewayRunner(gateway.app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    stop = asyncio.Event()
    found += [runner.addresses[0][1], asyncio.get_running_loop(), stop]
    started.set()
    await stop.wait()
    await runner.cleanup()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running gateway, on the store that `serve` has by default."""
    store = f"sqlite:{tmp_path_factory.mktemp('fuzz') / 'state.sqlite3'}"
    started, found = threading.Event(), list[Any]()
    thread = threading.Thread(target=lambda: asyncio.run(serve(store, started, found)))
    thread.start()
    assert started.wait(10)
    port, loop, stop = found
    yield f"http://127.0.0.1:{port}"
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def wire(url: str) -> Iterator[Wire]:
    """A connection to it that is kept alive."""
    connection = Wire(url)
    yield connection
    connection.close()


paths = st.sampled_from(PATHS)
numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, -1, 9, 59, 2**31, 2**63, 10**400, 1e-320, 10000, 10000.01]),
)
ODD_TEXTS = [
    "",
    " ",
    "\x00",
    "NaN",
    "\u202e",
    "\ud800",
    "\r\nX: 1",
    "😀" * 40,
    "€" * 200,
    "x" * 9000,
]
texts = st.one_of(st.text(max_size=30), st.sampled_from(ODD_TEXTS))
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
documents = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
digits = st.text("0123456789", max_size=16)
PREFIXES = ["", "0244", "0200", "0270", "233244", "+233244", "411111", "200000000"]
phones = st.builds(str.__add__, st.sampled_from(PREFIXES), digits)
times = st.one_of(
    st.datetimes().map(str),
    st.from_regex(r"\d{1,4}-\d{1,2}-\d{1,2}([ T]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?", fullmatch=True),
)
SCHEMES = ["http://", "https://", "HTTP://", "http:", "//", "http://[", "http://@", "ftp://"]
addresses = st.builds(str.__add__, st.sampled_from(SCHEMES), texts)
WORDS = "CTM DTTW MTC BLP ATP MOM CRD CRM BNK MTN VOD AIR VIS MAS ECO ECG GHS USD SENT A S002"
words = st.sampled_from(WORDS.split())
likely = {
    "amount": numbers,
    "service_id": numbers,
    "page": numbers,
    "limit": numbers,
    "customer_number": phones,
    "account_number": phones,
    "recipients": st.lists(st.one_of(phones, leaves), max_size=5),
    "request_time": times,
    "start_date": st.one_of(st.dates().map(str), times),
    "end_date": st.one_of(st.dates().map(str), times),
    "callback_url": addresses,
    "landing_page": addresses,
}


@st.composite
def near_misses(draw: st.DrawFn) -> tuple[str, bytes]:
    """A well-formed body with a few fields gone, replaced, or moved to another path."""
    operation = OPERATIONS[draw(st.sampled_from(list(OPERATIONS)))]
    body = dict(operation.body)
    for field in draw(st.sets(st.sampled_from(sorted(body)), max_size=3)):
        match draw(st.sampled_from(["gone", "likely", "word", "anything"])):
            case "gone":
                del body[field]
            case "likely":
                body[field] = draw(likely.get(field, texts))
            case "word":
                body[field] = draw(words)
            case _:
                body[field] = draw(documents)
    if draw(st.integers(0, 9)) == 0:
        body[draw(st.text(max_size=8))] = draw(documents)
    path = draw(paths) if draw(st.integers(0, 19)) == 0 else operation.path
    return path, dumped(body, ascii_only=draw(st.booleans()))


def dumped(document: object, *, ascii_only: bool = True) -> bytes:
    """JSON as Python writes it: NaN and Infinity too, lone surrogates if they are escaped."""
    return json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


def assert_answered(answer: Answer, path: str) -> None:
    """In shape, and with HTTP 200 on the SMS paths."""
    assert_in_shape(answer)
    if path.startswith("/sms/"):
        assert answer.status == 200


@examples(150)
@given(path=paths, body=st.binary(max_size=200))
def test_any_bytes_are_answered(wire: Wire, path: str, body: bytes) -> None:
    assert_answered(wire.send(request_bytes(path, body)), path)


@examples(200)
@given(path=paths, document=documents)
def test_any_json_is_answered(wire: Wire, path: str, document: object) -> None:
    assert_answered(wire.send(request_bytes(path, dumped(document))), path)


@pytest.mark.decision("D6")
@examples(400)
@given(request_=near_misses())
def test_almost_well_formed_bodies_are_answered(wire: Wire, request_: tuple[str, bytes]) -> None:
    path, body = request_

    assert_answered(wire.send(request_bytes(path, body)), path)


token = st.text("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABC", min_size=1, max_size=12)
HEADERS = (
    "Authorization User-Agent Content-Type Content-Encoding Accept Accept-Encoding Expect Cookie "
    "Origin Referer Range If-Match X-Forwarded-For Forwarded Upgrade Via TE Trailer Pragma"
)
header_names = st.one_of(
    st.sampled_from(HEADERS.split()),
    token.filter(lambda name: name.lower() not in {"content-length", "transfer-encoding"}),
)
header_values = st.one_of(
    st.sampled_from(
        [b"", b"gzip", b"deflate", b"br", b"100-continue", b"Basic", b"Basic =", b"websocket", b";"]
    ),
    st.just(basic().encode()),
    st.binary(max_size=60).map(lambda raw: bytes(b for b in raw if b > 31 and b != 127)),
)
headers = st.lists(st.builds(lambda n, v: n.encode() + b": " + v, header_names, header_values))


@pytest.mark.decision("D3", "D4")
@examples(100)
@given(
    path=paths, lines=headers, body=st.binary(max_size=20), known=st.booleans(), agent=st.booleans()
)
def test_any_headers_are_answered(
    url: str, path: str, lines: list[bytes], body: bytes, *, known: bool, agent: bool
) -> None:
    wire = Wire(url)
    try:
        request = request_bytes(path, body, *lines, credentials=known, agent=agent)
        assert_in_shape(wire.send(request))
    finally:
        wire.close()


targets = st.one_of(
    st.text("/abcsmS_.-~!$&'()*+,;=:@%20aF?#", max_size=30).map("/".__add__),
    st.builds(str.__add__, paths, st.text("/?&=%aF0.;", max_size=4)),
    paths,
).filter(lambda path: not path.startswith("/_sandbox/"))
METHODS = "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE PROPFIND LOCK REPORT PURGE NOTIFY LINK"
methods = st.sampled_from(METHODS.split())


@examples(100)
@given(target=targets, method=methods, known=st.booleans())
def test_any_path_and_method_are_answered(
    wire: Wire, target: str, method: str, *, known: bool
) -> None:
    head = method == "HEAD"
    request = request_bytes(target, b"{}", method=method, credentials=known)

    assert_in_shape(wire.send(request, head=head), bodiless=head)


@examples(50)
@given(line=st.binary(min_size=1, max_size=60).map(lambda raw: b"!" + raw.replace(b"\n", b"")))
def test_what_is_no_http_is_answered(url: str, line: bytes) -> None:
    wire = Wire(url)
    try:
        assert_in_shape(wire.send(line + b"\r\n\r\n"))
    finally:
        wire.close()


@pytest.mark.spec("endpoint.8")
def test_after_all_that_it_still_works(wire: Wire) -> None:
    operation = OPERATIONS["balance"]

    answer = wire.send(request_bytes(operation.path, json.dumps(operation.body).encode()))

    assert (answer.status, answer.code) == (200, "000")
