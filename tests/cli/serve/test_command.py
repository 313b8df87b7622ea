"""`sandbox-sim serve` and `readyz` as processes: what they print, and how they end."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox_sim.cli.serve.listening import why_not_listening
from sandbox_sim.settings.loading import load
from sandbox_sim.settings.schema import Settings
from tests.cli.fake_servers import answering
from tests.cli.processes import (
    SOON,
    answers,
    command,
    end,
    ended,
    eventually,
    first_line,
    in_background,
    in_process,
    process,
    ready_url,
    running,
)

POSTGRES = "sandbox_sim.stores.postgres.postgres_store"


@pytest.mark.decision("D1", "D2")
def test_serve_prints_its_addresses_and_ends_on_sigterm(tmp_path: Path) -> None:
    """One test checks all that a person sees, because the start of a process is slow."""
    with running("serve", "--port", "0") as server:
        url = ready_url(server)

        assert ended("--endpoint-url", url, "readyz").returncode == 0

        code, out, err = end(server, signal.SIGTERM)
        assert (code, err) == (0, "")
        assert f"  dashboard: {url}/\n" in out
        assert "credentials: sandbox_key:sandbox_secret" in out
        assert f"{url}/_sandbox/inbox/" in out
        assert f"state: {tmp_path}" in out


@pytest.mark.usefixtures("logging_as_before")
class TestSecondStart:
    """`serve` exits with 1, and says which server uses the port or the file, and what to do."""

    @pytest.mark.decision("D1")
    def test_a_second_server_on_the_same_port_or_file_names_the_first(self, tmp_path: Path) -> None:
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

    def test_a_port_that_another_program_uses_is_named(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            result = in_process("serve", "--port", port, "--store", "memory:")

        assert result.exit_code == 1
        assert result.stderr.splitlines()[1:] == [
            f"  another program uses it; choose another port: --port {port % 65535 + 1}"
        ]

    def test_the_default_store_file_depends_on_the_port(self, tmp_path: Path) -> None:
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
def test_json_output_is_one_ready_line_and_warnings_go_to_stderr(
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
def test_a_background_server_ignores_ctrl_c_and_prints_no_configured_secret() -> None:
    own = [
        {"client_key": "shop", "secret_key": "sandbox_secret", "service_ids": [55]},
        {"client_key": "payroll", "secret_key": "sandbox_secret"},
    ]
    arguments = ("--port", "0", "--store", "memory:", "--set", f"credentials={json.dumps(own)}")
    with in_background("serve", *arguments) as server:
        url = ready_url(server)

        server.send_signal(signal.SIGINT)
        assert answers(f"{url}/_sandbox/livez")
        code, out, err = end(server, signal.SIGTERM)

    assert (code, err) == (0, "")
    assert "credentials: shop, payroll (Basic), each with its configured secret_key" in out
    assert "sandbox_secret" not in out


def test_a_server_under_nohup_outlives_its_terminal() -> None:
    arguments = command("serve", "--port", "0", "--store", "memory:")
    with process("nohup", *arguments) as server:
        url = ready_url(server)

        server.send_signal(signal.SIGHUP)
        assert answers(f"{url}/_sandbox/livez")
        assert end(server, signal.SIGTERM)[0] == 0


# The process gets more signals at the end, while it exits.
SIGNALS_AT_THE_END = """
import atexit, signal

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a `nohup` before the tests ignores it
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    atexit.register(signal.raise_signal, number)
"""


@pytest.mark.parametrize(
    ("by", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_signals_during_the_exit_change_nothing(by: signal.Signals, code: int) -> None:
    arguments = ("serve", "--port", "0", "--store", "memory:")
    with running(*arguments, before=SIGNALS_AT_THE_END) as server:
        first_line(server)

        ended_with, _, err = end(server, by)

    assert (ended_with, err) == (code, "")


class TestClosedOutput:
    """A service manager closes stdout, or the program that reads it ends, as `head -1` does."""

    WORDS = ("--port", "0", "--store", "memory:")

    def test_a_server_without_stdout_serves(self, tmp_path: Path) -> None:
        with process(*SHUT, *command("--json", "serve", *self.WORDS)) as server:
            self.serves(server, tmp_path, err="")

    def test_a_server_whose_reader_has_ended_serves_and_names_the_broken_pipe(
        self, tmp_path: Path
    ) -> None:
        left, right = os.pipe()
        os.close(left)
        try:
            with running("serve", *self.WORDS, stdout=right) as server:
                self.serves(server, tmp_path, err="stdout cannot be written to: Broken pipe\n")
        finally:
            os.close(right)

    @staticmethod
    def serves(server: subprocess.Popen[str], state: Path, err: str) -> None:
        """Assert that the server works, and writes only this to stderr."""
        file = state / "sandbox-sim" / "servers" / f"{server.pid}.json"

        def url() -> str:
            assert server.poll() is None, "the server has ended"
            with suppress(FileNotFoundError, json.JSONDecodeError):  # not there yet, or not whole
                return str(json.loads(file.read_text("utf-8"))["url"])
            return ""

        assert answers(f"{eventually(url)}/_sandbox/livez")
        code, _, printed = end(server, signal.SIGTERM)

        assert code == 0
        assert printed.endswith(err)
        assert len(printed.splitlines()) == len(err.splitlines())


# Runs the words after it without stdout.
SHUT = (sys.executable, "-c", "import os, sys; os.close(1); os.execv(sys.argv[1], sys.argv[1:])")


HOST_ADVICE = (
    "host must be a name or an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all"
)


# A user without a home folder, such as one of a container that /etc/passwd does not have.
NO_HOME = """
import platformdirs

