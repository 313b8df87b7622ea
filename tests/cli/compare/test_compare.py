"""`sandbox-sim compare` against a second sandbox gateway, with the same and with other settings."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sandbox_sim.cli import main
from sandbox_sim.cli.compare import cases
from sandbox_sim.testing.service_gateway import send
from tests.cli.compare.others import AT_ONCE, other_gateway
from tests.cli.processes import ended

# Each setting that `compare` knows changes some of them; no setting changes the others. The search
# for settings sends all cases some twenty times.
A_QUARTER_OF_THE_CASES = {
    "01-collection-declined",
    "01-collection-duplicate",
    "01-collection-number-international",
    "01-collection-number-not-allowed",
    "01-collection-prefix-of-another-network",
    "01-collection-success",
    "02-card-production-code",
    "02-card-success",
    "05-bill-phone-number",
    "05-bill-success",
    "06-airtime-number-not-allowed",
    "06-airtime-success",
    "07-status-failed",
    "07-status-other-service",
    "07-status-successful",
    "08-balance-live",
    "08-balance-success",
    "09-sms-number-not-allowed",
    "09-sms-success",
    "10-bulk-success",
    "11-history-sent",
    "12-sms-balance-success",
}


def only(monkeypatch: pytest.MonkeyPatch, names: set[str]) -> None:
    """Compare only these cases."""
    chosen = [case for case in cases.load() if case.name in names]
    assert len(chosen) == len(names)
    monkeypatch.setattr(cases, "load", lambda: chosen)


@pytest.fixture
def _fewer_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, A_QUARTER_OF_THE_CASES)


def compare(*words: str) -> Result:
    return CliRunner().invoke(main, ["compare", *words])


def test_a_gateway_with_equal_settings_does_not_differ() -> None:
    with other_gateway() as other:
        url = other.url
        result = compare(url)

    assert (result.exit_code, result.stderr) == (0, ""), result.stdout or result.exception
    assert result.stdout.splitlines()[0] == f"{url}: 82 cases compared"
    assert "07-status-expired: it takes 15 minutes" in result.stdout
    assert result.stdout.endswith("\nno difference\n")


@pytest.mark.usefixtures("_fewer_cases")
@pytest.mark.decision("D7", "D11", "D14", "D20", "D21", "D22", "D27", "D29")
@pytest.mark.parametrize(
    "settings",
    [
        {
            "sandbox_reject_status": 400,
            "callback_profile": "flat",
            "accept_international": True,
            "sms_initial_units": 300,
        },
        {
            "duplicates": "reject",
            "balances": "live",
            "sign_callbacks": False,
            "sandbox_card_entry": True,
        },
        {"allowed_prefixes": ["0244", "0200", "0270", "0540"], "match_network": True},
    ],
    ids="-".join,
)
def test_exactly_the_settings_that_differ_are_named(settings: dict[str, Any]) -> None:
    with other_gateway(**settings) as other:
        result = compare(other.url, "--json")

    report = json.loads(result.stdout)
    assert (result.exit_code, report["agrees"]) == (1, False)
    assert report["settings"] == settings
    assert {each["setting"] for each in report["differences"]} == set(settings)
    assert all(each["rules"] for each in report["differences"])


@pytest.mark.usefixtures("_fewer_cases")
def test_settings_given_by_set_make_both_sides_agree() -> None:
    with other_gateway(callback_profile="event") as other:
        result = compare(other.url, "--set", "callback_profile=event")

    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "no difference")


PRODUCTION = """
production = true
credentials = [{{ client_key = "shop", secret_key = "shop-secret", mode = "P" }}]
routes = [{{ network = "sms" }}]

