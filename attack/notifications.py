"""Notifications that pretend to come from networks: they need no credentials.

Numbers with huge exponents, texts that no column can hold, and large bodies; on a SQLite file.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from attack.load import send_all
from attack.plan import Plan
from attack.production import notification, payment, pending, producing, signature_of
from attack.results import Result, at_most, none_of
from attack.servers import Probe, Server
from attack.wire import KeptConnection, request_bytes
from tests.kit.requests import collection

_GROWTH_MIB: Final = 50.0
_SILENCE_S: Final = 0.5
_ERRORS_A_MINUTE: Final = 60.0
_RATIO: Final = 10.0
_DISK_MIB: Final = 10.0
_UNSTORABLE: Final = 1_000
_LARGE: Final = 300
_LARGE_BYTES: Final = 1_000_000
# What a notification may have, 64 KiB.
_MOST_BYTES: Final = 65_536
# How long notifications that were acknowledged may take until they are read.
_READ_WITHIN_S: Final = 30.0
_MANY_DIGITS: Final = "9" * 5_000
_NUMBERS: Final = (
    *("0e-1000000000", "1e1000000000", "-1E+999999999", "1e-999999999", "0.1e400000000"),
    *(_MANY_DIGITS, f"0.{_MANY_DIGITS}", f"1e{_MANY_DIGITS}", '"1e999999999"'),
)
_UNSTORABLE_TEXTS: Final = ("A\x00B", "no funds \ud83d", "\udc00", "x" * 12_000, "\x00" * 300)


async def attack(plan: Plan) -> list[Result]:
    """Send each kind in turn, about a payment that the network has not decided.

    With `--full` the log is watched for a whole minute.
    """
    path, log = plan.directory / "state.sqlite3", plan.directory / "notifications.log"
    later = "settle_delay_ms=86400000"  # the callbacks of the sandbox would fill the log
    async with producing(log, f"sqlite:{path}", pending, later) as (server, came):
        connection = KeptConnection(server.port)
        await connection.send(payment("known"))
        reference = str(json.loads(came[0].body)["id"])
        attempt = json.loads(came[0].body)["callback"].rpartition("/")[2]
        before_ms = await _payment_ms(server, "before", 1.0)

        rss = server.rss_mib(most=True)
        async with Probe(server).running() as probe:
            exponents = list(_with_exponents(attempt, reference))
            statuses = await send_all(server.port, exponents, connections=1, within=60)
            await _read(server)
            silence_s = probe.longest_silence_s
        memory_mib = server.rss_mib(most=True) - rss

        await send_all(server.port, _unstorable(attempt, reference))
        failed = await _read(server)
        lines, seconds = len(server.logged()), plan.pick(2.0, 60.0)
        beside_ms = await _payment_ms(server, "beside", seconds)
        errors = len(server.logged()) - lines

        size = _size(path)
        await send_all(server.port, _large(attempt, reference))
        await asyncio.sleep(0.5)
        disk_mib = (_size(path) - size) / 2**20
        not_taken = [f"HTTP {status}" for status in statuses if status != 200]
        huge = "numbers with huge exponents:"
        unstorable = f"{_UNSTORABLE:,} that no column holds:"
        times = f"times that before them, ({beside_ms:.1f} ms against {before_ms:.1f} ms)"
        logged = f"{unstorable} log lines a minute afterwards"
        slower = f"{unstorable} a payment beside them takes, {times}"
        stored = f"{_LARGE} large ones without proof: the store grows by"
        return [
            at_most(f"{huge} memory grows by", memory_mib, _GROWTH_MIB, "MiB"),
            at_most(f"{huge} longest silence of the API", silence_s, _SILENCE_S, "s"),
            none_of(f"{huge} not answered with 200", not_taken),
            at_most(logged, errors / seconds * 60, _ERRORS_A_MINUTE),
            at_most(slower, beside_ms / before_ms, _RATIO),
            none_of(f"{unstorable} not read, or failed", failed),
            at_most(stored, disk_mib, _DISK_MIB, "MiB"),
            at_most("notifications: tracebacks in the log", server.tracebacks, 0),
        ]


def _with_exponents(attempt: str, reference: str) -> Iterator[bytes]:
    for number in _NUMBERS:
        mtn = f'{{"status": "X", "financialTransactionId": {number}, "amount": {number}}}'
        own = f'{{"state": "NEW", "id": "{reference}", "number": {number}, "amount": {number}}}'
        yield notification("mtn/", mtn.encode())
        yield notification(f"mtn/{attempt}", mtn.encode())
        yield notification(f"signed/{attempt}", own.encode())
        yield notification("signed/", own.encode(), signature_of(own.encode()))


def _unstorable(attempt: str, reference: str) -> Iterator[bytes]:
    """Half of them proven, and half with a header that is not UTF-8."""
    for number in range(_UNSTORABLE):
        text = _UNSTORABLE_TEXTS[number % len(_UNSTORABLE_TEXTS)]
        said = {"state": text, "id": reference, "number": f"{number}{text}", "reason": text}
        said["state"] = "NEW" if number % 3 else text
        body = json.dumps({"status": text, **said}).encode()
        proof = [signature_of(body)] if number % 2 else [b"X-Signature: \xff\xfe"]
        path = f"mtn/{attempt}" if number % 8 == 0 else f"signed/{attempt}"
        yield notification(path, body, *proof)


def _large(attempt: str, reference: str) -> Iterator[bytes]:
    """Without proof; a third of them as large as is taken, half of these about the payment."""
    for number in range(_LARGE):
        body = json.dumps({"state": "PAID", "id": reference, "pad": ""}).encode()
        size = _LARGE_BYTES if number % 3 else _MOST_BYTES
        padded = body.replace(b'"pad": ""', b'"pad": "%b"' % (b"x" * (size - len(body))))
        path = f"signed/{attempt}" if number % 2 else "signed/x"
        yield notification(path, padded)


async def _payment_ms(server: Server, name: str, seconds: float) -> float:
    """The median time of a payment of the sandbox, sent one after another for `seconds`."""
    connection = KeptConnection(server.port)
    spent: list[float] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        request = request_bytes("/make_payment", collection(f"{name}-{len(spent)}"))
        began = time.monotonic()
        await connection.send(request)
        spent.append(time.monotonic() - began)
    connection.close()
    return median(spent) * 1000


async def _read(server: Server) -> list[str]:
    """Wait until all that were stored are read. Returns those that are not, or that failed."""
    ends = time.monotonic() + _READ_WITHIN_S
    while True:
        kept = await server.listed("networks/notifications")
        left = [each for each in kept if each["state"] == "new"]
        if not left or time.monotonic() > ends:
            failed = [each for each in kept if each["state"] == "failed"]
            return [f"{each['state']}: {each['note']}" for each in (*left, *failed)]
        await asyncio.sleep(0.2)


def _size(path: Path) -> int:
    return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))
