"""Configurations that the start of production refuses, and settings of networks. D32, D39, D37."""

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.bootstrap.parts import require_networks_of_open_attempts
from sandbox_sim.bootstrap.production_parts import networks_of
from sandbox_sim.networks.simulated.adapter import SimulatedNetwork
from sandbox_sim.operations import Operation
from sandbox_sim.ports import Unit
from sandbox_sim.ports.network import NetworkConfigError
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.reports import Outcome
from sandbox_sim.settings.loading import ConfigError, load, settings_from
from sandbox_sim.settings.schema import Settings
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.values.timestamps import iso
from tests.conftest import StartSandbox
from tests.live_records import attempt
from tests.production.settings import BUILT_IN, LIVE, STAGING
from tests.sample_records import NOW
from tests.sqlite_files import opened
from tests.tls_files import certificate_files
from tests.units import unit_of
from tests.web.control_api import only

pytestmark = pytest.mark.decision("D32")

PUBLIC = "https://gateway.example"


def production(**values: Any) -> Settings:
    usual = {"production": True, "credentials": [LIVE], "networks": STAGING}
    return settings_from({**usual, **values}, "test")


def networks(**values: Any) -> Any:
    return networks_of(production(**values), VirtualClock(), RandomIds(seed=1))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"credentials": [BUILT_IN]}, 'needs a table [[credentials]] with mode = "P"'),
        ({"credentials": [{**BUILT_IN, "mode": "P"}]}, "the built-in pair is public"),
        ({"store": "memory:"}, "set allow_memory = true"),
        (
            {"host": "0.0.0.0", "control_token": "t"},
            "this is plain HTTP; give --tls, or --cert and --key",
        ),
        (
            {
                "host": "0.0.0.0",
                "control_token": "t",
                "tls_terminated": True,
                "public_url": PUBLIC,
                "credentials": [LIVE, BUILT_IN],
            },
            "host 0.0.0.0 is not loopback",
        ),
        ({"routes": [{"network": "mtn"}]}, "there is no table [networks.mtn]"),
        ({"routes": [{"network": "staging", "operation": ["status"]}]}, "no network carries"),
        (
            {"host": "0.0.0.0", "tls_terminated": True, "public_url": PUBLIC},
            "must be set because host 0.0.0.0",
        ),
        ({"tls_terminated": True}, "public_url (from default): must be set with tls_terminated"),
    ],
    ids=[
        *("no set", "built-in", "memory", "plain HTTP", "built-in beyond", "route", "operation"),
        *("no token", "proxy"),
    ],
)
def test_an_unsafe_configuration_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        production(**values)


def test_all_errors_of_a_configuration_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        production(
            host="0.0.0.0",
            store="memory:",
            credentials=[{**BUILT_IN, "mode": "P"}],
            networks={"one": {"adapter": "none"}, "two": {"adapter": "simulated", "settle": 5}},
            routes=[{"network": "three"}],
            cert="cert.pem",
        )

    lines = str(refused.value).splitlines()
    assert [line.split(" (from")[0] for line in lines] == [
        *("control_token", "cert", "routes", "networks.one", "networks.two"),
        *("credentials", "credentials", "store"),
    ]


def test_a_safe_configuration_is_accepted(tmp_path: Path) -> None:
    cert, key = map(str, certificate_files(tmp_path))
    production()
    production(host="0.0.0.0", control_token="t", cert=cert, key=key)
    production(host="0.0.0.0", control_token="t", tls=True)
    production(credentials=[LIVE, BUILT_IN])
    production(store="memory:", allow_memory=True)
    production(host="0.0.0.0", control_token="t", tls_terminated=True, public_url=PUBLIC)
    settings_from({"tls_terminated": True}, "test")


def test_a_client_of_mode_p_is_served_only_in_production() -> None:
    served = production().clients()["live_key"].served
    refused = settings_from({"credentials": [LIVE]}, "test").clients()["live_key"].served

    assert (served, refused) == (True, False)


