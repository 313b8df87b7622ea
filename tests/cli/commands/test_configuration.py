"""`sandbox-sim config check | show | init`."""

import json
import re
import tomllib
from pathlib import Path

import click
import pytest

from sandbox_sim.cli import main
from sandbox_sim.settings.loading import load
from sandbox_sim.settings.schema import Settings, defaults
from tests.cli.every_command import commands
from tests.cli.processes import in_process


@pytest.fixture(autouse=True)
def _working_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sandbox_sim.toml"


class TestCheck:
    def test_valid_settings_exit_with_0(self, file: Path) -> None:
        file.write_text("port = 0\n", "utf-8")

        result = in_process("config", "check", "--config", file, "--set", "settle_delay_ms=5")

        assert (result.exit_code, result.output) == (0, "the settings are valid\n")
        assert (
            in_process("--json", "config", "check", "--config", file).stdout == '{"status": "ok"}\n'
        )

    def test_a_bad_setting_is_named_on_stderr_also_if_a_variable_names_the_file(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.write_text("port = -1\n", "utf-8")
        result = in_process("config", "check", "--config", file)
        monkeypatch.setenv("SANDBOX_SIM_CONFIG", str(file))

        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"port (from {file}): must be greater than or equal to 0")
        assert in_process("config", "check").stderr == result.stderr

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
    def test_a_variable_without_a_setting_causes_a_warning(
        self, monkeypatch: pytest.MonkeyPatch, variable: str, hint: str
    ) -> None:
        monkeypatch.setenv(variable, "0")

        result = in_process("--json", "config", "check")

        assert (result.exit_code, result.stdout) == (0, '{"status": "ok"}\n')
        assert result.stderr == (
            f"warning: {variable.upper()} (from environment): there is no such setting{hint}\n"
        )

    def test_a_misspelt_variable_is_also_named_if_its_setting_is_missing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SANDBOX_SIM_CONTROL_TOKN", "s3same")

        result = in_process("config", "check", "--set", "host=0.0.0.0")

        assert result.exit_code == 1
        warning, complaint = result.stderr.splitlines()
        assert "did you mean SANDBOX_SIM_CONTROL_TOKEN?" in warning
        assert complaint.startswith("control_token (from default): must be set")

    def test_other_variables_cause_no_warning(
        self, monkeypatch: pytest.MonkeyPatch, file: Path
    ) -> None:
        variables = {
            str(each.envvar)
            for _, command in commands(main)
            for each in command.params
            if each.envvar
        }
        of_tests = ("SANDBOX_SIM_REQUIRE", "SANDBOX_SIM_TEST_POSTGRES")
        for name in (*variables, *of_tests, "sandbox_sim_host", "SANDBOX_SIMPLE"):
            monkeypatch.setenv(name, "127.0.0.1")
        file.touch()

        assert in_process("config", "check", "--config", file).stderr == ""


