"""`sandbox-sim config check | show | init`."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from sandbox_sim.cli import main
from sandbox_sim.settings.loading import load
from sandbox_sim.settings.schema import Settings, defaults


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sandbox_sim.toml"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def variables(command: click.Command) -> Iterator[str]:
    """The environment variables of the options of a command and of its subcommands."""
    yield from (str(each.envvar) for each in command.params if each.envvar)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from variables(below)


class TestCheck:
    def test_good_settings(self, file: Path) -> None:
        file.write_text("port = 0\n", "utf-8")

        result = run("config", "check", "--config", file, "--set", "settle_delay_ms=5")

        assert (result.exit_code, result.output) == (0, "the settings are valid\n")
        assert run("--json", "config", "check", "--config", file).stdout == '{"status": "ok"}\n'

    def test_a_bad_one_is_named_on_stderr_also_where_the_environment_names_the_file(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.write_text("port = -1\n", "utf-8")
        result = run("config", "check", "--config", file)
        monkeypatch.setenv("SANDBOX_SIM_CONFIG", str(file))

        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"port (from {file}): must be greater than or equal to 0")
        assert run("config", "check").stderr == result.stderr

    @pytest.mark.parametrize(
        ("variable", "hint"),
        [
            ("SANDBOX_SIM_PROT", "; did you mean SANDBOX_SIM_PORT?"),
            ("sandbox_sim_prot", "; did you mean SANDBOX_SIM_PORT?"),
            ("SANDBOX_SIM_TOKN", "; did you mean SANDBOX_SIM_TOKEN?"),
            ("SANDBOX_SIM_ZZZ", ""),
            ("SANDBOX_SIM_", ""),
        ],
    )
    def test_a_variable_that_is_no_setting_is_told_on_stderr(
        self, monkeypatch: pytest.MonkeyPatch, variable: str, hint: str
    ) -> None:
        monkeypatch.setenv(variable, "0")

        result = run("--json", "config", "check")

        assert (result.exit_code, result.stdout) == (0, '{"status": "ok"}\n')
        told = f"{variable.upper()} (from environment): there is no such setting{hint}"
        assert result.stderr == f"warning: {told}\n"

    def test_it_is_told_too_where_something_is_wrong_for_want_of_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SANDBOX_SIM_CONTROL_TOKN", "s3same")

        result = run("config", "check", "--set", "host=0.0.0.0")

        assert result.exit_code == 1
        warning, complaint = result.stderr.splitlines()
        assert "did you mean SANDBOX_SIM_CONTROL_TOKEN?" in warning
        assert complaint.startswith("control_token (from default): must be set")

    def test_other_variables_are_no_mistakes(
        self, monkeypatch: pytest.MonkeyPatch, file: Path
    ) -> None:
        of_tests = ("SANDBOX_SIM_REQUIRE", "SANDBOX_SIM_TEST_POSTGRES")
        for name in (*variables(main), *of_tests, "sandbox_sim_host", "SANDBOX_SIMPLE"):
            monkeypatch.setenv(name, "127.0.0.1")
        file.touch()

        assert run("config", "check", "--config", file).stderr == ""


def shown(*arguments: object) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = json.loads(run("--json", "config", "show", *arguments).stdout)
    return rows


class TestShow:
    def test_every_setting_has_the_place_that_it_came_from(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.write_text("port = 1\ncallback_attempts = 1\nsettle_delay_ms = 1\n", "utf-8")
        monkeypatch.setenv("SANDBOX_SIM_CALLBACK_ATTEMPTS", "2")
        monkeypatch.setenv("SANDBOX_SIM_SETTLE_DELAY_MS", "2")

        rows = shown("--config", file, "--set", "settle_delay_ms=3")

        assert set(rows) == set(Settings.model_fields)
        assert rows["port"] == {"value": 1, "from": str(file)}
        assert rows["callback_attempts"] == {"value": 2, "from": "environment"}
        assert rows["settle_delay_ms"] == {"value": 3, "from": "flag"}
        assert rows["host"] == {"value": "127.0.0.1", "from": "default"}

    def test_as_text_it_is_a_line_for_each(self) -> None:
        lines = run("config", "show", "--set", "port=9000").stdout.splitlines()

        assert "port = 9000  (flag)" in lines
        assert 'allowed_prefixes = ["0244", "0200", "0270"]  (default)' in lines
        assert len(lines) == len(Settings.model_fields)

    @pytest.mark.parametrize("form", [("--json",), ()])
    def test_secrets_are_masked(self, file: Path, form: tuple[str, ...]) -> None:
        file.write_text(
            'control_token = "s3same"\ncallback_headers = { "X-Staging" = "2ecret" }\n'
            '[[credentials]]\nclient_key = "shop"\nsecret_key = "0pen"\n',
            "utf-8",
        )
        store = "postgresql://gateway:s3same@db.internal/sandbox?sslmode=require&password=0pen"

        result = run(*form, "config", "show", "--config", file, "--set", f"store={store}")

        assert result.exit_code == 0
        assert [each for each in ("s3same", "0pen", "2ecret") if each in result.output] == []
        assert "shop" in result.output
        assert "***" in result.output
        masked = "postgresql://gateway:***@db.internal/sandbox?sslmode=require&password=***"
        assert masked in result.output

    def test_bad_settings_are_not_shown(self) -> None:
        result = run("config", "show", "--set", "prot=1")

        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == "prot (from flag): there is no such setting; did you mean port?\n"


# The start of `# name = value`; a comment in words has no name.
SETTING = re.compile(r"^# (?=(\w+) =|\[\[)", re.MULTILINE)


class TestInit:
    @pytest.mark.parametrize("name", [(), ("sandbox_sim.toml",)], ids=["default", "named"])
    def test_the_file_changes_nothing_as_it_is(self, file: Path, name: tuple[str, ...]) -> None:
        result = run("config", "init", *name)

        assert result.exit_code == 0
        assert "sandbox-sim serve --config sandbox_sim.toml" in result.stdout
        loaded = load(file)
        assert (loaded.settings, loaded.origins) == (Settings(), {})

    def test_it_has_every_setting_with_its_description(self) -> None:
        text = run("config", "init", "-").stdout

        for name, setting in Settings.model_fields.items():
            assert re.search(rf"^# (\[\[)?{name}\b", text, re.MULTILINE), name
            if name != "credentials":
                assert f"# {setting.description}\n# {name} =" in text

    def test_with_every_comment_sign_taken_off_it_is_the_defaults(self, file: Path) -> None:
        """A setting without a default is a line to complete, because TOML has no null."""
        text = SETTING.sub("", run("config", "init", "-").stdout)
        unset = [name for name, value in defaults().items() if value is None]
        for name in unset:
            assert f"\n{name} =\n" in text
            text = text.replace(f"\n{name} =\n", "\n")
        file.write_text(text.partition("[[credentials]]")[0], "utf-8")

        loaded = load(file)

        assert loaded.settings == Settings()
        assert set(loaded.origins) == set(defaults()) - {*unset, "credentials"}

    def test_its_credentials_can_be_used_as_they_stand(self, file: Path) -> None:
        text = SETTING.sub("", run("config", "init", "-").stdout)
        table = "[[credentials]]" + text.partition("[[credentials]]")[2]
        assert set(tomllib.loads(table)["credentials"][0]) >= {"client_key", "secret_key", "mode"}
        file.write_text(table, "utf-8")

        assert list(load(file).settings.clients()) == ["sandbox_key"]

    def test_a_file_that_is_there_stays_and_a_place_that_cannot_be_written_is_told(
        self, file: Path, tmp_path: Path
    ) -> None:
        file.write_text("mine", "utf-8")
        there = run("config", "init", file)
        nowhere = tmp_path / "nowhere" / "sandbox_sim.toml"
        unwritable = run("config", "init", nowhere)

        assert there.exit_code == unwritable.exit_code == 1
        assert there.stderr == f"{file} already exists and was not changed\n"
        assert file.read_text("utf-8") == "mine"
        assert unwritable.stderr == f"{nowhere} cannot be written: No such file or directory\n"


def test_an_option_of_serve_has_the_words_of_its_setting() -> None:
    serve = main.get_command(click.Context(main), "serve")

    assert serve is not None
    options = [each for each in serve.params if each.name in Settings.model_fields]
    assert {each.name: each.help for each in options if isinstance(each, click.Option)} == {
        name: Settings.model_fields[name].description
        for name in (
            *("host", "port", "store", "production", "cert", "key", "tls", "workers"),
            *("quiet", "log_level", "log_format", "lenient"),
        )
    }