def test_a_network_is_made_with_its_settings() -> None:
    table = {"adapter": "simulated", "settle_after_ms": 5, "poll_after_s": 0.5, "timeout_s": 2.5}
    found = networks(networks={"mtn": table}, routes=[{"network": "mtn", "nw": ["MTN"]}])

    (mtn,) = found.candidates(Operation.COLLECT, "MTN")
    assert isinstance(mtn.network, SimulatedNetwork)
    assert mtn.terms.schedule.poll_after.total_seconds() == 0.5
    assert mtn.terms.timeout.total_seconds() == 2.5
    assert found.candidates(Operation.COLLECT, "VOD") == []


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"adapter": "mtn"}, "there is no adapter 'mtn'; installed are"),
        ({"adapter": "simulated", "settle": 5}, "settle:"),
        (
            {"adapter": "upstream", "secret_key_file": "/nowhere"},
            "secret_key_file: the file cannot",
        ),
    ],
    ids=["adapter", "setting", "file"],
)
def test_a_network_that_cannot_be_made_is_refused(table: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        networks(networks={"bad": table})


def test_secrets_come_from_the_environment_and_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, file = tmp_path / "secret", tmp_path / "sandbox_sim.toml"
    secret.write_text("from-the-file\n")
    file.write_text(
        f"""
        [networks.Account]
        adapter = "upstream"
        base_url = "https://gateway.example"
        secret_key_file = "{secret}"
        """
    )
    monkeypatch.setenv("SANDBOX_SIM_NETWORKS__ACCOUNT__CLIENT_KEY", "from-the-environment")

    loaded = load(file)

    table = loaded.settings.networks["Account"]
    assert table.adapter_settings() == {
        "base_url": "https://gateway.example",
        "client_key": "from-the-environment",
        "secret_key": "from-the-file",
    }
    shown = loaded.settings.model_dump_json()
    assert "from-the" not in shown
    assert "https://gateway.example" in shown


def test_the_headers_of_a_network_are_masked_and_its_other_tables_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "sandbox_sim.toml"
    file.write_text(
        """
        [networks.api]
        adapter = "http_json"
        base_url = "https://api.example"
        auth = "bearer"
        auth_secret = "from-the-file"
        [networks.api.submit]
        path = "/payments"
        [networks.api.submit.headers]
        X-Account = "from-the-file"
        [networks.api.submit.outcomes]
        PAID = "succeeded"
        """
    )

    shown = load(file).settings.model_dump(mode="json")["networks"]["api"]

    assert shown["auth_secret"] == shown["submit"]["headers"]["X-Account"] == "**********"
    assert (shown["auth"], shown["submit"]["path"]) == ("bearer", "/payments")
    assert shown["submit"]["outcomes"] == {"PAID": "succeeded"}


def test_the_token_and_the_keys_of_clients_come_from_files(tmp_path: Path) -> None:
    token, secret = tmp_path / "token", tmp_path / "secret"
    token.write_text("the-token\n")
    secret.write_text("the-secret\n")
    live = {"client_key": "live_key", "secret_key_file": str(secret), "mode": "P"}

    settings = production(credentials=[live], control_token_file=str(token))

    assert settings.token == "the-token"
    assert settings.clients()["live_key"].secret_key == "the-secret"
    shown = settings.model_dump_json()
    assert "the-token" not in shown
    assert "the-secret" not in shown


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"control_token_file": "/nowhere"}, "control_token_file (from test): the file cannot"),
        ({"control_token_file": os.devnull}, "the file /dev/null is empty"),
        ({"control_token": "t", "control_token_file": "f"}, "control_token is set too"),
        (
            {"credentials": [{**LIVE, "secret_key_file": "f"}]},
            "credentials[0] (from test): has secret_key and secret_key_file; keep one of them",
        ),
        (
            {"credentials": [{"client_key": "k", "mode": "P", "secret_key_file": "/nowhere"}]},
            "secret_key_file: the file cannot be read",
        ),
    ],
    ids=["no file", "empty", "both tokens", "both keys", "no key file"],
)
def test_an_unreadable_secret_stops_the_start(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        production(**values)


@pytest.mark.decision("D39")
async def test_the_start_refuses_to_drop_a_network_with_open_attempts() -> None:
    store = MemoryStore(VirtualClock())
    await unit_of(store).add_attempt(attempt("A1"), "{}")
    await unit_of(store).add_attempt(attempt("A2", network="vod", outcome=Outcome.FAILED), "")

    await require_networks_of_open_attempts(store, {"mtn": ...})
    with pytest.raises(NetworkConfigError, match=r"networks\.mtn: 1 attempts at it are open"):
        await require_networks_of_open_attempts(store, {})


@pytest.mark.decision("D39")
async def test_the_start_moves_up_a_query_that_a_network_put_off_for_decades(
    start_sandbox: StartSandbox, tmp_path: Path
) -> None:
    """A release before this one kept the year 2099 of a `Retry-After`."""
    path, late = tmp_path / "state.sqlite3", NOW + timedelta(days=365 * 73)
    kept = attempt("A1", network="staging", next_ask_at=late)

    async def work(unit: Unit) -> None:
        await unit.add_attempt(kept, "{}")
        await unit.add_job(Job(late, JobKind.ASK_NETWORK, kept.service_id, kept.id))

    async with opened(path) as store:
        await store.run(work)

    sandbox = await start_sandbox(
        production=True, store=f"sqlite:{path}", credentials=[LIVE], networks=STAGING
    )

    shown = await only(sandbox, "attempts")
    assert shown["next_ask_at"] == iso(NOW + timedelta(hours=1))


ACCOUNTS: dict[str, dict[str, Any]] = {
    "upstream": {"client_key": "k", "secret_key": "s"},
    "mtn_momo": {
        "target_environment": "mtnghana",
        "collection_subscription_key": "s",
        "collection_api_user": "u",
        "collection_api_key": "k",
    },
    "http_json": {
        "operations": ["collect"],
        "submit": {
            "path": "/pay",
            "json": {"id": "{reference}", "sum": "{amount}"},
            "fields": {"outcome": "state"},
            "outcomes": {"NEW": "pending"},
        },
        "status": {"path": "/pay/{reference}"},
    },
}


def at(adapter: str, url: str, **more: Any) -> dict[str, Any]:
    return {"networks": {"one": {"adapter": adapter, **ACCOUNTS[adapter], "base_url": url, **more}}}


@pytest.mark.parametrize("adapter", ACCOUNTS)
@pytest.mark.parametrize(
    "host", ["api.example", "10.0.0.7:8080", "[2001:db8::1]", "[2002:7f00:1::]"]
)
def test_plain_http_to_a_network_beyond_loopback_is_refused(adapter: str, host: str) -> None:
    with pytest.raises(ConfigError) as refused:
        production(**at(adapter, f"http://{host}/api"))

    assert str(refused.value).startswith("networks.one (from test): the network: base_url: ")
    assert "base_url: is plain HTTP to a host that is not loopback" in str(refused.value)
    assert "write https://, or set allow_plain_http = true" in str(refused.value)


@pytest.mark.parametrize("adapter", ACCOUNTS)
def test_plain_http_is_accepted_on_loopback_and_with_allow_plain_http(adapter: str) -> None:
    for host in ("localhost", "127.0.0.9:80", "[::1]:8080", "[::ffff:127.0.0.1]", "0.0.0.0:81"):
        production(**at(adapter, f"http://{host}"))
    production(**at(adapter, "https://api.example"))
    production(**at(adapter, "http://momo:8080", allow_plain_http=True))
    production(**at(adapter, "http://momo:8080", allow_plain_http="true"))


def test_plain_http_is_refused_for_status_queries_too() -> None:
    with pytest.raises(ConfigError, match="status_base_url: is plain HTTP"):
        production(**at("http_json", "https://a.example", status_base_url="http://b.example"))
