"""Changes the files of the SQLite store beside a running server, and then kills it."""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from attack.plan import Plan
from attack.results import Result, at_least, none_of
from attack.servers import Server, serving
from attack.wire import KeptConnection, NoAnswer, request_bytes
from tests.kit.requests import collection
from tests.kit.servers import NotReady

_PAYMENTS: Final = 20
_SETTINGS: Final = ("settle_delay_ms=86400000",)


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _replace(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.replace(path)


def _rename(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def _halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _remove_both(path: Path) -> None:
    path.unlink()
    _log_of(path).unlink()


# What is done to the files. A kill loses what only the log had; the server must notice the change
# and acknowledge nothing more.
TOUCHES: Final[Mapping[str, Callable[[Path], None]]] = {
    "-wal removed": lambda path: _log_of(path).unlink(),
    "-wal truncated": lambda path: os.truncate(_log_of(path), 0),
    "-wal replaced": lambda path: _replace(_log_of(path)),
    "file removed": Path.unlink,
    "-wal cut in half": lambda path: _halve(_log_of(path)),
    "-wal renamed": lambda path: _rename(_log_of(path)),
    "file replaced": _replace,
    "file truncated": lambda path: os.truncate(path, 0),
    "file and -wal removed": _remove_both,
}
_REDUCED: Final = 3


async def attack(plan: Plan) -> list[Result]:
    """Try all changes at once, each on its own server."""
    chosen = list(TOUCHES)[: plan.pick(_REDUCED, len(TOUCHES))]
    tried = await asyncio.gather(*(_try(plan, *each) for each in enumerate(chosen)))
    return [result for each in tried for result in each]


async def _try(plan: Plan, number: int, touch: str) -> list[Result]:
    """Pay, change the files, pay again, kill, start again, and count."""
    directory = plan.directory / f"store-{number}"
    directory.mkdir()
    path, log = directory / "state.sqlite3", plan.directory / f"store-{number}.log"
    async with serving(log, *_SETTINGS, store=f"sqlite:{path}") as server:
        before = await _pay(server, "before")
        TOUCHES[touch](path)
        after = await _pay(server, "after")
        await server.kill()
    try:
        async with serving(log, *_SETTINGS, store=f"sqlite:{path}") as server:
            found = {each["transaction_id"] for each in await server.listed("transactions")}
    except (NotReady, NoAnswer):
        found = set()
    lost = [each for each in after if each not in found]
    return [
        at_least(f"{touch}: payments acknowledged before it", len(before), _PAYMENTS),
        none_of(f"{touch}: payments acknowledged after it and lost by a kill:", lost),
    ]


async def _pay(server: Server, name: str) -> list[str]:
    """The ids of the payments that were acknowledged."""
    connection = KeptConnection(server.port)
    acknowledged = []
    for number in range(_PAYMENTS):
        transaction_id = f"{name}-{number}"
        try:
            request = request_bytes("/make_payment", collection(transaction_id))
            if (await connection.send(request)).status == 202:
                acknowledged.append(transaction_id)
        except NoAnswer:
            continue
    connection.close()
    return acknowledged
