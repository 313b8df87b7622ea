"""docs/networks/smpp.md: its commands with the SMSC of others, and its tables."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox_sim.networks.smpp import pdus
from sandbox_sim.networks.smpp.settings import AddressType, ReceiptIds, SmppSettings
from tests.docs.page_reader import Reader, reading
from tests.docs.pages import Page, code
from tests.networks.smpp.node_smsc import PACKAGE, node_modules

PAGE = Page("docs/networks/smpp.md")


@pytest.fixture
def reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Reader]:
    node_modules(request.config)  # skips where there is no npm
    with reading(tmp_path, monkeypatch, "2775") as reader:
        reader.save("smpp.toml", PAGE.path.with_name("smpp.toml").read_text("utf-8"))
        (statement,) = PAGE.blocks("csv")
        reader.save("statement.csv", statement)
        yield reader


@pytest.mark.timeout(180)  # the start of ten processes
@pytest.mark.decision("D39")
def test_the_page_leads_from_nothing_to_messages_that_are_sent_and_refunded(
    reader: Reader,
) -> None:
    assert PAGE.commands()[0].words[-1] == PACKAGE  # the version of the other tests

    reader.follow(PAGE.commands())

    (balance,) = (each for each in PAGE.commands() if "ledger show" in " ".join(each.words))
    assert re.search(r"^55 +sms +17 ", reader.run(balance), re.MULTILINE)


def test_the_settings_are_all_there_with_their_defaults() -> None:
    settings: dict[str, str] = {}
    for names, default, *_ in PAGE.table("Settings"):
        each = [code(name.strip()) for name in names.split(",")]
        defaults = default.split(",") if default else [""] * len(each)
        settings.update(zip(each, (code(value.strip()) for value in defaults), strict=True))
    own = SmppSettings.model_fields

    assert settings.keys() == own.keys()
    for name, default in settings.items():
        field = own[name]
        if default:
            shown = str(field.default).lower()
            assert default == shown, name
        else:
            assert field.is_required() or not str(field.default).strip("*"), name


def test_the_words_of_the_settings_and_the_statuses_exist() -> None:
    (kinds,) = (row[2] for row in PAGE.table("Settings") if "source_address_type" in row[0])
    (forms,) = (row for row in PAGE.table("Settings") if "receipt_ids" in row[0])

    assert all(f"`{kind}`" in kinds for kind in AddressType)
    assert all(f"`{form}`" in forms[1] + forms[2] for form in ReceiptIds)
    rows = [row[0] for row in PAGE.table("What the SMSC answers")]
    for name in pdus.THROTTLED:
        assert any(name in row for row in rows)
    assert "ESME_RINVDSTADR" in pdus.REFUSALS
    assert "ESME_RSYSERR" not in pdus.REFUSALS
