"""docs/stuck-payments.md, typed from its first command to its last over simulated networks."""

import re
import tomllib

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.docs.commands import sandbox_sim, shape
from tests.docs.pages import Command, Page
from tests.production.client import settled

PAGE = Page("docs/stuck-payments.md")
# How long the reader waits before a command, in seconds, and in which steps the clock goes there.
WAITS = {"--open-longer-than": (605, 5), "ask": (5, 5), "--waiting": (3600, 60)}


@pytest.fixture
async def desk(start_sandbox: StartSandbox) -> Sandbox:
    """The gateway with the configuration of the page."""
    (configuration,) = PAGE.blocks("toml")
    return await start_sandbox(allow_memory=True, **tomllib.loads(configuration))


async def typed(desk: Sandbox, command: Command, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command prints; only a refused command fails."""
    for word, (seconds, step) in WAITS.items():
        for _ in range(0, seconds if word in command.words else 0, step):
            await settled(desk, seconds=step)
    if command.program == "export":
        for word in command.words[1:]:
            name, _, value = word.partition("=")
            monkeypatch.setenv(name, value)
        return ""
    refused = "settle" in command.words and "Nothing was settled" in (command.output or "")
    printed = await sandbox_sim(desk, command.words[1:], exit_code=1 if refused else 0)
    return re.sub(r"^gateway time is .*\n", "", printed, flags=re.MULTILINE)


@pytest.mark.decision("D39", "D44")
async def test_the_page_leads_from_a_stuck_payment_to_books_that_are_right(
    desk: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in PAGE.commands():
        if "serve" in command.words:
            continue
        printed = await typed(desk, command, monkeypatch)
        if command.output:
            assert shape(printed) == shape(command.output), command.words

    assert "no transactions" in await sandbox_sim(desk, ["transactions", "list", "--waiting"])
