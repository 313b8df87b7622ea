"""docs/networks: a page for each adapter, with its settings and its codes."""

import json
import re
import tomllib

import pytest

from sandbox_sim.networks.settings import AdapterSettings
from sandbox_sim.networks.simulated.adapter import Notify, SimulatedSettings, SubmitFailure
from sandbox_sim.networks.upstream.adapter import UpstreamSettings
from sandbox_sim.networks.upstream.wire import _REFUSALS, _TAKEN
from sandbox_sim.settings.networks import ENTRY_POINTS
from tests.docs.pages import ROOT, Page, Row, code

SIMULATED, UPSTREAM = Page("docs/networks/simulated.md"), Page("docs/networks/upstream.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ADAPTERS = list(PROJECT["entry-points"][ENTRY_POINTS])
# The sections that every page has.
SECTIONS = {"Settings", "When no answer comes", "Reconcile"}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_each_adapter_has_a_page_that_production_links(adapter: str) -> None:
    page = Page(f"docs/networks/{adapter}.md")

    headings = set(re.findall(r"^## (.+)$", page.prose, re.MULTILINE))
    assert headings >= SECTIONS, SECTIONS - headings
    assert f"`{adapter}`" in page.prose
    assert f"networks/{adapter}.md" in Page("docs/production.md").links


@pytest.mark.parametrize(
    ("page", "model"), [(SIMULATED, SimulatedSettings), (UPSTREAM, UpstreamSettings)], ids=str
)
def test_every_setting_is_in_the_table_with_its_default(
    page: Page, model: type[AdapterSettings]
) -> None:
    rows = {code(name.strip()): row for row in page.table("Settings") for name in row[0].split(",")}

    assert set(rows) == model.model_fields.keys()
    for name, field in model.model_fields.items():
        shown = code(rows[name][1])
        if shown and "," not in shown:
            assert shown == _shown(field.default), name


def _shown(default: object) -> str:
    if default is None:
        return "unset"
    return default if isinstance(default, str) else json.dumps(default)


def test_the_words_of_the_simulated_network_are_those_of_the_page() -> None:
    rows = SIMULATED.table("When no answer comes")
    (notify,) = (row for row in SIMULATED.table("Settings") if "notify`" in row[0])

    assert [code(row[0]) for row in rows] == list(SubmitFailure)
    assert set(re.findall(r"`(\w+)`", notify[2])) == set(Notify)


def test_the_codes_of_another_gateway_mean_what_the_page_says() -> None:
    rows = UPSTREAM.table("What the client gets")

    taken, refused, ours, duplicate, _ = (codes(row) for row in rows)

    assert taken == set(_TAKEN)
    assert refused == {code for code, client_gets in _REFUSALS.items() if client_gets == code}
    assert ours == {code for code, client_gets in _REFUSALS.items() if client_gets != code}
    assert duplicate == {"219"}


def codes(row: Row) -> set[str]:
    """The response codes in the first cell of a row."""
    return set(re.findall(r"\b(?:[0-9]{3}|S[0-9]{3})\b", row[0]))
