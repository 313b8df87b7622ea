"""docs/production.md and docs/networks: their commands with fake networks, settings and words."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from sandbox_sim.networks.http_json.settings import (
    REFUSAL_CODES,
    FieldsTable,
    HttpJsonSettings,
    NotificationTable,
    StatusTable,
    SubmitTable,
)
from sandbox_sim.networks.http_json.templates import IN_STATUS, IN_SUBMIT
from sandbox_sim.networks.mtn_momo.messages import FAILURE_REASONS
from sandbox_sim.networks.mtn_momo.settings import MtnMomoSettings
from sandbox_sim.networks.settings import AdapterSettings
from sandbox_sim.networks.simulated.adapter import Notify, SimulatedSettings, SubmitFailure
from sandbox_sim.networks.smpp import pdus
from sandbox_sim.networks.smpp.settings import AddressType, ReceiptIds, SmppSettings
from sandbox_sim.networks.upstream.adapter import UpstreamSettings
from sandbox_sim.networks.upstream.wire import _REFUSALS, _TAKEN
from sandbox_sim.settings.networks import ENTRY_POINTS, NetworkTable
from tests.docs.page_reader import reading
from tests.docs.pages import ROOT, Page, Row, code
from tests.networks.smpp.node_smsc import PACKAGE, node_modules

PRODUCTION, SMPP = Page("docs/production.md"), Page("docs/networks/smpp.md")
HTTP_JSON, MTN_MOMO = Page("docs/networks/http_json.md"), Page("docs/networks/mtn_momo.md")
SIMULATED, UPSTREAM = Page("docs/networks/simulated.md"), Page("docs/networks/upstream.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ADAPTERS = list(PROJECT["entry-points"][ENTRY_POINTS])
# The sections that every page has.
SECTIONS = {"Settings", "When no answer comes", "Reconcile"}


@pytest.mark.timeout(180)  # the start of up to ten processes
@pytest.mark.decision("D32", "D39")
@pytest.mark.parametrize(
    ("page", "port", "files", "statuses"),
    [
        (PRODUCTION, "8234", ["production.toml"], {"P1001": "000"}),
        (UPSTREAM, "8234", ["account.toml", "replay.toml"], {"P1002": "000", "P1003": "000"}),
        (MTN_MOMO, "8300", ["momo.toml"], {"M2001": "000", "M2002": "000", "M2003": "000"}),
        (Page("docs/networks/paystack.md"), "8301", ["paystack.toml"], {"K3001": "000"}),
        (Page("docs/networks/hubtel.md"), "8302", ["hubtel.toml"], {"H4001": "000"}),
        (SMPP, "2775", ["smpp.toml"], {}),
    ],
    ids=["production", "upstream", "mtn_momo", "paystack", "hubtel", "smpp"],
)
def test_the_page_leads_from_nothing_to_payments_or_messages(
    page: Page,
    port: str,
    files: list[str],
    statuses: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    failed = {MTN_MOMO.name: {"M2004": "001"}, "docs/networks/paystack.md": {"K3002": "001"}}
    monkeypatch.setenv("SANDBOX_SIM_SETTLE_DELAY_MS", "100")
    if "paystack.toml" in files:  # the page waits five seconds until it asks
        monkeypatch.setenv("SANDBOX_SIM_NETWORKS__PAYSTACK__POLL_AFTER_S", "0.5")
    if page is SMPP:
        node_modules(request.config)  # skips where there is no npm
        assert page.commands()[0].words[-1] == PACKAGE  # the version of the other tests

    with reading(tmp_path, monkeypatch, port) as reader:
        for number, name in enumerate(files):
            copied = page.path.with_name(name)
            is_there = copied.exists()
            reader.save(
                name, copied.read_text("utf-8") if is_there else page.blocks("toml")[number]
            )
        for text in page.blocks("csv"):
            reader.save("statement.csv", text)
        found = reader.follow(page.commands())
        if page is SMPP:
            (balance,) = (each for each in page.commands() if "ledger show" in " ".join(each.words))
            assert re.search(r"^55 +sms +17 ", reader.run(balance), re.MULTILINE)

    assert found == statuses | failed.get(page.name, {})
    recorded = [file.read_text("utf-8") for file in tmp_path.glob("recorded/*")]
    assert len(recorded) == (page is UPSTREAM)
    assert not any("P1002" in text for text in recorded)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_each_adapter_has_a_page_that_production_links(adapter: str) -> None:
    page = Page(f"docs/networks/{adapter}.md")

    headings = set(re.findall(r"^## (.+)$", page.prose, re.MULTILINE))
    assert headings >= SECTIONS, SECTIONS - headings
    assert f"`{adapter}`" in page.prose
    assert f"networks/{adapter}.md" in PRODUCTION.links


def defaults(page: Page, title: str) -> dict[str, str]:
    """The names in the first column of a table, each with its default in the second one."""
    found: dict[str, str] = {}
    for names, default, *_ in page.table(title):
        each = [code(name.strip()) for name in names.split(",")]
        shown = [code(value.strip()) for value in default.split(",")]
        found |= zip(each, shown if len(shown) == len(each) else [default] * len(each), strict=True)
    return found


@pytest.mark.parametrize(
    ("page", "model"),
    [
        (HTTP_JSON, HttpJsonSettings),
        (MTN_MOMO, MtnMomoSettings),
        (SIMULATED, SimulatedSettings),
        (SMPP, SmppSettings),
        (UPSTREAM, UpstreamSettings),
    ],
    ids=str,
)
def test_every_setting_is_in_the_table_with_its_default(
    page: Page, model: type[AdapterSettings]
) -> None:
    # These have another setting or words in place of a default.
    in_words = {"status_base_url": "base_url", "signature_key": "auth_secret", "nws": "every one"}
    shown = defaults(page, "Settings")

    assert shown.keys() == model.model_fields.keys()
    for name, default in shown.items():
        field = model.model_fields[name]
        own = field.default
        if default and page is HTTP_JSON and name in in_words:
            assert default == in_words[name]
        elif default:
            texts = {str(own), str(own).lower(), json.dumps(own, default=str)}
            assert default in (texts | {"unset"} if own is None else texts), name
        else:
            assert field.is_required() or own is None or not str(own), name


def test_the_settings_of_every_network_are_in_the_table() -> None:
    shared = {name: str(field.default) for name, field in NetworkTable.model_fields.items()}
    del shared["adapter"]
    assert defaults(PRODUCTION, "Settings of every network") == shared


def test_the_words_of_the_simulated_network_are_those_of_the_page() -> None:
    rows = SIMULATED.table("When no answer comes")
    (notify,) = (row for row in SIMULATED.table("Settings") if "notify`" in row[0])

    assert [code(row[0]) for row in rows] == list(SubmitFailure)
    assert set(re.findall(r"`(\w+)`", notify[2])) == set(Notify)


def test_the_words_and_statuses_of_smpp_are_those_of_the_page() -> None:
    (kinds,) = (row[2] for row in SMPP.table("Settings") if "source_address_type" in row[0])
    (forms,) = (row for row in SMPP.table("Settings") if "receipt_ids" in row[0])

    assert all(f"`{kind}`" in kinds for kind in AddressType)
    assert all(f"`{form}`" in forms[1] + forms[2] for form in ReceiptIds)
    rows = [row[0] for row in SMPP.table("What the SMSC answers")]
    for name in pdus.THROTTLED:
        assert any(name in row for row in rows)
    assert "ESME_RINVDSTADR" in pdus.REFUSALS
    assert "ESME_RSYSERR" not in pdus.REFUSALS


def test_the_reason_of_mtn_on_the_page_has_its_meaning_in_the_code() -> None:
    why = MTN_MOMO.section("Why a payment failed")
    reason, meaning = re.findall(r"`([A-Z_]+): ([^`]+)`", why)[0]

    assert FAILURE_REASONS[reason] == meaning


def test_the_page_of_upstream_groups_the_codes_as_the_adapter_does() -> None:
    rows = UPSTREAM.table("What the client gets")

    taken, refused, ours, duplicate, _ = (codes(row) for row in rows)

    assert taken == set(_TAKEN)
    assert refused == {code for code, client_gets in _REFUSALS.items() if client_gets == code}
    assert ours == {code for code, client_gets in _REFUSALS.items() if client_gets != code}
    assert duplicate == {"219"}


def test_a_charge_that_needs_a_voucher_is_not_in_the_tables_of_paystack() -> None:
    networks = tomllib.loads((ROOT / "docs/networks/paystack.toml").read_text("utf-8"))["networks"]

    assert set(networks["paystack"]["nws"]) == {"MTN", "AIR"}


def codes(row: Row) -> set[str]:
    """The response codes in the first cell of a row."""
    return set(re.findall(r"\b(?:[0-9]{3}|S[0-9]{3})\b", row[0]))


def written(model: type[AdapterSettings]) -> set[str]:
    """The names of the fields as a configuration has them."""
    return {field.alias or name for name, field in model.model_fields.items()}


def test_every_field_of_a_table_of_http_json_is_in_its_table() -> None:
    submit, status = set(defaults(HTTP_JSON, "submit")), set(defaults(HTTP_JSON, "status"))
    notification = defaults(HTTP_JSON, "notification")

    assert submit == written(SubmitTable)
    assert status <= written(StatusTable)
    assert submit | status == written(StatusTable)
    assert set(notification) == written(NotificationTable)
    assert set(defaults(HTTP_JSON, "Fields")) == written(FieldsTable)
    for name in ("algorithm", "encoding"):
        assert notification[name] == NotificationTable.model_fields[name].default


def test_the_placeholders_and_codes_of_http_json_are_those_of_the_tables() -> None:
    places: dict[str, set[str]] = {"": set(), "yes": set(), "only": set()}
    for names, where, _ in HTTP_JSON.table("Placeholders"):
        places[where] |= set(re.findall(r"\w+", names))
    (refused,) = (row[2] for row in HTTP_JSON.table("Outcomes") if "refused" in row[0])

    assert places[""] | places["yes"] == IN_SUBMIT
    assert places["yes"] | places["only"] == IN_STATUS
    assert set(re.findall(r"[0-9S][0-9]{2,3}", refused)) == set(REFUSAL_CODES)
