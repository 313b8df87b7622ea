"""A forked process does what a new one does."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import fork_server
from tests.cli.processes import SOON, answers, command

pytestmark = pytest.mark.skipif(not fork_server.IS_SUPPORTED, reason="the fork server needs Linux")


@pytest.mark.parametrize("words", [("--version",), ("serve", "--nonsense"), ("config", "show")])
def test_outputs_and_exit_code_are_those_of_a_new_process(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SANDBOX_SIM_PORT", "1234")
    monkeypatch.chdir(tmp_path)

    forked = fork_server.run("-m", "sandbox_sim", *words, timeout=SOON)
    new = subprocess.run(  # noqa: S603 -- ourselves
        command(*words), capture_output=True, text=True, timeout=SOON, check=False
    )

    assert (forked.returncode, forked.stdout, forked.stderr) == (
        new.returncode,
        new.stdout,
        new.stderr,
    )


def test_the_console_script_is_the_installed_one(tmp_path: Path) -> None:
    def ran(script: Path) -> tuple[int, str, str]:
        done = subprocess.run(  # noqa: S603 -- ourselves
            [script, "serve", "--nonsense"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SOON,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    assert ran(fork_server.console_script()) == ran(Path(sys.executable).with_name("sandbox-sim"))


def test_sigterm_to_the_console_script_ends_the_program() -> None:
    serve = [str(fork_server.console_script()), "serve", "--port", "0", "--store", "memory:"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        assert answers(f"{address}/_sandbox/livez")

        server.terminate()

        assert server.wait(SOON) == 0
    assert not answers(address)


def test_a_script_finds_the_modules_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'beside'")
    script = tmp_path / "script.py"
    script.write_text("import sys, beside; print(sys.argv, __name__, beside.WORD); sys.exit(3)")

    done = fork_server.run(str(script), "-x", timeout=SOON)

    assert (done.returncode, done.stdout) == (3, f"{[str(script), '-x']} __main__ beside\n")


@pytest.mark.parametrize(
    "end",
    [
        *(
            "pass",
            "sys.exit(3)",
            "sys.exit('wrong')",
            "raise ValueError",
            "raise KeyboardInterrupt",
        ),
        "sys.stdout.flush(); sys.stdout = None",
    ],
)
def test_it_ends_as_a_new_process_does(end: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    lines = (
        "import atexit, sys, threading",
        "atexit.register(print, 'exit function')",
        "of_main = threading.main_thread()",
        "threading.Thread(target=lambda: (of_main.join(), print('thread'))).start()",
        "print('begun')",
        end,
    )
    script.write_text("\n".join(lines), "utf-8")

    forked = fork_server.run(str(script), timeout=SOON)
    new = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, script], capture_output=True, text=True, timeout=SOON, check=False
    )

    assert (forked.returncode, forked.stdout) == (new.returncode, new.stdout)
    assert forked.stderr.splitlines()[-1:] == new.stderr.splitlines()[-1:]


def test_code_runs_with_its_arguments() -> None:
    done = fork_server.run("-c", "import sys; print(sys.argv, __name__)", "-x", timeout=SOON)

    assert (done.returncode, done.stdout) == (0, "['-c', '-x'] __main__\n")


def test_a_signal_ends_it_and_is_its_exit_code() -> None:
    server = fork_server.start("-m", "sandbox_sim", "serve", "--port", "0", "--store", "memory:")
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
        fork_server.run(
            "-m", "sandbox_sim", "serve", "--port", "0", "--store", "memory:", timeout=0.01
        )
