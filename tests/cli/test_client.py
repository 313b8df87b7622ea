"""How the commands reach a gateway, and what they print if they cannot."""

import asyncio
import signal
import socket
import subprocess
from contextlib import suppress

import pytest
from click.testing import CliRunner

from sandbox_sim.cli import main
from sandbox_sim.cli.client import RunningGateway, Unreachable
from sandbox_sim.testing.network_contract.http_peer import closed_address
from tests.cli.asking import as_json, on, printed
from tests.cli.fake_servers import answering
from tests.cli.processes import end, in_process, running
from tests.conftest import Sandbox, StartSandbox

ASKING = [
    ("requests", "list"),
    ("transactions", "show", "55", "T1"),
    ("callbacks", "resend", "--failed"),
    ("sms", "wait", "--timeout", "0"),
    ("ledger", "topup", "55", "1"),
    ("inbox", "clear", "orders"),
]


@pytest.fixture
def nowhere() -> str:
    return closed_address()


class TestUnreachableGateway:
    @pytest.mark.parametrize("words", [*ASKING, ("trigger", "sms")], ids=" ".join)
    def test_the_error_names_the_address_and_how_to_start_a_gateway(
        self, nowhere: str, words: tuple[str, ...]
    ) -> None:
        result = in_process("--endpoint-url", nowhere + "/", *words)

        assert result.exit_code == 1
        assert result.stderr == (
            f"{nowhere} cannot be reached (Connection refused): start a gateway with "
            "`sandbox-sim serve`, or give its address with --endpoint-url\n"
        )

    def test_a_request_without_an_answer_times_out(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            gateway = RunningGateway(f"http://127.0.0.1:{silent.getsockname()[1]}")
            with pytest.raises(Unreachable, match=r"no answer within 0\.01 s"):
                gateway.send("GET", "/", {}, timeout_s=0.01)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
            "answers HTTP 404 with a body",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
            "answers HTTP 200 with a body that is not JSON",
        ),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n{}", "answers HTTP 500"),
        (b'HTTP/1.1 500 Oh\r\nContent-Length: 13\r\n\r\n{"error": "x"}', "answers HTTP 500"),
        (
            b'HTTP/1.1 401 No\r\nContent-Length: 23\r\n\r\n{"response_code":"100"}',
            "to a request to the control API: give the gateway's own address with --endpoint-url\n",
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "cannot be reached (SSH-2.0-OpenSSH_9.6"),
        (b"", "cannot be reached (Remote end closed connection without response)"),
    ],
)
def test_an_answer_that_is_not_from_a_gateway_is_named(answer: bytes, says: str) -> None:
    with answering(answer) as (url, _):
        result = in_process("--endpoint-url", url, "requests", "list")

    assert (result.exit_code, result.stdout) == (1, "")
    assert url in result.stderr
    assert says in result.stderr


def test_an_https_address_of_plain_http_is_corrected() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as (url, _):
        secure = url.replace("http", "https")
        result = in_process("--endpoint-url", secure, "requests", "list")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"{secure} serves plain HTTP only: use --endpoint-url {url}\n"


def test_trigger_names_an_answer_without_a_response_code() -> None:
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (url, _):
        sent = in_process("--endpoint-url", url, "trigger", "sms")

    assert (sent.exit_code, sent.stderr) == (1, f"{url} answers HTTP 200: it is not a gateway\n")


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8233", "ftp://127.0.0.1", "http://", "http://a:port", ""),
        *("http://127.0.0.1:1 /", "http://a b:1", "http://127.0.0.1:1/a b"),
    ],
)
def test_an_address_that_is_not_http_is_wrong_usage(url: str) -> None:
    result = in_process("--endpoint-url", url, "sms", "list")

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"--endpoint-url {url!r} is not an http:// or https:// address")


def test_listen_names_its_own_option(nowhere: str) -> None:
    forwarded = ("--forward-to", "http://127.0.0.1:1")
    wrong = in_process("listen", "--from", "shop", *forwarded)
    unreachable = in_process("listen", "--from", nowhere, *forwarded)

    assert wrong.stderr == "--from 'shop' is not an http:// or https:// address\n"
    assert unreachable.stderr.endswith("or give its address with --from\n")


