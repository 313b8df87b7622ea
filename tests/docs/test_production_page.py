"""docs/production.md, from its first command to its last: real servers, files and payments."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.page_reader import Reader, reading
from tests.docs.pages import Page

PAGE = Page("docs/production.md")
# The files in the order in which the page shows them; the last one is a part of a file.
FILES = ("production.toml", "account.toml", "replay.toml", None)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    with reading(tmp_path, monkeypatch) as reader:
        for name, text in zip(FILES, PAGE.blocks("toml"), strict=True):
            if name is not None:
                reader.save(name, text)
        yield reader


@pytest.mark.timeout(120)  # six starts of a process
@pytest.mark.decision("D32", "D39")
def test_the_page_leads_from_nothing_to_payments(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBOX_SIM_SETTLE_DELAY_MS", "100")
    records = reader.follow(PAGE.commands())

    statuses = [(record["transaction_id"], record["status"]) for record in records]
    paid = [f"P100{number}" for number in range(1, 4)]
    assert statuses == [(transaction_id, "000") for transaction_id in paid]
    (cassette,) = (reader.folder / "recorded").iterdir()
    assert cassette.name == "0001-payment.json"
    assert "P1002" not in cassette.read_text("utf-8")
