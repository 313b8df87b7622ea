"""docs/networks/mtn_momo.md: its commands with a fake MTN server, and its tables."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox_sim.networks.mtn_momo.messages import FAILURE_REASONS
from sandbox_sim.networks.mtn_momo.settings import MtnMomoSettings
from tests.docs.page_reader import Reader, reading
from tests.docs.pages import Page, code

PAGE = Page("docs/networks/mtn_momo.md")


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    with reading(tmp_path, monkeypatch, "8300") as reader:
        reader.save("momo.toml", PAGE.path.with_name("momo.toml").read_text("utf-8"))
        (statement,) = PAGE.blocks("csv")
        reader.save("statement.csv", statement)
        yield reader


@pytest.mark.timeout(180)  # the start of seven processes
@pytest.mark.decision("D39")
def test_the_page_leads_from_nothing_to_a_collection_a_payout_and_a_failure(
    reader: Reader,
) -> None:
    statuses = reader.follow(PAGE.commands())

    assert statuses == {"M2001": "000", "M2002": "000", "M2003": "000", "M2004": "001"}


def test_the_settings_are_all_there_with_their_defaults() -> None:
    rows = {name.strip(): row[1] for row in PAGE.table("Settings") for name in row[0].split(",")}
    settings = {code(name): default.replace("`", "") for name, default in rows.items()}
    own = MtnMomoSettings.model_fields

    assert own.keys() == settings.keys()
    assert settings["currency"] == own["currency"].default
    assert settings["callback"] == json.dumps(own["callback"].default)


def test_the_reason_of_the_page_means_what_it_says() -> None:
    reason, meaning = re.findall(r"`([A-Z_]+): ([^`]+)`", PAGE.section("Why a payment failed"))[0]

    assert FAILURE_REASONS[reason] == meaning