class TestControlToken:
    @pytest.fixture
    async def guarded(self, start_sandbox: StartSandbox) -> Sandbox:
        return await start_sandbox(control_token="s3same")

    async def test_an_error_says_how_to_give_the_token(self, guarded: Sandbox) -> None:
        for words in ASKING:
            result = await on(guarded, *words)

            assert (result.exit_code, result.stdout) == (1, "")
            assert result.stderr == (
                "Send the header Authorization: Bearer <token>: "
                "give it with --token or SANDBOX_SIM_TOKEN\n"
            )

    async def test_an_option_or_a_variable_gives_the_token_and_no_output_has_it(
        self, guarded: Sandbox
    ) -> None:
        assert await printed(guarded, "--token", "s3same", "sms", "list") == ["no messages"]
        assert (await on(guarded, "sms", "list", SANDBOX_SIM_TOKEN="s3same")).exit_code == 0
        wrong = await on(guarded, "--token", "0pen", "sms", "list")
        assert wrong.exit_code == 1
        assert "0pen" not in wrong.output

    def test_a_token_that_a_header_cannot_carry_is_wrong_usage(self) -> None:
        result = in_process("--token", "s3same\n", "sms", "list")

        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == "--token has characters that an HTTP header cannot carry\n"

    def test_requests_to_the_simulated_interface_do_not_have_the_token(self) -> None:
        answer = b'HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n{"response_code":"400"}'
        with answering(answer) as (url, received):
            RunningGateway(url, "s3same").call("/sms/send", {}, ("key", "secret"))

        assert b"s3same" not in received[0]
        assert b"Authorization: Basic a2V5OnNlY3JldA==\r\n" in received[0]


async def test_arguments_that_are_not_utf_8_are_refused_or_match_nothing(sandbox: Sandbox) -> None:
    rows = [
        (("trigger", "sms", "--no-wait", "--set", "msg_body=Akwaaba \udcff"), {2}),
        (("sms", "find", "--status", "SE\udcff"), {2}),
        (("callbacks", "show", "\udcff"), {0, 1}),
        (("sms", "list", "--where", "status=\udcff"), {0, 1}),
        (("trigger", "sms", "--client-key", "\udcff"), {0, 1}),
    ]
    for words, codes in rows:
        result = await on(sandbox, *words)

        assert result.exit_code in codes
        assert isinstance(result.exception, SystemExit | None)
        refused = result.stderr.endswith("\\udcff is not valid UTF-8: use a terminal with UTF-8\n")
        assert refused is (codes == {2})


@pytest.mark.parametrize(
    ("charset", "shown"), [("utf-8", "sɛn 🎉"), ("cp1252", r"s\u025bn \U0001f389")]
)
async def test_characters_that_the_terminal_cannot_show_are_escaped(
    sandbox: Sandbox, charset: str, shown: str
) -> None:
    await sandbox.sms(msg_body="sɛn 🎉")
    words = ["--endpoint-url", sandbox.url, "sms", "list"]

    result = await asyncio.to_thread(CliRunner(charset=charset).invoke, main, words)

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[1].endswith(shown)


async def test_a_base_path_is_part_of_the_address(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(base_path="/gateway/v1", settle_delay_ms=0)
    sandbox.url += "/gateway/v1"

    assert await printed(sandbox, "sms", "list") == ["no messages"]
    document = await as_json(sandbox, "trigger", "collect")
    assert document["callback"]["state"] == "delivered"


def test_ctrl_c_ends_a_waiting_command_with_130() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with running("--endpoint-url", url, "sms", "wait", "--timeout", 60) as waiting:
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(65536)
                # Python loses a signal that comes between its last look and the call that waits
                # for the answer; a user would press Ctrl-C again.
                for _ in range(30):
                    waiting.send_signal(signal.SIGINT)
                    with suppress(subprocess.TimeoutExpired):
                        waiting.wait(1)
                        break
                assert end(waiting, signal.SIGINT) == (130, "", "")


def test_help_lists_every_command() -> None:
    lines = [line for line in in_process("--help").stdout.splitlines() if line.strip()]
    words = [line.split()[0] for line in lines]

    names = (
        "backup callbacks certify clock compare config demo doctor explain faults inbox ledger "
        "listen networks openapi overrides readyz reconcile requests reset seed serve sms snapshot "
        "transactions trigger"
    )
    assert words[words.index("Commands:") + 1 :] == names.split()
    assert [line for line in lines[1:] if line.endswith("...")] == []


@pytest.mark.parametrize(
    "words",
    [
        ("--endpoint-url", "{nowhere}", "clock", "show"),
        ("clock", "--endpoint-url", "{nowhere}", "show"),
        ("clock", "show", "--endpoint-url", "{nowhere}"),
        ("--endpoint-url", "http://127.0.0.1:1", "trigger", "sms", "--endpoint-url={nowhere}"),
    ],
    ids=" ".join,
)
def test_common_options_stand_before_or_after_the_command_and_the_later_counts(
    nowhere: str, words: tuple[str, ...]
) -> None:
    result = in_process(*(word.format(nowhere=nowhere) for word in words))

    assert result.stderr.startswith(f"{nowhere} cannot be reached")