class TestShow:
    def test_every_setting_is_shown_with_its_source(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.write_text("port = 1\ncallback_attempts = 1\nsettle_delay_ms = 1\n", "utf-8")
        monkeypatch.setenv("SANDBOX_SIM_CALLBACK_ATTEMPTS", "2")
        monkeypatch.setenv("SANDBOX_SIM_SETTLE_DELAY_MS", "2")

        flags = ("--config", file, "--set", "settle_delay_ms=3")
        rows = json.loads(in_process("--json", "config", "show", *flags).stdout)

        assert set(rows) == set(Settings.model_fields)
        assert rows["port"] == {"value": 1, "from": str(file)}
        assert rows["callback_attempts"] == {"value": 2, "from": "environment"}
        assert rows["settle_delay_ms"] == {"value": 3, "from": "flag"}
        assert rows["host"] == {"value": "127.0.0.1", "from": "default"}

    def test_the_text_form_has_a_line_for_each_setting(self) -> None:
        lines = in_process("config", "show", "--set", "port=9000").stdout.splitlines()

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

        result = in_process(*form, "config", "show", "--config", file, "--set", f"store={store}")

        assert result.exit_code == 0
        assert [each for each in ("s3same", "0pen", "2ecret") if each in result.output] == []
        assert "shop" in result.output
        assert "***" in result.output
        masked = "postgresql://gateway:***@db.internal/sandbox?sslmode=require&password=***"
        assert masked in result.output

    @pytest.mark.decision("D38")
    def test_passwords_in_addresses_are_masked(self, file: Path) -> None:
        file.write_text(
            'public_url = "https://ama:s3same@gateway.example"\n'
            '[networks.account]\nadapter = "upstream"\n'
            'base_url = "https://shop:0pen@account.example/v1"\n',
            "utf-8",
        )

        shown = in_process("config", "show", "--config", file).stdout

        assert 'public_url = "https://***@gateway.example"' in shown
        assert '"base_url": "https://***@account.example/v1"' in shown

    def test_bad_settings_are_not_shown(self) -> None:
        result = in_process("config", "show", "--set", "prot=1")

        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == "prot (from flag): there is no such setting; did you mean port?\n"


# The start of `# name = value`; a comment in words has no name.
SETTING = re.compile(r"^# (?=(\w+) =|\[\[)", re.MULTILINE)


class TestInit:
    @pytest.mark.parametrize("name", [(), ("sandbox_sim.toml",)], ids=["default", "named"])
    def test_a_new_file_changes_no_setting(self, file: Path, name: tuple[str, ...]) -> None:
        result = in_process("config", "init", *name)

        assert result.exit_code == 0
        assert "sandbox-sim serve --config sandbox_sim.toml" in result.stdout
        loaded = load(file)
        assert (loaded.settings, loaded.origins) == (Settings(), {})

    def test_the_file_has_every_setting_with_its_description(self) -> None:
        text = in_process("config", "init", "-").stdout

        for name, setting in Settings.model_fields.items():
            assert re.search(rf"^# (\[\[)?{name}\b", text, re.MULTILINE), name
            if name != "credentials":
                assert f"# {setting.description}\n# {name} =" in text

    def test_the_file_without_comment_signs_sets_the_defaults(self, file: Path) -> None:
        """A setting without a default is a line to complete, because TOML has no null."""
        text = SETTING.sub("", in_process("config", "init", "-").stdout)
        unset = [name for name, value in defaults().items() if value is None]
        for name in unset:
            assert f"\n{name} =\n" in text
            text = text.replace(f"\n{name} =\n", "\n")
        file.write_text(text.partition("[[credentials]]")[0], "utf-8")

        loaded = load(file)

        assert loaded.settings == Settings()
        assert set(loaded.origins) == set(defaults()) - {*unset, "credentials"}

    def test_the_credentials_of_the_file_are_valid_without_comment_signs(self, file: Path) -> None:
        text = SETTING.sub("", in_process("config", "init", "-").stdout)
        table = "[[credentials]]" + text.partition("[[credentials]]")[2]
        assert set(tomllib.loads(table)["credentials"][0]) >= {"client_key", "secret_key", "mode"}
        file.write_text(table, "utf-8")

        assert list(load(file).settings.clients()) == ["sandbox_key"]

    def test_an_existing_file_is_kept_and_an_unwritable_path_is_named(
        self, file: Path, tmp_path: Path
    ) -> None:
        file.write_text("mine", "utf-8")
        there = in_process("config", "init", file)
        nowhere = tmp_path / "nowhere" / "sandbox_sim.toml"
        unwritable = in_process("config", "init", nowhere)

        assert there.exit_code == unwritable.exit_code == 1
        assert there.stderr == f"{file} already exists and was not changed\n"
        assert file.read_text("utf-8") == "mine"
        assert unwritable.stderr == f"{nowhere} cannot be written: No such file or directory\n"


def test_the_help_of_an_option_of_serve_is_the_description_of_its_setting() -> None:
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
