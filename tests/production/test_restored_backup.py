"""A gateway that starts on a copy of its file queries before it sends, and pays nothing twice."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web

from chaos.production.fake_momo import SETTINGS, MomoServer, serving
from tests.cli.asking import on, printed
from tests.conftest import Sandbox, StartSandbox
from tests.kit.http_servers import listening
from tests.production.client import live, settled
from tests.web.control_api import assert_error, get, post

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def merchant() -> AsyncIterator["Merchant"]:
    received: list[str] = []

    async def take(request: web.Request) -> web.Response:
        received.append((await request.json())["trans_ref"])
        return web.Response()

    async with listening(web.post("/callback", take)) as url:
        yield Merchant(f"{url}/callback", received)


class Merchant(NamedTuple):
    """A receiver of callbacks that outlives the gateway, and the payments they were about."""

    url: str
    received: list[str]


@pytest.fixture
async def momo() -> AsyncIterator[MomoServer]:
    async with serving() as momo:
        yield momo


async def started(start: StartSandbox, momo: MomoServer, file: Path) -> Sandbox:
    network = {"adapter": "mtn_momo", "base_url": momo.url, "callback": False, **SETTINGS}
    return await live(start, {"mtn": network}, store=f"sqlite:{file}")


async def pay_without_an_answer(sandbox: Sandbox, momo: MomoServer, **fields: str) -> None:
    """MTN takes the payment, and its answer is lost."""
    momo.hold("requesttopay")
    answer = asyncio.create_task(sandbox.collect(**fields))
    await momo.until(lambda: bool(momo.fake.payments))
    momo.drop()
    assert (await answer).code == "202"


async def backed_up(sandbox: Sandbox) -> Path:
    answer = await post(sandbox, "backup")
    assert answer.status == 201
    return Path(answer.body["path"])


def files(folder: Path, pattern: str) -> list[Path]:
    return [*folder.glob(pattern)]


def methods(momo: MomoServer, since: int) -> list[str]:
    """The methods of the requests about payments that MTN got since this many."""
    return [each.method for each in momo.fake.came("requesttopay")[since:]]


async def test_a_restored_copy_queries_first_and_pays_nothing_twice(
    start_sandbox: StartSandbox,
    momo: MomoServer,
    merchant: Merchant,
    in_memory: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lost = await started(start_sandbox, momo, in_memory / "state.sqlite3")
    to = {"callback_url": merchant.url}
    await pay_without_an_answer(lost, momo, transaction_id="TAKEN", **to)
    momo.lose("requesttopay")
    assert (await lost.collect(transaction_id="NEVER-CAME", **to)).code == "202"
    copy = await backed_up(lost)
    await lost.collect(transaction_id="LATER")  # the copy does not have it
    await lost.stop()
    for file in files(in_memory, "state.sqlite3*"):
        file.unlink()
    taken, later = momo.fake.payments
    for reference in (taken, later):  # MTN decides while no gateway runs
        momo.fake.decide(reference, "SUCCESSFUL")
    before = len(momo.fake.came("requesttopay"))

    assert "restored backup" not in caplog.text
    restored = await started(start_sandbox, momo, copy)
    assert "the store is a restored backup: 0 queued SMS are asked about first" in caplog.text
    await settled(restored, seconds=6)

    assert methods(momo, before) == ["GET", "GET"]
    assert (await restored.status("TAKEN")).data["status"] == "000"
    assert merchant.received == ["TAKEN"]
    await settled(restored, seconds=30)
    # MTN answered twice that it does not know NEVER-CAME, so the same request went out again.
    assert methods(momo, before).count("POST") == 1
    assert [*momo.fake.payments][:2] == [taken, later]
    assert len(momo.fake.payments) == 3
    again = [*momo.fake.payments][2]
    momo.fake.decide(again, "SUCCESSFUL")
    await post(restored, "transactions/NEVER-CAME/ask")
    assert (await restored.status("NEVER-CAME")).data["status"] == "000"
    assert "every balance" in "".join(await printed(restored, "ledger", "audit"))

    assert (await restored.status("LATER")).code == "404"
    statement = in_memory / "statement.csv"
    lines = "".join(f"{reference},10.50\n" for reference in momo.fake.payments)
    statement.write_text(f"reference,amount\n{lines}")
    found = await on(restored, "reconcile", "mtn", statement)
    assert found.exit_code == 1
    assert later in found.stdout
    assert taken not in found.stdout


@pytest.fixture
async def on_file(start_sandbox: StartSandbox, in_memory: Path) -> Sandbox:
    return await start_sandbox(store=f"sqlite:{in_memory / 'state.sqlite3'}")


async def test_a_copy_is_whole_and_the_server_goes_on(on_file: Sandbox, in_memory: Path) -> None:
    paying = [on_file.collect(transaction_id=f"T{number}") for number in range(20)]
    paid, copy = await asyncio.gather(asyncio.gather(*paying), backed_up(on_file))

    with closing(sqlite3.connect(copy)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert [each.code for each in paid] == ["202"] * 20
    assert len((await get(on_file, "transactions?limit=100"))["transactions"]) == 20
    assert copy.parent == in_memory
    assert files(in_memory, "*.partial") == []


async def test_a_running_server_locks_its_file_against_copies_by_other_programs(
    start_sandbox: StartSandbox, in_memory: Path
) -> None:
    file = in_memory / "state.sqlite3"
    sandbox = await start_sandbox(store=f"sqlite:{file}")
    await sandbox.collect()
    copying = "VACUUM INTO ?", (str(in_memory / "copy.sqlite3"),)

    with closing(sqlite3.connect(file, timeout=0)) as other:
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            other.execute(*copying)
        await sandbox.stop()
        other.execute(*copying)

    restored = await start_sandbox(store=f"sqlite:{in_memory / 'copy.sqlite3'}")
    assert (await restored.status()).code == "000"


async def test_the_command_prints_where_the_copy_is(on_file: Sandbox, in_memory: Path) -> None:
    (line,) = await printed(on_file, "backup")

    (copy,) = files(in_memory, "*.backup.sqlite3")
    assert line == f"{copy} has {copy.stat().st_size} bytes"


async def test_a_backup_of_a_store_without_a_file_is_refused_with_advice(sandbox: Sandbox) -> None:
    refused = await post(sandbox, "backup")

    assert_error(refused, 409, "only a SQLite store can be copied", "pg_dump")


async def test_a_copy_that_cannot_be_written_is_503_and_the_server_goes_on(
    on_file: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_now = on_file.gateway.clock.machine_now()
    monkeypatch.setattr(on_file.gateway.clock, "machine_now", lambda: machine_now)
    copy = await backed_up(on_file)  # the next name is the same
    (copy.parent / f"{copy.name}.partial").mkdir()

    refused = await post(on_file, "backup")

    assert refused.status == 503
    assert (await on_file.collect()).code == "202"
