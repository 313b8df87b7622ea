"""docs/backup.md: its commands, on files and databases of the test."""

import asyncio
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests import postgres
from tests.conftest import StartSandbox
from tests.docs.commands import sandbox_sim
from tests.docs.pages import Page
from tests.production.client import live
from tests.production.settings import STAGING

PAGE = Page("docs/backup.md")


async def ran(words: Sequence[str], folder: Path) -> None:
    """Run a command of another program on the files of the test."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]} on this machine")
    typed = [each.replace("/var/lib/sandbox", str(folder / "own")) for each in words]
    typed = [each.replace("/backup", str(folder / "backup")) for each in typed]
    if words[0] == "mv":  # the shell reads the star
        *matching, to = sorted((folder / "own").glob("state.sqlite3*")), typed[-1]
        typed = ["mv", *map(str, matching[0]), to]
    done = await asyncio.to_thread(
        subprocess.run, typed, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


async def test_the_page_leads_from_a_running_gateway_to_one_on_a_copy(
    start_sandbox: StartSandbox, in_memory: Path
) -> None:
    for name in ("own", "backup"):
        (in_memory / name).mkdir()
    file = in_memory / "own" / "state.sqlite3"
    sandbox = await start_sandbox(store=f"sqlite:{file}")
    await sandbox.collect()
    backup, *others = PAGE.commands("SQLite")

    printed = await sandbox_sim(sandbox, backup.words[1:])
    await sandbox.stop()
    for command in others[:-1]:
        await ran(command.words, in_memory)

    assert backup.output is not None
    assert _shape_of_copy(printed) == _shape_of_copy(backup.output)
    assert others[-1].words[-1] == "sqlite:/var/lib/sandbox/state.sqlite3"
    restored = await start_sandbox(store=f"sqlite:{file}")
    assert (await restored.status()).data["status"] == "002"
    with closing(sqlite3.connect(in_memory / "backup" / "again.sqlite3")) as again:
        assert again.execute("SELECT transaction_id FROM transactions").fetchall() == [("T1",)]


def _shape_of_copy(line: str) -> str:
    """What `backup` prints, without the folder, the time and the size."""
    return re.sub(r"[0-9]+T[0-9.]+Z|[0-9]+(?= bytes)", "*", line.rpartition("/")[2]).strip()


async def test_a_dump_of_postgres_is_restored(start_sandbox: StartSandbox, tmp_path: Path) -> None:
    postgres_url, binaries = postgres.empty_database(), postgres.tools()
    sandbox = await start_sandbox(store=postgres_url)
    await sandbox.collect()
    (dump,) = (each.words for each in PAGE.commands("Postgres") if each.program == "pg_dump")
    (restore,) = (each.words for each in PAGE.commands("Postgres") if each.program == "pg_restore")

    assert not await sandbox.gateway.store.run(lambda unit: unit.restored())
    await _typed(binaries, dump, postgres_url, tmp_path)
    await sandbox.sms()  # the dump does not have it
    await sandbox.stop()
    await _typed(binaries, restore, postgres_url, tmp_path)

    restored = await start_sandbox(store=postgres_url)
    assert await restored.gateway.store.run(lambda unit: unit.restored())
    assert (await restored.status()).data["status"] == "002"
    assert await restored.sms_balance() == 500


async def test_the_commands_of_the_page_after_a_restore_work(
    start_sandbox: StartSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "statement.csv").write_text("reference,amount\n")
    restored = await live(start_sandbox, {"mtn": STAGING["staging"]})
    commands = PAGE.commands("After a restore")
    assert [each.words[1] for each in commands] == ["transactions", "reconcile", "ledger"]

    for command in commands:
        await sandbox_sim(restored, command.words[1:])


async def _typed(binaries: Path, words: Sequence[str], url: str, folder: Path) -> None:
    """Run a tool of Postgres as the page has it, on the database of the test."""
    typed = [
        each.replace("postgresql://gateway@db.internal/gateway", url).replace(
            "/backup", str(folder)
        )
        for each in words
    ]
    done = await asyncio.to_thread(
        subprocess.run, [str(binaries / typed[0]), *typed[1:]],
        capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