def user_state_path(*_, **options):
    raise RuntimeError("could not determine the home directory")

platformdirs.user_state_path = user_state_path
"""


class TestNoHomeFolder:
    def test_a_store_in_memory_needs_none(self) -> None:
        with running(*("serve", "--port", "0", "--store", "memory:"), before=NO_HOME) as server:
            url = ready_url(server)
            assert answers(f"{url}/_sandbox/certify")
            code, _, err = end(server, signal.SIGTERM)

        assert (code, err) == (0, "")

    @pytest.mark.parametrize(
        ("arguments", "before", "after"),
        [
            (
                (),
                "the store cannot be opened",
                "  choose another store: --store sqlite:PATH or --store memory:\n",
            ),
            (("--tls", "--store", "memory:"), "tls", ""),
        ],
    )
    def test_what_needs_one_says_so(
        self, arguments: tuple[str, ...], before: str, after: str
    ) -> None:
        problem = "this user has no home folder: set HOME or XDG_STATE_HOME"
        with running("serve", "--port", "0", *arguments, before=NO_HOME) as server:
            assert server.wait(SOON) == 1
            assert server.stderr is not None
            assert server.stderr.read() == f"{before}: {problem}\n{after}"


@pytest.mark.usefixtures("logging_as_before")
class TestRefusedStart:
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
    def test_a_bad_setting_is_named(self, arguments: tuple[str, ...], words: str) -> None:
        result = in_process("serve", *arguments)

        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(words)

    @pytest.mark.parametrize(
        ("error", "advice"),
        [
            (PermissionError(errno.EACCES, "denied"), "choose a port above 1023: --port 8233"),
            (OSError(errno.EADDRNOTAVAIL, "no such address"), HOST_ADVICE),
            (OSError("could not bind on any address out of 203.0.113.1"), HOST_ADVICE),
            (socket.gaierror(socket.EAI_NONAME, "unknown name"), HOST_ADVICE),
        ],
    )
    def test_a_port_or_host_that_cannot_be_used_has_advice(
        self, error: OSError, advice: str
    ) -> None:
        message = why_not_listening(Settings(host="127.0.0.1", port=80), error)

        assert message == f"cannot listen on 127.0.0.1:80: {error.strerror or error}\n  {advice}"

    def test_a_host_that_is_not_of_this_machine_has_advice(self) -> None:
        result = in_process(
            *("serve", "--host", "203.0.113.1", "--port", "0", "--store", "memory:"),
            *("--set", "control_token=t"),
        )

        assert result.exit_code == 1
        assert result.stderr.endswith(f"\n  {HOST_ADVICE}\n")

    def test_a_store_without_its_package_names_the_command_that_installs_it(
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
        ("words", "output"), [((), "ready\n"), (("--json",), '{"status": "ready"}\n')]
    )
    @pytest.mark.parametrize("variable", ["SANDBOX_SIM_ENDPOINT_URL", "SANDBOX_SIM_URL"])
    def test_a_ready_gateway_exits_with_0(
        self, words: tuple[str, ...], output: str, variable: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A user who sets `SANDBOX_SIM_URL` for the fixture needs no second variable."""
        with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (url, _):
            monkeypatch.setenv(variable, url + "/")
            result = in_process("readyz", *words)

        assert (result.exit_code, result.output) == (0, output)
        assert variable in in_process("--help").output

    @pytest.mark.parametrize(
        "answer",
        [b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n"],
        ids=["busy", "no HTTP"],
    )
    def test_a_busy_gateway_or_another_program_is_not_ready(self, answer: bytes) -> None:
        with answering(answer) as (url, _):
            result = in_process("--endpoint-url", url, "readyz")

        assert result.exit_code == 1
        assert result.stderr.startswith(f"not ready: {url}/_sandbox/readyz: ")


def test_the_version_has_three_numbers() -> None:
    assert re.fullmatch(r"sandbox-sim, version \d+\.\d+\.\d+\n", in_process("--version").output)
