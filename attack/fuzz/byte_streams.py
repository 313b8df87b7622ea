"""Random byte streams for one connection: pipelined requests, damaged as request smuggling does.

In a stream `@@` stands for the digits of a `service_id`, so the same stream can be sent for two
services and its effects can be distinguished.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple

from attack.wire import request_bytes
from tests.kit.requests import collection

Bytes = tuple[bytes, ...]

SERVICE: Final = b"@@"
CLOSE: Final = b"Connection: close"
# The kernel splits a larger piece into reads whose sizes differ from connection to connection, and
# aiohttp drops the requests that came in one read with a broken one.
_LARGEST_PIECE: Final = 32_768


class Stream(NamedTuple):
    """cuts: where it is cut. answers: how many must come; None if the stream is damaged.

    half_closed: whether the client ends its side behind it.
    """

    raw: bytes
    cuts: tuple[int, ...]
    answers: int | None
    half_closed: bool

    def of_service(self, service_id: bytes) -> bytes:
        """The whole stream with this service, which has two digits."""
        return self.raw.replace(SERVICE, service_id)

    def pieces(self, service_id: bytes) -> list[bytes]:
        """The same stream in pieces."""
        raw, ends = self.of_service(service_id), (0, *self.cuts, len(self.raw))
        return [raw[begin:end] for begin, end in pairwise(ends) if begin < end]


def stream(random: Random, name: str) -> Stream:
    """A few requests, or very many; all their transaction ids begin with `name`."""
    count = random.choice((1, 2, 3, 4, 5) * 4 + (40,))
    requests = [_request(random, f"{name}-{number}") for number in range(count)]
    is_spoiled = random.random() < 0.8
    if is_spoiled:
        for place in random.sample(range(count), random.randint(1, count)):
            spoil = random.choice(_SPOILERS)
            requests[place] = spoil(requests[place], random, f"{name}-{place}x")
    if random.random() < 0.8:
        requests.append(request_bytes("/make_payment", _payment(f"{name}-last"), CLOSE))
    raw = b"".join(requests)
    answers = None if is_spoiled else len(requests)
    return Stream(raw, _cuts(raw, random), answers, half_closed=random.random() < 0.5)


def _payment(transaction_id: str) -> bytes:
    body = {**collection(transaction_id), "service_id": 0}
    return json.dumps(body).encode().replace(b'"service_id": 0', b'"service_id": ' + SERVICE)


def _chunked(body: bytes, random: Random) -> bytes:
    at = random.randrange(len(body) + 1)
    parts = [part for part in (body[:at], body[at:]) if part]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def _head(raw: bytes, *headers: bytes) -> bytes:
    """The request with more headers at the end of its head."""
    head, _, body = raw.partition(b"\r\n\r\n")
    return b"\r\n".join([head, *headers, b"", body])


def _without_length(raw: bytes) -> bytes:
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = (line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length"))
    return b"\r\n".join([*lines, b"", body])


def _as_chunked(raw: bytes, random: Random) -> bytes:
    head, _, body = _without_length(raw).partition(b"\r\n\r\n")
    return _head(head + b"\r\n\r\n" + _chunked(body, random), b"Transfer-Encoding: chunked")


def _request(random: Random, transaction_id: str) -> bytes:
    """A valid request, most often a plain payment."""
    payment = request_bytes("/make_payment", _payment(transaction_id))
    kinds: Mapping[str, Callable[[], bytes]] = {
        "sms balance": lambda: request_bytes("/sms/balance", b'{"service_id": @@}'),
        "bad body": lambda: request_bytes("/make_payment", b"{"),
        "chunked": lambda: _as_chunked(payment, random),
        "large": lambda: request_bytes("/make_payment", _payment(transaction_id).ljust(70_000)),
        "expects": lambda: _head(payment, b"Expect: 100-continue"),
        "stranger": lambda: request_bytes("/make_payment", b"{}", credentials=False),
        "unknown": lambda: request_bytes("/no/such/path", b"{}"),
        "get": lambda: request_bytes("/make_payment", method=b"GET"),
        "ours": lambda: request_bytes("/_sandbox/version", method=b"GET"),
        "query": lambda: request_bytes("/make_payment?a=b", _payment(transaction_id)),
        "blank before": lambda: b"\r\n" + payment,
    }
    return payment if random.random() < 0.5 else kinds[random.choice(list(kinds))]()


def _cuts(raw: bytes, random: Random) -> tuple[int, ...]:
    """Cuts for one, a few or many pieces, none larger than one read takes."""
    count = random.choice((0, 0, 1, 3, 12))
    anywhere = (random.randrange(len(raw) + 1) for _ in range(count))
    return tuple(sorted((*anywhere, *range(_LARGEST_PIECE, len(raw), _LARGEST_PIECE))))


# The ways to damage a request: each takes it, a generator, and an id for another request.
def _bytes_changed(raw: bytes, random: Random, _name: str) -> bytes:
    data = bytearray(raw)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(data) + 1)
        inserted = random.choice((b"", b"\r", b"\n", b"\r\n", b"\x00", b" ", b":", b"\t", b"\xff"))
        data[at : at + random.randint(0, 2)] = inserted
    return bytes(data)


def _cut_short(raw: bytes, random: Random, _name: str) -> bytes:
    return raw[: random.randrange(len(raw))]


def _followed_by_more(raw: bytes, random: Random, _name: str) -> bytes:
    return raw + random.choice((b"}", b"\r\n", b"\n", b"x", b"GET", b"\x00", b"0\r\n\r\n"))


def _two_lengths(raw: bytes, random: Random, _name: str) -> bytes:
    length = random.choice((b"0", b"1", b"5", b"99999", raw.partition(b"Length: ")[2][:3]))
    line = b"Content-Length: " + length.strip()
    if random.random() < 0.5:
        return _head(raw, line)
    return raw.replace(b"Host:", line + b"\r\nHost:", 1)


def _odd_length(raw: bytes, random: Random, _name: str) -> bytes:
    odd: Bytes = (b"+5", b"-1", b"0x5", b"5, 5", b"5,6", b"5.0", b"", b" ", b"\t5", b"5 ", b"00005")
    more: Bytes = (b"9" * 30, b"\xb2", b"5\x0b", b"5_0", b"5;5", "５".encode(), b"NaN")
    head, found, rest = raw.partition(b"Content-Length: ")
    _, _, after = rest.partition(b"\r\n")
    return (
        head + b"Content-Length: " + random.choice(odd + more) + b"\r\n" + after if found else raw
    )


_CODINGS: Final = (
    *(b"chunked", b"Chunked", b" chunked", b"chunked ", b"\tchunked", b"chunked\x0b", b"xchunked"),
    *(b"chunked, identity", b"identity, chunked", b"identity", b"gzip, chunked", b"chunked, gzip"),
    *(b"chunked,chunked", b"chunked;q=1", b'"chunked"', b"", b",chunked", b"chunked,", b"\x00"),
)


def _both_framings(raw: bytes, random: Random, name: str) -> bytes:
    """Add a length and a coding, and a request at the place where the two disagree on the end."""
    inner = request_bytes("/make_payment", _payment(name))
    body = random.choice((b"0\r\n\r\n" + inner, _chunked(inner, random), inner))
    coding = b"Transfer-Encoding: " + random.choice(_CODINGS)
    head = _head(raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n", coding)
    if random.random() < 0.3:
        head = head.replace(b"Transfer-Encoding:", b"Transfer-Encoding :", 1)
    if random.random() < 0.3:
        head = _head(head, b"Transfer-Encoding: " + random.choice(_CODINGS))
    length = random.choice((0, 4, 5, len(body), len(body) + 1))
    lengthy = _head(_without_length(head), b"Content-Length: %d" % length)
    return random.choice((head, lengthy, _without_length(head))) + body


def _odd_chunks(raw: bytes, random: Random, name: str) -> bytes:
    sizes: Bytes = (
        b"0x5",
        b"+5",
        b"-5",
        b" 5",
        b"5 ",
        b"5;a=b",
        b'5;a="\n"',
        b"5\t",
        b"",
        b"g",
        b"05",
    )
    sizes += (b"f" * 17, b"0" * 40 + b"5", b"5;\n", b"5\r", b"5\n", b"5_0")
    ends: Bytes = (
        b"0\r\n\r\n",
        b"0\n\n",
        b"0\r\n",
        b"00\r\n\r\n",
        b"0;x\r\n\r\n",
        b"0\r\nX: 1\r\n\r\n",
    )
    ends += (b"0\r\nContent-Length: 5\r\n\r\n", b"0\r\n\r\r\n", b"")
    inner = request_bytes("/make_payment", _payment(name))
    first = random.choice(sizes) + random.choice((b"\r\n", b"\n", b"\r")) + b"{    "
    body = first + random.choice((b"\r\n", b"\n", b"", b"xx\r\n")) + random.choice(ends)
    head = _without_length(raw).partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    return _head(head, b"Transfer-Encoding: chunked") + body + random.choice((b"", inner))


def _bare_feeds(raw: bytes, random: Random, _name: str) -> bytes:
    if random.random() < 0.4:
        return raw.replace(b"\r\n", random.choice((b"\n", b"\r")))
    places = [at for at in range(len(raw)) if raw[at : at + 2] == b"\r\n"]
    at = random.choice(places)
    return raw[:at] + random.choice((b"\n", b"\r", b"\n\r", b"\r\r\n")) + raw[at + 2 :]


def _odd_header(raw: bytes, random: Random, _name: str) -> bytes:
    return _head(
        raw,
        *random.sample(
            (
                *(b"X-A: 1\r\n folded", b" X-A: 1", b"X-A : 1", b"X A: 1", b": 1", b"X-A", b"X-A:"),
                *(
                    b"X-A: \x00",
                    b"X-A: \xff\xfe",
                    b"X-A: a\rb",
                    b"X-\xe9: 1",
                    b"Content-Length : 3",
                ),
                *(b"Content_Length: 3", b"Connection: upgrade\r\nUpgrade: websocket", CLOSE),
                *(b"Connection: keep-alive", b"Connection: close, keep-alive", b"Upgrade: h2c"),
                *(b"Expect: 100-continue", b"Expect: 200-ok", b"Content-Encoding: gzip"),
                *(b"Content-Encoding: br", b"X-B: " + b"b" * 66_000, b"Host: other.example"),
                *(b"Connection: content-length", b"Connection: transfer-encoding", b"TE: trailers"),
            ),
            random.randint(1, 2),
        ),
    )


def _odd_first_line(raw: bytes, random: Random, _name: str) -> bytes:
    _, _, rest = raw.partition(b"\r\n")
    methods = (b"POST", b"post", b"PoST", b"GET", b"HEAD", b"PUT", b"OPTIONS", b"CONNECT", b"X")
    targets: Bytes = (
        b"/make_payment",
        b"//make_payment",
        b"/make_payment/",
        b"/make%5fpayment",
        b"*",
    )
    targets += (b"http://127.0.0.1/make_payment", b"make_payment", b"/make_payment#x", b"/\xff")
    targets += (b"/make_payment?\x7f", b"/a b", b"", b"127.0.0.1:80", b"/./make_payment")
    versions = (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1", b"HTTP/1.1 ", b"")
    blank = random.choice((b" ", b" ", b" ", b"\t", b"  "))
    chosen = (random.choice(methods), random.choice(targets), random.choice(versions))
    return blank.join(chosen) + b"\r\n" + rest


def _compressed(raw: bytes, random: Random, _name: str) -> bytes:
    head, _, body = _without_length(raw).partition(b"\r\n\r\n")
    packed = zlib.compress(body)[: random.choice((None, 5))]
    lines = (b"Content-Encoding: deflate", b"Content-Length: %d" % len(packed))
    return _head(head + b"\r\n\r\n" + packed, *lines)


def _not_http(_raw: bytes, random: Random, _name: str) -> bytes:
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    return random.choice((hello, preface, b"\r\n" * 50, random.randbytes(60) + b"\r\n\r\n"))


_SPOILERS: Final = (
    *(_bytes_changed, _cut_short, _followed_by_more, _two_lengths, _odd_length, _both_framings),
    *(_both_framings, _odd_chunks, _odd_chunks, _bare_feeds, _odd_header, _odd_first_line),
    *(_compressed, _not_http),
)
