"""docs/production.md and docs/networks/upstream.md, typed: real servers, files and payments."""

from pathlib import Path

import pytest

from sandbox_sim.settings.networks import NetworkTable
from tests.docs.page_reader import reading
from tests.docs.pages import Page, code

PRODUCTION, UPSTREAM = Page("docs/production.md"), Page("docs/networks/upstream.md")


@pytest.mark.timeout(120)  # six starts of a process
@pytest.mark.decision("D32", "D39")
@pytest.mark.parametrize(
    ("page", "files", "paid"),
    [
        (PRODUCTION, ["production.toml"], ["P1001"]),
        (UPSTREAM, ["account.toml", "replay.toml"], ["P1002", "P1003"]),
    ],
    ids=str,
)
def test_the_page_leads_from_nothing_to_payments(
    page: Page, files: list[str], paid: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBOX_SIM_SETTLE_DELAY_MS", "100")
    with reading(tmp_path, monkeypatch) as reader:
        for name, text in zip(files, page.blocks("toml"), strict=False):
            reader.save(name, text)
        statuses = reader.follow(page.commands())

    assert statuses == dict.fromkeys(paid, "000")
    recorded = [file.read_text("utf-8") for file in tmp_path.glob("recorded/*")]
    assert len(recorded) == len(paid) - 1
    assert not any("P1002" in text for text in recorded)


def test_the_settings_of_every_network_are_in_the_table() -> None:
    shown = {code(row[0]): row[1] for row in PRODUCTION.table("Settings of every network")}

    shared = {name: str(field.default) for name, field in NetworkTable.model_fields.items()}
    del shared["adapter"]
    assert shown == shared
