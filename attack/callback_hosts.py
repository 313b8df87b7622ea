"""Ways to write a loopback address, tried against the setting `callback_hosts` that denies it."""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attack.load import send_all
from attack.plan import Plan
from attack.receivers import receiving
from attack.results import Result, at_least, at_most, none_of
from attack.servers import serving
from attack.settled import attempted
from attack.wire import request_bytes
from tests.kit.requests import collection

_DENY: Final = {"deny": ["127.0.0.0/8", "::1"]}
# Without the rule at least this many ways must reach the listener, or the attack proves nothing.
_MUST_REACH: Final = 10
# {0} is the port.
LOOPBACK: Final = (
    *("http://127.0.0.1:{0}/", "http://127.0.0.2:{0}/", "http://127.1.2.3:{0}/"),
    *("http://127.255.255.254:{0}/", "http://127.1:{0}/", "http://127.0.1:{0}/"),
    *("http://0.0.0.0:{0}/", "http://0:{0}/", "http://0x0:{0}/", "http://00:{0}/"),
    *("http://0.0:{0}/", "http://0.0.0:{0}/", "http://000.000.000.000:{0}/"),
    *("http://0x7f000001:{0}/", "http://0X7F000001:{0}/", "http://0x7f.0.0.1:{0}/"),
    *("http://0x7f.0x0.0x0.0x1:{0}/", "http://0x7f.1:{0}/", "http://2130706433:{0}/"),
    *("http://017700000001:{0}/", "http://0177.0.0.1:{0}/", "http://0177.0.0.01:{0}/"),
    *("http://127.0.0.01:{0}/", "http://127.000.000.001:{0}/", "http://127.0.0.0x1:{0}/"),
    *("http://127.0.0.1.:{0}/", "http://127.0.0.1..:{0}/", "http://6425673729:{0}/"),
    *("http://[::1]:{0}/", "http://[::]:{0}/", "http://[0:0:0:0:0:0:0:1]:{0}/"),
    *("http://[0000:0000:0000:0000:0000:0000:0000:0001]:{0}/", "http://[0::1]:{0}/"),
    *("http://[::0.0.0.1]:{0}/", "http://[::0.0.0.0]:{0}/", "http://[::1%25lo]:{0}/"),
    *("http://[::1%lo]:{0}/", "http://[::1%251]:{0}/", "http://[::%25lo]:{0}/"),
    *("http://[::ffff:127.0.0.1]:{0}/", "http://[::ffff:7f00:1]:{0}/"),
    *("http://[::FFFF:127.0.0.1]:{0}/", "http://[0:0:0:0:0:ffff:127.0.0.1]:{0}/"),
    *("http://[::ffff:0.0.0.0]:{0}/", "http://[::ffff:127.1.2.3]:{0}/"),
    *("http://[::127.0.0.1]:{0}/", "http://[::7f00:1]:{0}/"),
    *("http://[64:ff9b::127.0.0.1]:{0}/", "http://[64:ff9b::7f00:1]:{0}/"),
    *("http://[64:ff9b:1::7f00:1]:{0}/", "http://[2002:7f00:1::]:{0}/"),
    *("http://[2002:7f00:1::1]:{0}/", "http://[::ffff:0:127.0.0.1]:{0}/"),
    *("http://localhost:{0}/", "http://LOCALHOST:{0}/", "http://localhost.:{0}/"),
    *("http://a.localhost:{0}/", "http://localhost.localdomain:{0}/", "http://ip6-localhost:{0}/"),
    *("http://%31%32%37.0.0.1:{0}/", "http://127%2e0.0.1:{0}/", "http://%6cocalhost:{0}/"),
    *("http://127。0。0。1:{0}/", "http://１２７.０.０.１:{0}/", "http://①②⑦.⓪.⓪.①:{0}/"),
    *("http://ⓛocalhost:{0}/", "http://LOCALHOſT:{0}/", "http://127.0.0.1\u200b:{0}/"),
    *("http://user@127.0.0.1:{0}/", "http://user:pw@localhost:{0}/", "http://a@b@127.1:{0}/"),
    *("http://192.0.2.1:80@127.0.0.1:{0}/", "http://127.0.0.1:{0}\\@192.0.2.1/"),
    *("http://127.0.0.1:{0}#@192.0.2.1/", "http://127.0.0.1:{0}?@192.0.2.1/"),
    *("HTTP://127.0.0.1:{0}/", "http:\\\\127.0.0.1:{0}/", "http:///127.0.0.1:{0}/"),
    *("http://[::1]:0{0}/", "http://127.0.0.1:0{0}/", "http://[[::1]]:{0}/", "http://::1:{0}/"),
)


async def attack(plan: Plan) -> list[Result]:
    """Pay once for each address, on a server that denies loopback and on one that does not."""
    logs = plan.directory / "denied.log", plan.directory / "allowed.log"
    (past, tracebacks), (without, more) = await asyncio.gather(
        _reached(logs[0], f"callback_hosts={json.dumps(_DENY)}"), _reached(logs[1])
    )
    name = "callback_hosts deny:"
    reached = f"{name} of these ways, reaching loopback where nothing is denied"
    return [
        none_of(f"{name} ways to write loopback that get past it:", past, len(LOOPBACK)),
        at_least(reached, len(without), _MUST_REACH),
        at_most(f"{name} tracebacks in the log", tracebacks + more, 0),
    ]


async def _reached(log: Path, *settings: str) -> tuple[Sequence[str], int]:
    """The addresses that reached the listener, and the number of tracebacks in the log."""
    soon = ("settle_delay_ms=0", "callback_attempts=1", "callback_timeout_s=2")
    async with receiving("127.0.0.1", "::1") as listener, serving(log, *soon, *settings) as server:
        urls = [f"{way.format(listener.port)}way-{n}-" for n, way in enumerate(LOOPBACK)]
        bodies = (collection(f"T{n}", callback_url=url) for n, url in enumerate(urls))
        await send_all(server.port, (request_bytes("/make_payment", body) for body in bodies))
        await attempted(server, within=4.0)
        # The body has the number too, because some addresses lose their path.
        numbers = {_number(raw) for raw in listener.requests}
        named = [urls[number] for number in sorted(numbers - {-1})]
        unknown = ["an address that cannot be told"] if -1 in numbers else []
        return [*named, *unknown], server.tracebacks


def _number(raw: bytes) -> int:
    found = re.search(rb'"trans_ref": ?"T(\d+)"', raw)
    return int(found[1]) if found else -1
