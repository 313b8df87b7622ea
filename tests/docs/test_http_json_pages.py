"""docs/networks/http_json.md, paystack.md and hubtel.md: commands with fakes, and tables."""

import json
import re
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
from sandbox_sim.networks.settings import AdapterSettings
from tests.docs.page_reader import reading
from tests.docs.pages import Page, code

HTTP_JSON = Page("docs/networks/http_json.md")


@pytest.mark.timeout(180)  # the start of three processes
@pytest.mark.decision("D39")
@pytest.mark.parametrize(
    ("name", "port", "expected"),
    [
        ("paystack", "8301", {"K3001": "000", "K3002": "001"}),
        ("hubtel", "8302", {"H4001": "000"}),
    ],
)
def test_the_page_leads_from_nothing_to_a_charge(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    port: str,
    expected: dict[str, str],
) -> None:
    if name == "paystack":  # the page waits five seconds until it asks
        monkeypatch.setenv("SANDBOX_SIM_NETWORKS__PAYSTACK__POLL_AFTER_S", "0.5")
    page = Page(f"docs/networks/{name}.md")
    configuration = page.path.with_name(f"{name}.toml").read_text("utf-8")

    with reading(tmp_path, monkeypatch, port) as reader:
        reader.save(f"{name}.toml", configuration)
        statuses = reader.follow(page.commands())

    assert statuses == expected


def written(model: type[AdapterSettings]) -> set[str]:
    """The names of the fields as a configuration has them."""
    return {field.alias or name for name, field in model.model_fields.items()}


def defaults(title: str) -> dict[str, str]:
    """The names in the first column of a table, each with what the second one says."""
    rows = HTTP_JSON.table(title)
    return {code(name.strip()): row[1] for row in rows for name in row[0].split(",")}


def test_every_setting_is_in_the_table_with_its_default() -> None:
    shown = defaults("Settings")

    assert set(shown) == HttpJsonSettings.model_fields.keys()
    assert (
        json.loads(code(shown["currencies"])) == HttpJsonSettings.model_fields["currencies"].default
    )
    assert code(shown["auth"]) == HttpJsonSettings.model_fields["auth"].default


def test_every_field_of_a_table_is_in_its_table() -> None:
    submit, status = set(defaults("submit")), set(defaults("status"))

    assert submit == written(SubmitTable)
    assert status <= written(StatusTable)
    assert submit | status == written(StatusTable)
    assert set(defaults("notification")) == written(NotificationTable)
    assert set(defaults("Fields")) == written(FieldsTable)
    for name in ("algorithm", "encoding"):
        assert code(defaults("notification")[name]) == NotificationTable.model_fields[name].default


def test_every_placeholder_is_in_the_table() -> None:
    places: dict[str, set[str]] = {"": set(), "yes": set(), "only": set()}
    for names, where, _ in HTTP_JSON.table("Placeholders"):
        places[where] |= set(re.findall(r"\w+", names))

    assert places[""] | places["yes"] == IN_SUBMIT
    assert places["yes"] | places["only"] == IN_STATUS


def test_the_codes_of_a_refusal_are_those_of_the_table() -> None:
    (row,) = (row for row in HTTP_JSON.table("Outcomes") if "refused" in row[0])

    assert set(re.findall(r"[0-9S][0-9]{2,3}", row[2])) == set(REFUSAL_CODES)
