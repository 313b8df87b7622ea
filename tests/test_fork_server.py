"""A forked process does what a new one does."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests import fork_server
from tests.cli.processes import SOON, command

pytestmark = pytest.mark.skipif(not fork_server.IS_SUPPORTED, reason="the fork server needs Linux")


@pytest.mark.parametrize("words", [("--version",), ("serve", "--nonsense"), ("config", "show")])
def test_outputs_and_exit_code_are_those_of_a_new_process(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SANDBOX_SIM_PORT", "1234")
    monkeypatch.chdir(tmp_path)

    forked = fork_server.run(*words, timeout=SOON)
    new = subprocess.run(  # noqa: S603 -- ourselves
        command(*words), capture_output=True, text=True, timeout=SOON, check=False
    )

    assert (forked.returncode, forked.stdout, forked.stderr) == (
        new.returncode,
        new.stdout,
        new.stderr,
    )


def test_code_runs_before_the_module() -> None:
    code = "import sys; print(sys.argv[1:], flush=True)"
    with fork_server.start("--version", before=code) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "['--version']\n"
        assert process.stdout.readline().startswith("sandbox-sim, version ")


def test_a_signal_ends_it_and_is_its_exit_code() -> None:
    server = fork_server.start("serve", "--port", "0", "--store", "memory:")
    assert server.stdout is not None
    assert server.stderr is not None
    with server.stdout, server.stderr:
        assert server.stdout.readline().startswith("sandbox-sim ready")
        assert server.poll() is None

        server.kill()

        assert server.wait(SOON) == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            os.kill(server.pid, 0)


def test_a_command_that_takes_too_long_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        fork_server.run("serve", "--port", "0", "--store", "memory:", timeout=0.01)
