"""docs/networks/alerts.md: its metrics are those of /_sandbox/metrics; its rules are complete."""

import re
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from sandbox_sim.records.callbacks import DeliveryState
from sandbox_sim.records.exchanges import NotificationState
from sandbox_sim.records.reports import Outcome
from sandbox_sim.values.response_codes import CATALOGUE
from tests.conftest import Sandbox, StartSandbox
from tests.docs.pages import Page, code
from tests.production.client import live
from tests.production.settings import STAGING
from tests.web.control_api import DEAD

pytestmark = pytest.mark.decision("D39")

PAGE = Page("docs/networks/alerts.md")
RULES = "sandbox_sim.rules.yml"
METRIC = re.compile(r"\bsandbox_sim_[a-z_]+\b(?!\.)")


def rules() -> list[dict[str, Any]]:
    """The rules that the page links."""
    (group,) = yaml.safe_load((PAGE.path.parent / RULES).read_text("utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


@pytest.fixture
async def production(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway with a network that has a payment, and with an attempt at its callback."""
    sandbox = await live(start_sandbox, STAGING)
    assert (await sandbox.collect(callback_url=DEAD)).code == "202"
    while "sandbox_sim_callback_attempts_total" not in await served_metrics(sandbox):
        await sandbox.advance(seconds=1)
    return sandbox


async def served_metrics(sandbox: Sandbox) -> dict[str, set[str]]:
    """The names of the metrics that are served, each with its labels."""
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/metrics") as answer:
        assert answer.status == 200
        families = list(text_string_to_metric_families(await answer.text()))
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


async def test_every_metric_is_in_the_table_with_its_labels(production: Sandbox) -> None:
    rows = PAGE.table("Metrics")

    shown = {code(name): set(re.findall(r"`(\w+)`", labels)) for name, labels, *_ in rows}
    assert shown == await served_metrics(production)


async def test_every_metric_of_a_rule_is_served(production: Sandbox) -> None:
    metrics = await served_metrics(production)

    for rule in rules():
        named = set(METRIC.findall(rule["expr"]))
        assert named <= metrics.keys(), rule["alert"]
        assert named or "up{" in rule["expr"]
        labels = set(re.findall(r"(?<=by \()\w+|(?<=\$labels\.)\w+", str(rule)))
        for name in named:
            assert labels <= metrics[name], rule["alert"]


@pytest.mark.parametrize(
    ("metric", "label", "values"),
    [
        ("network_submits_total", "outcome", set(Outcome)),
        (
            "callback_attempts_total",
            "state",
            {DeliveryState.DELIVERED, DeliveryState.RETRYING, DeliveryState.FAILED},
        ),
        ("network_notifications_kept", "state", set(NotificationState)),
    ],
)
def test_the_values_of_a_label_are_those_of_the_code(
    metric: str, label: str, values: set[str]
) -> None:
    (row,) = (row for row in PAGE.table("Metrics") if row[0] == f"`sandbox_sim_{metric}`")

    assert set(re.findall(rf'{metric}{{[^}}]*{label}="(\w+)"', PAGE.text)) <= values
    assert set(re.findall(r"`(\w+)`", row[2])) == values


def test_the_codes_of_the_rules_are_response_codes() -> None:
    assert set(re.findall(r'code="(\w+)"', PAGE.text)) <= CATALOGUE.keys()


def test_every_rule_has_what_prometheus_needs_and_says_what_to_do() -> None:
    for rule in rules():
        assert rule.keys() <= {"alert", "expr", "for", "annotations"}, rule["alert"]
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert rule["annotations"]["summary"].endswith(".")

    named = {code(name.strip()) for row in PAGE.table("What to do") for name in row[0].split(",")}
    assert named <= {rule["alert"] for rule in rules()}


def test_the_scrape_configuration_reads_the_metrics_and_the_rules() -> None:
    (scrape,) = map(yaml.safe_load, PAGE.blocks("yaml"))

    assert scrape["rule_files"] == [RULES]
    assert RULES in PAGE.links
    (job,) = scrape["scrape_configs"]
    assert job["metrics_path"] == "/_sandbox/metrics"
    assert f'job="{job["job_name"]}"' in rules()[0]["expr"]
