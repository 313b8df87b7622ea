"""Callback addresses that are hard to parse: refused with a message, or really tried."""

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from attack.plan import Plan
from attack.results import Result, at_least, at_most, none_of
from attack.servers import Server, serving
from attack.settled import attempted, never_tried
from attack.wire import KeptConnection, NoAnswer, Response, request_bytes
from tests.kit.requests import collection

_ATTEMPTED_WITHIN_S: Final = 10.0
# Callbacks stay on this machine, whichever host an address has.
_LOOPBACK_ONLY: Final = json.dumps({"allow": ["127.0.0.0/8", "::1"]})
ODD: Final = (
    *("http://[1:2:3]:9/", "http://[:::]:9/", "http://[::1.]:9/", "http://[]:9/"),
    *("http://[::1", "http://::1]:9/", "http://[::1]x:9/", "http://[::1]:/", "http://[.]:9/"),
    *("http://[:]:9/", "http://[1]:9/", "http://[::ffff:1.2.3]:9/", "http://[::g]:9/"),
    *("http://[fe80::1%]:9/", "http://[fe80::1%25]:9/", "http://[fe80::1%25lo]:9/"),
    *("http://[v1.x]:9/", "http://[::1]:65536/", "http://[::1]:-1/", "http://[127.0.0.1]:9/"),
    *("http://127.0.0.1:0/", "http://127.0.0.1:99999/", "http://127.0.0.1:/", "http://:9/"),
    *("http://127.0.0.1:９/", "http://127.0.0.1:9 /", "http://127.0.0.1:+9/", "http://@:9/"),
    *("http://", "http:///", "http://?", "http://#", "http:127.0.0.1", "//127.0.0.1:9/"),
    *("http://.:9/", "http://..:9/", "http://a..b.invalid:9/", "http://.invalid:9/"),
    *("http://-.invalid:9/", "http://_.invalid:9/", "http://xn--.invalid:9/"),
    *("http://xn--a.invalid:9/", f"http://{'a' * 64}.invalid:9/", "http://ä.invalid:9/"),
    *(f"http://{'a.' * 130}invalid:9/", "http://%00.invalid:9/", "http://%.invalid:9/"),
    *("http://%zz.invalid:9/", "http://\u202e.invalid:9/", "http://\u00ad.invalid:9/"),
    *("http://\ud800.invalid:9/", "http://127.0.0.1:9/\ud800", "http://127.0.0.1:9/%"),
    *("http://127.0.0.1:9/%zz", "http://127.0.0.1:9/\x00", "http://127.0.0.1:9/\r\nX: 1"),
    *("http://127.0.0.1:9/?%", "http://127.0.0.1:9/#\u2028", "http://127.0.0.1:9/../.."),
    *("http://u:p@", "http://u:p@:9/", "http://u:\ud800@127.0.0.1:9/", "http://@@127.0.0.1:9/"),
    *("http://127.0.0.1\\:9/", "http://127.0.0.1:9\\x", "http://1.2.3.4.5:9/", "http://256.1:9/"),
    *("http://127.0.0.1:9/ x", " http://127.0.0.1:9/", "http://127.0.0.1:9/\n", "ftp://x.invalid"),
    *("file:///etc/hosts", "javascript:1", "http+unix://x.invalid", "https://127.0.0.1:9/", "x"),
    *(f"http://127.0.0.1:9/{'x' * 3000}", f"http://127.0.0.1:9/{'é' * 700}", "http://💥:9/"),
)
_PIECES: Final = (
    *("http://", "https://", "HTTP:", "//", "/", "\\", "[", "]", "[::", "::1", ":", "@", "?", "#"),
    *("%", "%00", "%5B", ".", "..", "127.0.0.1", "0x7f", ".invalid", "é", "\u200b", "\u3002"),
    *("\ud800", "\x00", "\t", " ", "xn--", "-", "_", "9", ":9", ":99999", "fe80::1%lo", "1:2:3"),
)


async def attack(plan: Plan) -> list[Result]:
    """Try the addresses of the list, and random ones."""
    random = plan.random("odd-addresses")
    random_ones = [mutated(random) for _ in range(plan.pick(300, 10_000))]
    return await _try(plan, [*ODD, *random_ones])


def mutated(random: Random) -> str:
    """An address made of random pieces, or one of the list with a few characters changed.

    No piece is a name that exists, and the server's rule keeps callbacks on loopback.
    """
    if random.random() < 0.4:
        return "http://" + "".join(random.choices(_PIECES, k=random.randint(1, 6)))
    text = list(random.choice(ODD[:-3]))
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(text) + 1)
        text[at : at + random.randint(0, 1)] = random.choice(_PIECES)
    return "".join(text)


async def _try(plan: Plan, addresses: Sequence[str]) -> list[Result]:
    """One payment, and one resend, for each address."""
    settings = ("settle_delay_ms=0", "callback_attempts=1", "callback_timeout_s=2")
    log = plan.directory / "odd.log"
    async with serving(log, *settings, f"callback_hosts={_LOOPBACK_ONLY}") as server:
        answers = await _paid(server, addresses)
        callbacks = await attempted(server, _ATTEMPTED_WITHIN_S)
        shown = list(zip(addresses, answers, strict=True))
        name, tried = "odd addresses:", len(addresses)
        accepted = sum(1 for answer in answers if answer.status == 202)
        faults = [_said(*each) for each in shown if each[1].status not in {202, 400}]
        unnamed = [_said(*each) for each in shown if _is_unnamed(each[1])]
        untried = [ascii(each["url"]) for each in callbacks if never_tried(each)]
        resent = await _resent(server, callbacks, addresses)
        return [
            at_least(f"{name} accepted", accepted, 1),
            none_of(f"{name} answered with neither 202 nor 400", faults, tried),
            none_of(f"{name} refused without naming the field", unnamed, tried),
            none_of(f"{name} accepted and never tried", untried, accepted),
            none_of(f"{name} resend answers a fault", resent, tried),
            at_most(f"{name} tracebacks in the log", server.tracebacks, 0),
        ]


async def _paid(server: Server, addresses: Sequence[str]) -> list[Response]:
    connection = KeptConnection(server.port)
    answers = []
    for number, address in enumerate(addresses):
        body = collection(f"T{number}", callback_url=address)
        answers.append(await _answered(connection, "/make_payment", body))
    connection.close()
    return answers


async def _answered(connection: KeptConnection, path: str, body: object) -> Response:
    """The answer; one with status 0 if none came."""
    try:
        return await connection.send(request_bytes(path, body))
    except NoAnswer as error:
        return Response(0, {}, str(error).encode())


def _is_unnamed(answer: Response) -> bool:
    """Half of a surrogate pair is not valid text, so the whole body is refused."""
    named = b"callback_url" in answer.body or b"not valid JSON" in answer.body
    return answer.status == 400 and not named


async def _resent(
    server: Server, callbacks: Sequence[dict[str, Any]], addresses: Sequence[str]
) -> list[str]:
    """Send one callback again to each address: the answer is 202, or 400 with a message."""
    connection = KeptConnection(server.port)
    found = []
    for address in addresses if callbacks else ():
        path = f"/_sandbox/callbacks/{callbacks[0]['id']}/resend"
        answer = await _answered(connection, path, {"url": address})
        if answer.status not in {202, 400}:
            found.append(_said(address, answer))
    connection.close()
    return found


def _said(address: str, answer: Response) -> str:
    return f"{address!a}: HTTP {answer.status} {answer.body[:80]!r}"
