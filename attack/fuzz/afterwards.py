"""The settings of a server that is fuzzed, and what must be true of it afterwards."""

import asyncio
import html
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Final, NamedTuple
from urllib.parse import urljoin

from attack.fuzz.findings import Report
from attack.servers import Server
from attack.wire import NoAnswer, exchange, request_bytes

# Everything falls due at once.
SETTINGS: Final = (
    "balances=live",
    "settle_delay_ms=0",
    "sms_transition_ms=0",
    "card_auto_complete_ms=1",
    # Callbacks stay on this machine, and no name is resolved.
    'callback_hosts={"allow": ["nowhere.invalid"]}',
)
_DASHBOARD: Final = "/_sandbox/"
_MOST_PAGES: Final = 60
_LINK: Final = re.compile(r'href="([^"#]+)"')
_DONE_WITHIN_S: Final = 20.0
# A job that is due for this many seconds is never run, or never done.
_LATE_S: Final = 10.0
_OVERDUE: Final = re.compile(rb"^sandbox_sim_jobs_late_seconds (\S+)", re.MULTILINE)
# A query about a final attempt is repeated if it has no answer; if it raised, the log has a
# traceback.
_FAILED: Final = (
    "SELECT kind, subject, failures FROM jobs WHERE failures > 0 AND kind <> 'ask-network'"
)


class Place(NamedTuple):
    """A store: its name in the report, and the setting `store`."""

    name: str
    store: str


async def look_after(server: Server, place: Place, report: Report) -> None:
    """Note everything that is wrong with the server, and stop it."""
    try:
        ledger = await server.ask("/_sandbox/ledger?audit=true")
        if ledger.status != 200 or ledger.json()["agrees"] is not True:
            report.add(f"the ledger breaks a rule: HTTP {ledger.status}")
        await _open_pages(server, report)
        late_s = await _late_s(server)
        if late_s > _LATE_S:
            report.add(f"a job is not done {late_s:.0f} s after it was due")
    except NoAnswer as error:
        report.add(f"the server does not answer any more: {error}")
    await server.stop()
    for job in await failed_jobs(place):
        report.add(f"a job failed: {job}")
    if server.tracebacks:
        report.add(f"{server.tracebacks} tracebacks in {server.log}")


async def _open_pages(server: Server, report: Report) -> None:
    """Open the dashboard, and what it links to, as a browser does."""
    waiting, known = [_DASHBOARD], {_DASHBOARD}
    while waiting:
        path = waiting.pop(0)
        request = request_bytes(path, None, b"Accept: text/html", method=b"GET")
        answer = await exchange(server.port, request, within=30)
        if answer.status >= 400:
            report.add(f"a page answers HTTP {answer.status}", request)
            continue
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        for target in links(path, answer.body):
            if target not in known and len(known) < _MOST_PAGES:
                known.add(target)
                waiting.append(target)


def links(path: str, page: bytes) -> Iterator[str]:
    """The paths below the dashboard that the page at a path links to."""
    for link in _LINK.findall(page.decode("utf-8", "replace")):
        target = urljoin(path, html.unescape(link))
        if target.startswith(_DASHBOARD):
            yield target


async def _late_s(server: Server) -> float:
    """How long the next job is overdue, after those under way had time to be done."""
    ends = time.monotonic() + _DONE_WITHIN_S
    while True:
        found = _OVERDUE.search((await server.ask("/_sandbox/metrics")).body)
        late_s = float(found[1]) if found else 0.0
        if late_s <= _LATE_S or time.monotonic() > ends:
            return late_s
        await asyncio.sleep(0.5)


async def failed_jobs(place: Place) -> list[str]:
    """The jobs whose work raised, in the store of a server that was stopped."""
    scheme, _, path = place.store.partition(":")
    if scheme == "memory":
        return []
    if scheme == "sqlite":
        with closing(sqlite3.connect(path)) as database:
            return [f"{row}" for row in database.execute(_FAILED)]
    import asyncpg  # noqa: PLC0415 -- an extra

    schema = {"search_path": "sandbox_sim"}
    connection = await asyncpg.connect(place.store, server_settings=schema)
    try:
        return [f"{tuple(row)}" for row in await connection.fetch(_FAILED)]
    finally:
        await connection.close()
