"""Every command of docs/control-api.md, against a gateway over a real socket."""

from pathlib import Path

import click
import pytest

from sandbox_sim.cli import main
from tests.cli.asking import control, on, printed
from tests.cli.every_command import COMMANDS, commands
from tests.cli.processes import in_process, running
from tests.conftest import Sandbox


async def test_every_command_exits_with_0_and_prints_output(sandbox: Sandbox) -> None:
    for command in COMMANDS.strip().splitlines():
        result = await on(sandbox, *command.split())

        assert (command, result.exit_code, result.stderr) == (command, 0, "")
        assert result.stdout


@pytest.mark.parametrize(
    ("words", "path"),
    [
        *(
            (f"{kind} list --limit 1 --service-id 55", f"{kind}?limit=1&service_id=55")
            for kind in ("requests", "transactions", "callbacks", "sms", "overrides", "faults")
        ),
        ("snapshot list", "snapshots"),
        ("ledger show", "ledger"),
        ("inbox show orders", "inbox/orders/messages"),
    ],
)
async def test_a_list_as_json_is_the_answer_of_the_control_api(
    sandbox: Sandbox, words: str, path: str
) -> None:
    await sandbox.collect()
    await sandbox.sms()
    await sandbox.advance(seconds=1)
    for command in ("overrides add --status 003", "faults add --timeout", "snapshot save now"):
        await printed(sandbox, *command.split(), "--service-id", 55)

    result = await on(sandbox, "--json", *words.split())

    assert result.stdout == await control(sandbox, path) + "\n"


FULL_DISK = Path("/dev/full")


@pytest.mark.skipif(not FULL_DISK.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [("explain", "019"), ("--help",)])
def test_output_that_a_full_disk_refuses_is_an_error(words: tuple[str, ...]) -> None:
    with FULL_DISK.open("wb") as full, running(*words, stdout=full.fileno()) as command:
        code = command.wait(60)
        assert command.stderr is not None
        err = command.stderr.read()

    assert (code, err) == (1, "Error: cannot write the output: No space left on device\n")


@pytest.mark.parametrize("command", ["compare", "config init", "demo", "explain", "serve"])
def test_a_command_that_asks_no_gateway_has_no_options_for_one(command: str) -> None:
    shown = in_process(*command.split(), "--help").output

    assert "--json" in shown
    assert "--endpoint-url" not in shown
    assert "--token" not in shown


def test_the_help_describes_every_option_and_shows_its_default() -> None:
    for name, command in commands(main):
        shown = " ".join(in_process(*name.split(), "--help").output.split())
        for option in command.params:
            if not isinstance(option, click.Option):
                continue
            assert option.help, (name, option.opts)
            if isinstance(option.default, str | int) and not isinstance(option.default, bool):
                assert f"default: {option.default}" in shown, (name, option.opts)


@pytest.mark.parametrize(
    ("words", "default"),
    [
        *(("serve", each) for each in ("127.0.0.1", "8233", "sqlite:", "1", "info", "text")),
        ("demo", "memory:"),
        ("ledger reverse", "your user name"),
    ],
)
def test_the_help_shows_defaults_of_settings_and_those_that_are_computed(
    words: str, default: str
) -> None:
    shown = " ".join(in_process(*words.split(), "--help").output.split())

    assert f"[default: ({default})]" in shown


def test_the_help_of_doctor_keeps_its_table() -> None:
    shown = in_process("doctor", "--help").output

    assert "\\b" not in shown
    assert "    compares trans_status with 000   callback_profile = trans_bare\n" in shown


async def test_a_user_without_a_name_as_in_a_container_can_decide_a_payment(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 2)  # no entry in /etc/passwd
    await sandbox.collect(transaction_id="T1")

    settled = await on(sandbox, "transactions", "settle", "T1", "failed")
    refused = await on(sandbox, "ledger", "topup", "55", "5", "--mode", "P", "--reason", "stock")

    assert (settled.exit_code, settled.stdout) == (0, "T1 is 001 failed\n")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert isinstance(refused.exception, SystemExit)