[networks.sms]
adapter = "smpp"
host = "127.0.0.1"
port = {}
system_id = "me"
password = "pw"
"""


@pytest.mark.usefixtures("_fewer_cases")
def test_a_configuration_of_production_is_compared_in_sandbox_and_its_networks_are_not_opened(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as network, other_gateway() as other:
        network.setblocking(False)
        file = tmp_path / "production.toml"
        file.write_text(PRODUCTION.format(network.getsockname()[1]), "utf-8")

        result = compare(other.url, "--config", str(file))

        assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "no difference")
        with pytest.raises(BlockingIOError):
            network.accept()


def test_the_log_of_the_inner_gateways_is_not_shown() -> None:
    fewer = (
        "from sandbox_sim.cli.compare import cases; every = cases.load(); "
        f"cases.load = lambda: [each for each in every if each.name in {A_QUARTER_OF_THE_CASES}]"
    )
    with other_gateway() as other:
        result = ended("compare", other.url, before=fewer)

    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.usefixtures("_fewer_cases")
def test_a_difference_that_no_setting_changes_is_reported_as_such() -> None:
    with other_gateway() as other:
        other_code = {"response_code": "402"}
        body = {"match": {"operation": "airtime"}, "outcome": other_code}
        send("POST", f"{other.url}/_sandbox/overrides", body, None)
        result = compare(other.url, "--json")
        last = compare(other.url).stdout.splitlines()[-1]

    assert last.endswith("; no setting of sandbox_sim changes this")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["settings"]) == (1, {})
    assert {each["setting"] for each in report["differences"]} == {None}
    assert {each["case"][:2] for each in report["differences"]} == {"06"}


@pytest.mark.usefixtures("_fewer_cases")
def test_given_services_and_credentials_are_used() -> None:
    pair = {"client_key": "shop", "secret_key": "canary", "service_ids": [701, 702, 709]}
    with other_gateway(credentials=[pair]) as other:
        ids = ("--service-id", "701", "--service-id", "702", "--service-id", "709")
        result = compare(other.url, "--client-key", "shop", "--secret-key", "canary", *ids)

    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "no difference")
    assert "canary" not in result.output


def test_the_callback_of_the_second_payment_may_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, {"01-collection-duplicate", "12-sms-balance-success"})
    with other_gateway() as other:
        for delay_ms in (1, 100):
            late = {"callback": {"delay_ms": delay_ms}, "times": 1}
            body = {"match": {"operation": "collect"}, **late}
            send("POST", f"{other.url}/_sandbox/overrides", body, None)
        result = compare(other.url)

    assert (result.exit_code, result.stderr) == (0, ""), result.stdout or result.exception


class TestSlowSide:
    """Card pages of the other side stay open without a callback, and each status stays pending."""

    @pytest.fixture
    def url(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
        slow = {"02-card-success", "07-status-successful"}
        only(monkeypatch, slow | {"12-sms-balance-success"})
        with other_gateway(card_auto_complete_ms=0, settle_delay_ms=3_600_000) as other:
            yield other.url

    def test_open_cases_are_not_compared_if_ours_takes_longer_than_the_timeout(
        self, url: str
    ) -> None:
        result = compare(url, "--timeout", "0.2")

        assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "no difference")
        assert (
            "2 cases (02-card-success, 07-status-successful): the other side did not end them "
            "within 0.2 s, and ours takes up to 3 s; use a longer --timeout"
        ) in result.stdout

    def test_open_cases_differ_if_the_other_side_had_as_long_as_ours(self, url: str) -> None:
        quick = (f"--set={name}={value}" for name, value in AT_ONCE.items())
        result = compare(url, "--timeout", "0.2", *quick, "--json")

        report = json.loads(result.stdout)
        found = {(each["case"], each["part"], each["field"]) for each in report["differences"]}
        assert result.exit_code == 1
        assert ("02-card-success", "callback", "deliveries") in found
        assert ("07-status-successful", "later", "response_data.status") in found
        assert report["not_compared"] == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("not an address",), "is not a valid address"),
        (("http://127.0.0.1:9", "--set", "nothing=1"), "there is no such setting"),
    ],
)
def test_an_invalid_address_or_setting_exits_2(words: tuple[str, ...], says: str) -> None:
    result = compare(*words)

    assert result.exit_code == 2
    assert says in result.stderr


def test_an_unreachable_side_exits_2_with_the_reason() -> None:
    result = compare("http://127.0.0.1:9")

    assert result.exit_code == 2
    assert result.stderr == (
        "http://127.0.0.1:9/get_account_balance cannot be reached: Connection refused\n"
    )


def test_a_port_that_is_taken_exits_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = compare("http://127.0.0.1:9", "--port", str(port))

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"--port {port}: Address already in use; end what listens there, or choose another port\n"
    )


def test_refused_credentials_exit_2() -> None:
    with other_gateway() as other:
        result = compare(other.url, "--secret-key", "another")

    assert result.exit_code == 2
    assert "refuses the credentials" in result.stderr
