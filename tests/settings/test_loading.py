"""Settings: flag > environment > file > default, and a message for each error."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox_sim.records.callbacks import Profile
from sandbox_sim.settings.loading import load
from sandbox_sim.settings.schema import Settings, defaults
from tests.settings.config_errors import config_error


@pytest.mark.decision("D2")
def test_the_default_credentials_are_one_sandbox_set_for_any_service() -> None:
    (client,) = Settings().clients().values()

    assert (client.client_key, client.secret_key, client.mode) == (
        "sandbox_key",
        "sandbox_secret",
        "S",
    )
    assert client.may_use(1)
    assert client.may_use(99)


class TestLayers:
    def test_flag_beats_environment_beats_file_beats_default(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.write_text(
            "callback_attempts = 4\nsettle_delay_ms = 4\nsms_transition_ms = 4\n", "utf-8"
        )
        monkeypatch.setenv("SANDBOX_SIM_SETTLE_DELAY_MS", "5")
        monkeypatch.setenv("SANDBOX_SIM_SMS_TRANSITION_MS", "5")

        loaded = load(file, {"sms_transition_ms": "6"})

        settings = loaded.settings
        assert (settings.callback_attempts, settings.settle_delay_ms) == (4, 5)
        assert (settings.sms_transition_ms, settings.sms_initial_units) == (6, 500)
        assert loaded.origins == {
            "callback_attempts": str(file),
            "settle_delay_ms": "environment",
            "sms_transition_ms": "flag",
        }

    @pytest.mark.parametrize(
        ("name", "text", "value"),
        [
            ("port", "0", 0),
            ("host", "localhost", "localhost"),
            ("match_network", "true", True),
            ("fast_path", "false", False),
            ("rate_limit_per_minute", "100", 100.0),
            ("allowed_prefixes", '["0244"]', ["0244"]),
            ("callback_profiles", '{"*/hook": "flat"}', {"*/hook": Profile.FLAT}),
            ("base_path", "gateway/v1/", "/gateway/v1"),
            ("public_url", "https://gateway.example/", "https://gateway.example"),
        ],
    )
    def test_environment_and_flags_are_read_alike(
        self, monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object
    ) -> None:
        from_flag = load(None, {name: text}).settings
        monkeypatch.setenv(f"SANDBOX_SIM_{name.upper()}", text)
        from_environment = load().settings

        assert getattr(from_flag, name) == getattr(from_environment, name) == value

    @pytest.mark.decision("D2", "D27")
    def test_credentials_of_the_file_replace_the_built_in_set(self, file: Path) -> None:
        file.write_text(
            '[[credentials]]\nclient_key = "a"\nsecret_key = "b"\nmode = "P"\n'
            'service_ids = [55]\ncallback_profile = "flat"\n',
            "utf-8",
        )

        (client,) = load(file).settings.clients().values()

        assert (client.client_key, client.secret_key, client.mode) == ("a", "b", "P")
        assert (client.may_use(55), client.may_use(56)) == (True, False)
        assert client.callback_profile == "flat"


def test_an_unknown_setting_is_refused_with_the_nearest_name() -> None:
    assert config_error(callback_retries_interval_s="1") == (
        "callback_retries_interval_s (from flag): there is no such setting; "
        "did you mean callback_retry_interval_s?"
    )


class TestFile:
    def test_a_file_may_begin_with_a_byte_order_mark_or_be_empty(self, file: Path) -> None:
        file.write_text("port = 9000\n", "utf-8-sig")
        assert load(file).settings.port == 9000

        file.write_text("")
        assert (load(file).settings, load(file).origins) == (Settings(), {})

    def test_an_unreadable_file_is_an_error_that_names_it(self, file: Path, tmp_path: Path) -> None:
        assert config_error(file) == f"{file}: cannot be read: No such file or directory"
        assert config_error(tmp_path) == f"{tmp_path}: cannot be read: Is a directory"
        for content in (
            *(b"port = ", b"port", b"\xff\xfe", b"[", b"a=1\na=2"),
            *(b"a = " + b"[" * 20_000, b"port = " + b"9" * 5000),
        ):
            file.write_bytes(content)
            assert config_error(file).startswith(f"{file}: is not TOML: ")
        too_deep = config_error(allowed_prefixes="[" * 20_000)
        assert too_deep.startswith("allowed_prefixes (from flag): must be a list, such as ")


def test_texts_that_are_not_utf_8_are_refused_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has a byte that is not UTF-8 as a surrogate; an escape in JSON may be one too."""
    monkeypatch.setenv("SANDBOX_SIM_CONTROL_TOKEN", "\udcff")
    monkeypatch.setenv("SANDBOX_SIM_NETWORKS__MTN__API_KEY", "\udcff")
    credentials = r'[{"client_key": "shop", "secret_key": "\ud800"}]'

    assert config_error(host="\udcff", credentials=credentials).splitlines() == [
        "control_token (from environment): must be UTF-8",
        "networks (from environment): must be UTF-8",
        "host (from flag): must be UTF-8",
        "credentials (from flag): must be UTF-8",
    ]


def test_a_host_that_others_reach_needs_a_control_token() -> None:
    for host in ("127.0.0.1", "127.0.0.2", "::1", "localhost"):
        assert load(None, {"host": host}).settings.loopback
    others = ("0.0.0.0", "::", "192.168.1.7", "gateway.example", "localhost.example", "")
    for host in others:
        message = "control_token (from default): must be set because host "
        assert config_error(host=host).startswith(message)
        assert not load(None, {"host": host, "control_token": "t"}).settings.loopback
    empty = config_error(host="0.0.0.0", control_token="")
    assert empty.startswith("control_token (from flag): must be set ")
    assert load(None, {"control_token": ""}).settings.token is None


def test_defaults_gives_the_values_of_settings_without_arguments() -> None:
    shown: dict[str, Any] = json.loads(Settings(**defaults()).model_dump_json())

    assert shown == json.loads(Settings().model_dump_json())
