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


@pytest.mark.timeout(120)
def test_nothing_is_lost_when_the_server_is_killed_under_load() -> None:
    command = [sys.executable, "-m", "chaos", "--rounds", "2", "--seed", "2026"]
    with subprocess.Popen(  # noqa: S603 -- ourselves
        command,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as run:
        try:
            said, _ = run.communicate(timeout=SOON)
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)  # its servers too

    assert run.returncode == 0, said
    assert "FAIL" not in said
    closing = said.splitlines()[-1]
    found = re.match(r"2 rounds, (\d+) kills, .* ([\d,]+) of them payments and sends ack", closing)
    assert found is not None, said
    kills, acknowledged = (int(number.replace(",", "")) for number in found.groups())
    assert kills >= 3, said  # one in each round, and one without load
    assert acknowledged > 20, said  # there was a load, even on a slow machine
