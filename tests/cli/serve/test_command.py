"""`sandbox-sim serve` and `readyz` as processes: what they print, and how they end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox_sim.settings.loading import load
from tests.cli.processes import (
    answering,
    answers,
    command,
    end,
    ended,
    first_line,
    in_background,
    in_process,
    process,
    running,
)

POSTGRES = "sandbox_sim.stores.postgres.postgres_store"


@pytest.mark.decision("D1", "D2")
def test_the_life_of_a_server(tmp_path: Path) -> None:
    """One process tests all that a person sees, because the start of a process is slow."""
    with running("serve", "--port", "0") as server:
        ready = first_line(server)
        found = re.fullmatch(r"sandbox-sim ready at (http://127\.0\.0\.1:\d+)\n", ready)
        assert found is not None, ready
        url = found[1]

        assert ended("--endpoint-url", url, "readyz").returncode == 0

        code, out, err = end(server, signal.SIGTERM)
        assert (code, err) == (0, "")
        assert f"  dashboard: {url}/\n" in out
        assert "credentials: sandbox_key:sandbox_secret" in out
        assert f"{url}/_sandbox/inbox/" in out
        assert f"state: {tmp_path}" in out


@pytest.mark.usefixtures("logging_as_before")
class TestASecondStart:
    """It exits with 1, and says which server uses the port or the file, and what to do."""

    @pytest.mark.decision("D1")
    def test_on_the_same_port_and_on_the_same_file(self, tmp_path: Path) -> None:
        path = tmp_path / "state.sqlite3"
        with running("--json", "serve", "--port", "0", "--store", f"sqlite:{path}") as server:
            ready = json.loads(first_line(server))
            url, port = ready["url"], ready["port"]
            folder = tmp_path / "new"

            same_port = in_process("serve", "--port", port, "--store", f"sqlite:{folder}/x.db")
            same_file = in_process("serve", "--port", "0", "--store", f"sqlite:{path}")

            assert not folder.exists()  # no folder is made before the port is open
            assert (same_port.exit_code, same_port.stdout) == (1, "")
            problem, which, do = same_port.stderr.splitlines()
            assert problem.startswith(f"cannot listen on 127.0.0.1:{port}: ")
            assert "address already in use" in problem.lower()
            since = r"2\d{3}-\d\d-\d\dT[0-9:.]+Z"
            server_words = f"  sandbox-sim with pid {server.pid} serves {re.escape(url)}"
            assert re.fullmatch(f"{server_words} since {since}", which)
            assert do == (
                f"  use that server, stop it with `kill {server.pid}`, "
                f"or choose another port: --port {port % 65535 + 1}"
            )
            assert (same_file.exit_code, same_file.stdout) == (1, "")
            problem, which, do = same_file.stderr.splitlines()
            assert problem == f"the store cannot be opened: {path}: another server is using it"
            assert re.fullmatch(f"{server_words} since {since}", which)
            assert do == (
                f"  use that server, stop it with `kill {server.pid}`, "
                "or choose another store: --store sqlite:PATH or --store memory:"
            )
            end(server, signal.SIGTERM)

        assert list(tmp_path.glob("sandbox-sim/servers/*")) == []

    def test_where_another_program_listens(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            result = in_process("serve", "--port", port, "--store", "memory:")

        assert result.exit_code == 1
        assert result.stderr.splitlines()[1:] == [
            f"  another program uses it; choose another port: --port {port % 65535 + 1}"
        ]

    def test_of_another_port_has_a_default_file_of_its_own(self, tmp_path: Path) -> None:
        files = {
            port: load(None, {"port": port}).settings.sqlite_path.relative_to(tmp_path)
            for port in ("8233", "9000", "0")
        }

        assert {port: str(file) for port, file in files.items()} == {
            "8233": "sandbox-sim/sandbox-sim.sqlite3",
            "9000": "sandbox-sim/sandbox-sim-9000.sqlite3",
            "0": "sandbox-sim/sandbox-sim-0.sqlite3",
        }


@pytest.mark.spec("auth.5")
@pytest.mark.decision("D2")
def test_machines_get_a_line_of_json_and_other_hosts_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SANDBOX_SIM_SETTLE_DELAY", "5")
    arguments = ("--host", "0.0.0.0", "--port", "0", "--set", "control_token=s3same")
    with running("--json", "serve", *arguments) as server:
        ready = json.loads(first_line(server))
        port = ready["port"]
        assert ready == {"url": f"http://127.0.0.1:{port}", "port": port, "pid": server.pid}
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_sandbox/livez") as answer:
            assert answer.status == 200

        code, out, err = end(server, signal.SIGINT)
        assert (code, out) == (130, "")
        assert "warning: 0.0.0.0 is not loopback and this is plain HTTP" in err
        assert "use --tls, or --cert and --key" in err
        assert "warning: SANDBOX_SIM_SETTLE_DELAY (from environment): there is no such" in err
        assert "did you mean SANDBOX_SIM_SETTLE_DELAY_MS?" in err
        assert "s3same" not in err
        assert "Traceback" not in err


@pytest.mark.decision("D1", "D2")
def test_in_the_background_it_ignores_ctrl_c_and_tells_no_secret_of_the_configured_sets() -> None:
    own = [
        {"client_key": "shop", "secret_key": "sandbox_secret", "service_ids": [55]},
        {"client_key": "payroll", "secret_key": "sandbox_secret"},
    ]
    arguments = ("--port", "0", "--store", "memory:", "--set", f"credentials={json.dumps(own)}")
    with in_background("serve", *arguments) as server:
        url = first_line(server).split()[-1]

        server.send_signal(signal.SIGINT)
        assert answers(f"{url}/_sandbox/livez")
        code, out, err = end(server, signal.SIGTERM)

    assert (code, err) == (0, "")
    assert "credentials: shop, payroll (Basic), each with its configured secret_key" in out
    assert "sandbox_secret" not in out


def test_under_nohup_it_outlives_its_terminal() -> None:
    arguments = command("serve", "--port", "0", "--store", "memory:")
    with process("nohup", *arguments) as server:
        url = first_line(server).split()[-1]

        server.send_signal(signal.SIGHUP)
        assert answers(f"{url}/_sandbox/livez")
        assert end(server, signal.SIGTERM)[0] == 0


# The process gets more signals at the end, while it exits.
SIGNALS_AT_THE_END = """
import atexit, signal

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, before the tests, has it ignored
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    atexit.register(signal.raise_signal, number)
"""


@pytest.mark.parametrize(
    ("by", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_more_signals_change_nothing(by: signal.Signals, code: int) -> None:
    arguments = ("serve", "--port", "0", "--store", "memory:")
    with running(*arguments, before=SIGNALS_AT_THE_END) as server:
        first_line(server)

        ended_with, _, err = end(server, by)

    assert (ended_with, err) == (code, "")


class TestNobodyReadsItsOutput:
    """Its output is closed, as by a service manager, or the reader ended, as `head -1` does."""

    WORDS = ("--port", "0", "--store", "memory:")

    @pytest.fixture
    def servers(self, tmp_path: Path) -> Path:
        """The folder with a file for each running server."""
        return tmp_path / "sandbox-sim" / "servers"

    def test_it_has_no_stdout(self, servers: Path) -> None:
        with process(*SHUT, *command("--json", "serve", *self.WORDS)) as server:
            self.serves(server, servers, err="")

    def test_its_reader_is_gone(self, servers: Path) -> None:
        left, right = os.pipe()
        os.close(left)
        try:
            with running("serve", *self.WORDS, stdout=right) as server:
                self.serves(server, servers, err="stdout cannot be written to: Broken pipe\n")
        finally:
            os.close(right)

    @staticmethod
    def serves(server: subprocess.Popen[str], servers: Path, err: str) -> None:
        """Assert that the server works, and writes no more than this to stderr."""
        file = servers / f"{server.pid}.json"
        url = ""
        while not url:
            assert server.poll() is None, "it ended"
            with suppress(FileNotFoundError, json.JSONDecodeError):  # not there yet, or not whole
                url = json.loads(file.read_text("utf-8"))["url"]
            time.sleep(0.02)
        assert answers(f"{url}/_sandbox/livez")
        code, _, told = end(server, signal.SIGTERM)

        assert code == 0
        assert told.endswith(err)
        assert len(told.splitlines()) == len(err.splitlines())


# Runs the words after it without stdout.
SHUT = (sys.executable, "-c", "import os, sys; os.close(1); os.execv(sys.argv[1], sys.argv[1:])")


@pytest.mark.usefixtures("logging_as_before")
class TestItDoesNotStart:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("--port", "99999"), "port (from flag): must be less than or equal to 65535"),
            (("--config", "/nowhere.toml"), "/nowhere.toml: cannot be read: "),
            (
                ("--cert", "nowhere.pem", "--key", "nowhere.pem"),
                "cert (from flag): nowhere.pem cannot be read: No such file or directory\n",
            ),
            (
                ("--host", ""),
                "control_token (from default): must be set because host '' (all addresses of",
            ),
        ],
    )
    def test_with_a_bad_setting_and_names_it(self, arguments: tuple[str, ...], words: str) -> None:
        result = in_process("serve", *arguments)

        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(words)

    def test_without_the_package_that_its_store_needs_and_says_how_to_get_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in [name for name in sys.modules if name.startswith(POSTGRES)]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "asyncpg", None)

        result = in_process("serve", "--port", "0", "--store", "postgresql://me:s3same@db/gateway")

        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == (
            "the store cannot be opened: postgresql://me:***@db/gateway: "
            "a Postgres store needs asyncpg: pip install asyncpg\n"
        )


class TestReadyz:
    """Scripts and containers read the exit code, and people read the reason."""

    @pytest.mark.parametrize(
        ("words", "told"), [((), "ready\n"), (("--json",), '{"status": "ready"}\n')]
    )
    @pytest.mark.parametrize("variable", ["SANDBOX_SIM_ENDPOINT_URL", "SANDBOX_SIM_URL"])
    def test_a_gateway_that_is_ready(
        self, words: tuple[str, ...], told: str, variable: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Those who set `SANDBOX_SIM_URL` for the fixture need no second variable."""
        with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (url, _):
            monkeypatch.setenv(variable, url + "/")
            result = in_process("readyz", *words)

        assert (result.exit_code, result.output) == (0, told)
        assert variable in in_process("--help").output

    @pytest.mark.parametrize(
        "answer",
        [b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n"],
        ids=["busy", "no HTTP"],
    )
    def test_whoever_listens_is_not_ready(self, answer: bytes) -> None:
        with answering(answer) as (url, _):
            result = in_process("--endpoint-url", url, "readyz")

        assert result.exit_code == 1
        assert result.stderr.startswith(f"not ready: {url}/_sandbox/readyz: ")


def test_the_version() -> None:
    assert re.fullmatch(r"sandbox-sim, version \d+\.\d+\.\d+\n", in_process("--version").output)
