"""The setting `lenient` turns on settings that real clients need; each can be set separately."""

import json
import pickle
from pathlib import Path

import pytest
from click.testing import CliRunner

from sandbox_sim.cli import main
from sandbox_sim.cli.serve import command
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.settings.loading import load, settings_from
from sandbox_sim.settings.schema import LENIENT, Settings
from tests.conftest import StartSandbox

pytestmark = pytest.mark.decision("D34")


def test_lenient_turns_on_its_settings() -> None:
    loaded = load(flags={"lenient": "true"})

    assert loaded.settings.accept_international
    assert loaded.settings.callback_profile is Profile.SUPERSET
    assert {name: loaded.origins[name] for name in LENIENT} == dict.fromkeys(LENIENT, "lenient")
    assert loaded.settings.turned_on_by_lenient == tuple(LENIENT)


def test_an_explicit_setting_takes_precedence_over_lenient(tmp_path: Path) -> None:
    file = tmp_path / "sandbox_sim.toml"
    file.write_text('lenient = true\ncallback_profile = "flat"\n', "utf-8")

    loaded = load(file, {"accept_international": "false"})

    assert not loaded.settings.accept_international
    assert loaded.settings.callback_profile is Profile.FLAT
    assert loaded.settings.turned_on_by_lenient == ()
    assert loaded.origins["callback_profile"] == str(file)


def test_lenient_holds_for_the_plugin_and_for_pickled_settings() -> None:
    settings = settings_from({"lenient": True, "callback_profile": "trans"}, "a test")
    pickled = pickle.loads(pickle.dumps(settings))  # noqa: S301

    assert pickled == settings
    assert (settings.accept_international, settings.callback_profile) == (True, Profile.TRANS)
    assert pickled.turned_on_by_lenient == ("accept_international",)


async def test_a_warning_names_the_setting_that_is_set_explicitly(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(lenient=True, accept_international=True)

    why = (await sandbox.collect(customer_number="233244000001")).headers["X-Sandbox-Why"]

    assert "only because of the setting accept_international (" in why


@pytest.mark.parametrize(
    ("settings", "turned_on", "suggests"),
    [
        ({}, "", True),
        ({"lenient": True}, 'accept_international = true, callback_profile = "superset"', False),
        ({"lenient": True, "callback_profile": "flat"}, "accept_international = true", False),
        ({"callback_profile": "trans_bare"}, "", False),
        ({"callback_profile": "trans"}, "", False),
    ],
)
def test_the_ready_line_names_the_lenient_settings_or_suggests_the_flag(
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, object],
    turned_on: str,
    *,
    suggests: bool,
) -> None:
    made = settings_from({"store": "memory:", **settings}, "a test")

    command._print_ready(made, 8233, as_json=False)
    shown = capsys.readouterr().out
    command._print_ready(made, 8233, as_json=True)
    document = json.loads(capsys.readouterr().out.splitlines()[0])

    lenient = f" (lenient: {turned_on})" if turned_on else ""
    ready = f"sandbox-sim ready at http://127.0.0.1:8233{lenient}"
    assert shown.splitlines()[0] == ready
    assert document.get("lenient", []) == (turned_on.split(", ") if turned_on else [])
    assert ("most clients need --lenient" in shown) is suggests


def test_serve_has_the_flag_lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    turned_on: list[str] = []

    def run(settings: Settings, **_: object) -> int:
        turned_on.extend(settings.turned_on_by_lenient)
        return 0

    monkeypatch.setattr(command, "_run", run)

    result = CliRunner().invoke(main, ["serve", "--lenient"])

    assert (result.exit_code, turned_on) == (0, list(LENIENT))
