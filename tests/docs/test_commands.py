"""Every command in README.md and docs/ works as written, and prints the output below it."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sandbox_sim import logs
from sandbox_sim.cli import main
from sandbox_sim.cli.commands import demo
from sandbox_sim.cli.serve import command as serve_command, process, workers
from sandbox_sim.settings import networks
from sandbox_sim.settings.loading import load
from sandbox_sim.settings.networks import ENTRY_POINTS, installed_adapters
from sandbox_sim.settings.schema import Settings
from tests.conftest import Sandbox, StartSandbox
from tests.docs.commands import VARYING, curl, sandbox_sim, shape
from tests.docs.pages import ROOT, Command, Page, all_pages
from tests.docs.runners import RUN_BY
from tests.tls_files import certificate_files
from tests.web.events import listening

PAGES = [page for page in all_pages() if page.blocks("sh") and page.name not in RUN_BY["sh"]]
RECORDS = Page("docs/records.md")


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[str]], str]:
    """Prints what `sandbox-sim serve` or `demo` prints when it is ready, without serving."""

    async def ready_at_once(settings: Settings, ready: Callable[[int], None]) -> int:
        ready(settings.port or 43477)
        return 0

    async def demo_ready_at_once(*given: Any) -> int:
        ready: demo.DemoReady = given[-1]
        ready.show(8233, "http://127.0.0.1:8234", lambda _target: "/_sandbox/enter?code=CODE")
        return 0

    monkeypatch.setattr(demo, "_serve", demo_ready_at_once)
    monkeypatch.setattr(demo, "lan_address", lambda: "192.168.1.5")
    monkeypatch.setattr(process, "serve_alone", ready_at_once)
    monkeypatch.setattr(workers, "supervise", ready_at_once)
    monkeypatch.setattr(logs, "configure", lambda *_: None)
    monkeypatch.setattr(serve_command, "registered", lambda *_: nullcontext())
    monkeypatch.setattr(serve_command, "tls_context", lambda _: None)  # makes no authority
    monkeypatch.setenv("XDG_STATE_HOME", "/home/ama/.local/state")

    def run(words: Sequence[str]) -> str:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
        return result.output

    return run


async def printed(sandbox: Sandbox, serve: Callable[[Sequence[str]], str], command: Command) -> str:
    """What a command prints before it ends."""
    words = command.words
    if command.program == "curl":
        return await curl(sandbox, words)
    assert command.program == "sandbox-sim", words
    if "serve" in words or "demo" in words:
        return await asyncio.to_thread(serve, words[1:])
    # The page of the doctor shows a receiver with faults.
    return await sandbox_sim(sandbox, words[1:], exit_code=1 if "doctor" in words else 0)


@pytest.mark.parametrize("page", PAGES, ids=str)
async def test_every_command_of_a_page_works_and_prints_the_output_below_it(
    start_sandbox: StartSandbox,
    serve: Callable[[Sequence[str]], str],
    page: Page,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    certificate_files(tmp_path)
    sandbox = await start_sandbox(settle_delay_ms=0)

    for command in page.commands():
        if command.program == "export":
            name, _, value = command.words[1].partition("=")
            if name != "PATH":
                monkeypatch.setenv(name, value)
            continue
        if "-sN" in command.words:  # never ends; see the live feed below
            continue
        output = await printed(sandbox, serve, command)
        # The clock of the tests is not the machine's, so lists end with both times.
        output = re.sub(r"^gateway time is .*\n", "", output, flags=re.MULTILINE)
        if command.output:
            assert shape(output) == shape(command.output), command.words
        await sandbox.advance(seconds=1)


async def test_the_live_feed_sends_the_events_of_the_page(sandbox: Sandbox) -> None:
    (command,) = (command for command in RECORDS.commands() if "-sN" in command.words)
    varying = re.compile(VARYING.pattern + r"|(?<=id: )\S+(?=-[0-9]+\n)")
    assert command.output

    async with listening(sandbox, "?" + command.words[-1].partition("?")[2]) as feed:
        await sandbox.collect(transaction_id="T1001", reference="Order 1001")
        first = await feed.block()
        await sandbox.advance(seconds=1)
        output = ["retry: 1000\n", first, await feed.block()]

    assert varying.sub("*", "\n".join(output)) == varying.sub("*", command.output)


async def test_the_log_has_the_line_that_the_page_shows(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "sandbox_sim")
    (line,) = (text for text in RECORDS.blocks("text") if "INFO" in text)

    await sandbox.airtime(transaction_id="T1002", customer_number="0540010000")

    assert shape(logs.TextFormatter().format(caplog.records[-1])) == shape(line)


@pytest.mark.parametrize(
    ("transaction_id", "callback_url", "settings"),
    [
        ("A1", "http://127.0.0.1:9/callback", {"callback_retry_interval_s": 1}),
        ("A2", "http://10.1.2.3/callback", {"callback_hosts": {"deny": ["10.0.0.0/8"]}}),
    ],
)
async def test_the_log_has_the_attempts_that_the_page_shows(
    start_sandbox: StartSandbox,
    caplog: pytest.LogCaptureFixture,
    transaction_id: str,
    callback_url: str,
    settings: dict[str, object],
) -> None:
    sandbox = await start_sandbox(**settings)
    shown = [text for text in Page("docs/callbacks.md").blocks("text") if callback_url in text]
    lines = "".join(shown).splitlines()
    assert lines

    await sandbox.collect(transaction_id=transaction_id, callback_url=callback_url)
    await sandbox.advance(seconds=4)

    logged = [logs.TextFormatter().format(each) for each in caplog.records]
    attempts = [shape(line) for line in logged if callback_url in line]
    assert attempts == [shape(line) for line in lines]


@pytest.fixture
def _wrong_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a wrong sandbox_sim.toml in the current folder, and a wrong variable."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SANDBOX_SIM_ALLOWED_PREFIXES", "0244")
    text = 'approved_senders = "Shop"\ncallback_attempts = 0\n'
    Path("sandbox_sim.toml").write_text(text, "utf-8")


@pytest.mark.usefixtures("_wrong_settings")
async def test_wrong_settings_get_the_sentences_of_the_page(sandbox: Sandbox) -> None:
    several, unknown = Page("docs/configuration.md").blocks("text")

    given = ["config", "check", "--config", "sandbox_sim.toml"]
    output = await sandbox_sim(sandbox, given, exit_code=1)
    assert several.strip() in output
    output = await sandbox_sim(sandbox, ["config", "check", "--set", "settle_delay=5"], exit_code=1)
    assert unknown.strip() in output


@pytest.fixture
def _adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What configurations name: the adapter of docs/writing-a-network.md, as if its package was
    installed, and the cassette of docs/recording.md."""
    cassette = tmp_path / "recorded" / "0001-payment.json"
    cassette.parent.mkdir()
    cassette.write_text(Page("docs/recording.md").blocks("json")[0], "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "docs" / "examples" / "palm_pay")
    palm_pay = EntryPoint("palm_pay", "palm_pay:palm_pay", ENTRY_POINTS)
    found = {**installed_adapters(), palm_pay.name: palm_pay}
    monkeypatch.setattr(networks, "installed_adapters", lambda: found)


# docs/certifying.md has certify.toml; tests/certify reads that.
CONFIGURED = [page for page in all_pages() if page.blocks("toml") and "certify" not in page.name]


@pytest.mark.usefixtures("_adapters")
@pytest.mark.parametrize("page", CONFIGURED, ids=str)
def test_every_configuration_of_a_page_is_valid(page: Page, tmp_path: Path) -> None:
    for number, text in enumerate(page.blocks("toml")):
        file = tmp_path / f"{number}.toml"
        file.write_text(text, "utf-8")

        assert load(file).origins


@pytest.mark.parametrize(
    "file", sorted((ROOT / "docs" / "networks").glob("*.toml")), ids=lambda f: f.name
)
def test_every_configuration_to_copy_is_valid(file: Path) -> None:
    assert load(file).origins


def test_pages_do_not_install_the_package_from_an_index() -> None:
    for page in all_pages():
        assert re.findall(r"""pip install ["']?sandbox[-_]sim\b""", page.text) == []


def test_every_json_block_is_json() -> None:
    for page in all_pages():
        for text in page.blocks("json"):
            json.loads(text)
