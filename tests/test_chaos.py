"""The crash test in its shortest form: one round each. .ci/run has the long runs."""

import os
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from chaos import __main__ as command
from chaos.production import momo, operators
from chaos.production.crashes import ProductionCrashes
from tests import fork_server
from tests.chaos import forked_servers
from tests.kit import servers

pytestmark = pytest.mark.timeout(120)

Chaos = Callable[..., tuple[int, str]]


@pytest.fixture
def chaos(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Chaos:
    """Runs one round with these arguments; returns the exit code and what it printed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in os.environ:
        if name.startswith("SANDBOX_SIM_"):
            monkeypatch.delenv(name)
    if fork_server.IS_SUPPORTED:
        monkeypatch.setattr(servers, "program", forked_servers.program)

    def run(*arguments: str) -> tuple[int, str]:
        words = ["chaos", "--rounds", "1", "--seed", "2026", *arguments]
        monkeypatch.setattr(sys, "argv", words)
        return command.main(), capsys.readouterr().out

    return run


def lose(folder: Path) -> None:
    """Delete the first payment of a run, and the manual entry of its last top-up."""
    (store,) = folder.glob("*/chaos.sqlite3")
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("DELETE FROM transactions WHERE mode = 'P' AND transaction_id LIKE '%-n1'")
        database.execute(
            "DELETE FROM manual_entries WHERE transfer = "
            "(SELECT max(number) FROM transfers WHERE reason = 'topup')"
        )


def test_a_server_that_is_killed_under_load_loses_nothing(chaos: Chaos) -> None:
    code, output = chaos("--clients", "4")

    assert code == 0, output
    assert "FAIL" not in output
    last = output.splitlines()[-1]
    found = re.match(r"1 rounds, (\d+) kills, .* ([\d,]+) of them payments and sends ack", last)
    assert found is not None, output
    kills, acknowledged = (int(number.replace(",", "")) for number in found.groups())
    assert kills >= 2, output  # one in the round, and one without load
    assert acknowledged > 10, output  # there was a load, even on a slow machine


@pytest.mark.decision("D39")
def test_a_lost_payment_and_a_lost_act_of_an_operator_are_found(
    chaos: Chaos, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The other claims hold: one kill is between submit and record, and MTN has the outcome."""
    monkeypatch.setattr(momo.Momo, "timeout_s", 1.0)
    # A payment that was saved and never sent waits for a person after this time.
    monkeypatch.setattr(momo, "GIVES_UP_AFTER_S", 5.0)
    monkeypatch.setattr(operators, "_HANGS_UP", 0.0)  # so that every top-up has an answer
    kill_all = ProductionCrashes.kill_all

    async def kill_and_lose(crashes: ProductionCrashes) -> None:
        (server,) = crashes._servers
        await server.kill()  # it holds a lock on its file
        lose(tmp_path)
        await kill_all(crashes)

    monkeypatch.setattr(ProductionCrashes, "kill_all", kill_and_lose)

    code, output = chaos("--production", "--network", "mtn_momo", "--clients", "4")

    assert code == 1, output
    assert "; 1 killed between submit and record;" in output
    ended, there, called_back, act, unsigned = re.findall(r"^FAIL .*\n +(.*)", output, re.MULTILINE)
    assert "-n1 of service" in ended, output
    assert ended.endswith("is not found, and the network has charged it"), output
    assert "accepted deposit" in there, output
    assert called_back.endswith("-n1, which is not there"), output
    assert act.startswith("topup "), output
    assert act.endswith("is there 0 times"), output
    assert unsigned.endswith("is of no act"), output
    # There are no other violations. A callback that was refused at first is in the output twice.
    found = {ended, there, called_back, act, unsigned}
    assert set(re.findall(r"^ {8}(.*)", output, re.MULTILINE)) == found, output
