"""Odd requests: each gets an answer in the shape of the interface.

The option --hypothesis-profile=long sends 75 times as many. One gateway runs in its own thread
with a frozen clock, so it sends no callbacks.
"""

from contextlib import closing

import pytest
from hypothesis import given, strategies as st

from tests.conftest import basic
from tests.kit.requests import OPERATIONS, PATHS
from tests.web.fuzzing import documents, dumped, examples, leaves, numbers, phones, texts, url, wire
from tests.web.wire import Answer, Wire, assert_in_shape, request_bytes

__all__ = ["url", "wire"]

pytestmark = [pytest.mark.spec("codes"), pytest.mark.decision("D5")]

paths = st.sampled_from(PATHS)
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
    """Draw a valid body, and remove, replace or add some fields, or change the path."""
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


def assert_answered(answer: Answer, path: str) -> None:
    """Assert an answer in the shape of the interface, with HTTP 200 on the SMS paths."""
    assert_in_shape(answer)
    if path.startswith("/sms/"):
        assert answer.status == 200


@examples(47)
@given(path=paths, body=st.one_of(st.binary(max_size=200), documents.map(dumped)))
def test_any_bytes_and_any_json_are_answered(wire: Wire, path: str, body: bytes) -> None:
    assert_answered(wire.send(request_bytes(path, body)), path)


@pytest.mark.decision("D6")
@examples(53)
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
@examples(13)
@given(
    path=paths, lines=headers, body=st.binary(max_size=20), known=st.booleans(), agent=st.booleans()
)
def test_any_headers_are_answered(
    url: str, path: str, lines: list[bytes], body: bytes, *, known: bool, agent: bool
) -> None:
    with closing(Wire(url)) as wire:
        request = request_bytes(path, body, *lines, credentials=known, agent=agent)
        assert_in_shape(wire.send(request))


targets = st.one_of(
    st.text("/abcsmS_.-~!$&'()*+,;=:@%20aF?#", max_size=30).map("/".__add__),
    st.builds(str.__add__, paths, st.text("/?&=%aF0.;", max_size=4)),
    paths,
).filter(lambda path: not path.startswith("/_sandbox/"))
METHODS = "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE PROPFIND LOCK REPORT PURGE NOTIFY LINK"
methods = st.sampled_from(METHODS.split())


@examples(13)
@given(target=targets, method=methods, known=st.booleans())
def test_any_path_and_method_are_answered(
    wire: Wire, target: str, method: str, *, known: bool
) -> None:
    head = method == "HEAD"
    request = request_bytes(target, b"{}", method=method, credentials=known)

    assert_in_shape(wire.send(request, head=head), bodiless=head)


@examples(7)
@given(line=st.binary(min_size=1, max_size=60).map(lambda raw: b"!" + raw.replace(b"\n", b"")))
def test_bytes_that_are_not_http_are_answered(url: str, line: bytes) -> None:
    with closing(Wire(url)) as wire:
        assert_in_shape(wire.send(line + b"\r\n\r\n"))
