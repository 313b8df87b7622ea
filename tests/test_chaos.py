"""The crash test in its short form: the real server on SQLite, killed twice under load."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOON = 90  # seconds; a bound, reached only when something is broken


def chaos(*arguments: str, within_s: float) -> tuple[int, str]:
    """The exit code of a run and what it printed."""
    command = [sys.executable, "-m", "chaos", "--rounds", "2", "--seed", "2026", *arguments]
    with subprocess.Popen(  # noqa: S603 -- ourselves
        command,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as run:
        try:
            said, _ = run.communicate(timeout=within_s)
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)  # its servers too
    return run.returncode, said


@pytest.mark.timeout(120)
def test_nothing_is_lost_when_the_server_is_killed_under_load() -> None:
    code, said = chaos(within_s=SOON)

    assert code == 0, said
    assert "FAIL" not in said
    closing = said.splitlines()[-1]
    found = re.match(r"2 rounds, (\d+) kills, .* ([\d,]+) of them payments and sends ack", closing)
    assert found is not None, said
    kills, acknowledged = (int(number.replace(",", "")) for number in found.groups())
    assert kills >= 3, said  # one in each round, and one without load
    assert acknowledged > 20, said  # there was a load, even on a slow machine


@pytest.mark.timeout(240)
@pytest.mark.decision("D39")
def test_in_production_every_payment_ends_as_the_network_says() -> None:
    """One kill under load, and one between submit and record."""
    code, said = chaos("--production", "--clients", "4", within_s=2 * SOON)

    assert code == 0, said
    assert "FAIL" not in said
    assert "killed between submit and record\n" in said
    found = re.search(r"([\d,]+) of them charged;", said)
    assert found is not None, said
    assert int(found[1].replace(",", "")) > 4, said  # more than the deposits before the load


@pytest.mark.timeout(240)
@pytest.mark.decision("D39")
def test_over_mtn_momo_every_payment_ends_as_mtn_says() -> None:
    """One kill between submit and record, and a token that ends while payments are on their way."""
    arguments = ("--production", "--network", "mtn_momo", "--clients", "4")
    code, said = chaos(*arguments, within_s=2 * SOON)

    assert code == 0, said
    assert "FAIL" not in said
    assert "killed between submit and record\n" in said
    assert "; 1 killed between submit and record;" in said
    waiting = re.search(r"a token ended while (\d+) payments were on their way", said)
    assert waiting is not None, said
    assert int(waiting[1]) > 10, said  # not all fifty on a slow machine
    for way in ("twice", "before the answer", "forged"):
        assert re.search(rf"\d+ {way}", said), said
    found = re.search(r"([\d,]+) of them charged;", said)
    assert found is not None, said
    assert int(found[1].replace(",", "")) > 50, said
