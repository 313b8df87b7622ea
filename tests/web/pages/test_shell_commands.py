"""A command to copy runs one program in a shell, with any text in the fields of a record."""

import json
import re
import subprocess
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from sandbox_sim.web.pages import formats
from tests.conftest import Sandbox
from tests.web.pages.dashboard_pages import page

# Each would make a file if a shell did not read it as a text.
HOSTILE = (
    ";touch x",
    "$(touch x)",
    "`touch x`",
    "'; touch x; '",
    '"; touch x; "',
    "'\"$(touch x)",
    "\ntouch x\n",
    "\rtouch x\r",
    "\x03\ntouch x\n",
    "\x1b[201~\ntouch x\n",
    "\x15touch x\r\n",
    "\u2028touch x",
    "\x85touch x\x9b",
    "\\'; touch x #",
    "| touch x",
    "& touch x &",
    "> x",
    "!touch",
    "~/*?[a-z]{1,2}",
    "@/etc/passwd",
    "-o x",
    "\ud83d;touch x",
    "",
)
SHELLS = ("sh", "bash")
# What a program writes behind its arguments.
END = "that was all"


@pytest.fixture
def shell_folder(tmp_path: Path) -> Path:
    """An empty folder to run shells in, beside one with a `curl` and a `sandbox-sim`.

    They write their arguments and `END`, with a NUL after each.
    """
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("curl", "sandbox-sim"):
        program = programs / name
        program.write_text(f'#!/bin/sh\nprintf "%s\\0" "$@" "{END}"\n')
        program.chmod(0o755)
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def pasted(folder: Path, shell: str, *commands: str) -> list[list[str]]:
    """The arguments that each program gets when its command is pasted into a shell."""
    assert all(char.isprintable() or char == "\n" for command in commands for char in command)
    done = subprocess.run(  # noqa: S603 -- the programs that it finds are ours
        [shell],
        input="\n".join((*commands, "")).encode(),
        cwd=folder,
        env={"PATH": f"{folder.parent / 'programs'}:/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert [*folder.iterdir()] == []
    assert done.stderr == b""
    *runs, rest = done.stdout.decode().split(f"{END}\0")
    assert (len(runs), rest) == (len(commands), ""), "one program ran for each, and nothing else"
    return [run.split("\0")[:-1] for run in runs]


def body_of(arguments: Sequence[str]) -> str:
    return arguments[arguments.index("--data-raw") + 1]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_pasted_command_keeps_hostile_texts(shell_folder: Path, shell: str) -> None:
    """`curl` sends the same JSON, with the text in each of its fields."""
    bodies = [{"reference": text, text: [text, {"amount": 1.5}]} for text in HOSTILE]
    commands = [formats.curl("http://h", "/p", "k:s", body) for body in bodies]
    runs = pasted(shell_folder, shell, *commands)
    assert [json.loads(body_of(arguments)) for arguments in runs] == bodies

    commands = [formats.curl("http://h", f"/p{text}", f"key:{text}", text) for text in HOSTILE]
    for url, *arguments in pasted(shell_folder, shell, *commands):
        assert re.fullmatch(r"http://h/p[\w.~/%-]*", url)
        assert arguments[0] == "-u"
        assert arguments[2:5] == ["-H", "Content-Type: application/json", "--data-raw"]
        assert len(arguments) == 6

    commands = [formats.doctor_command(f"http://shop.test/{text}", "http://h") for text in HOSTILE]
    for name, url, *rest in pasted(shell_folder, shell, *commands):
        assert (name, rest) == ("doctor", ["--paid", "COMMAND", "--endpoint-url", "http://h"])
        assert url.startswith("http://shop.test/")


@pytest.mark.parametrize("shell", SHELLS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet=st.sampled_from("a'\"\\$`;&|<>()!*?#~ \n\t\r\x1b\x03\x9b\u2028é=@-")))
def test_a_pasted_command_keeps_any_text(shell_folder: Path, shell: str, text: str) -> None:
    (arguments,) = pasted(shell_folder, shell, formats.curl("http://h", "/p", text, {text: text}))

    assert json.loads(body_of(arguments)) == {text: text}


def test_a_body_that_is_not_json_keeps_its_lines() -> None:
    command = formats.curl("http://h", "/p", "k:s", '{\r\n  "a": 1,\r\n}')

    assert command.endswith("""--data-raw '{\n  "a": 1,\n}'""")


@pytest.mark.parametrize("shell", SHELLS)
async def test_the_commands_of_the_dashboard_keep_hostile_texts(
    sandbox: Sandbox, shell_folder: Path, shell: str
) -> None:
    url = "http://127.0.0.1:9/a;touch${IFS}x;'$(touch${IFS}y)'`touch${IFS}z`"
    await sandbox.airtime(reference="'; touch x", callback_url=url)
    await sandbox.advance(seconds=1)

    shown = await page(sandbox)

    commands = [unescape(each) for each in re.findall(r'data-(?:copy|command)="([^"]*)"', shown)]
    (curl,) = (each for each in commands if each.startswith("curl "))
    (doctor,) = (each for each in commands if each.startswith("sandbox-sim doctor "))
    sent, examined = pasted(shell_folder, shell, curl, doctor)
    body = json.loads(body_of(sent))
    assert (body["reference"], body["callback_url"]) == ("'; touch x", url)
    assert examined == ["doctor", url, "--paid", "COMMAND", "--endpoint-url", sandbox.url]
