"""docs/production.md, from its first command to its last: real servers, files and payments."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.commands import shape
from tests.docs.page_reader import Reader
from tests.docs.pages import Page

PAGE = Page("docs/production.md")
# The files in the order in which the page shows them; the last one is a part of a file.
FILES = ("production.toml", "account.toml", "replay.toml", None)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with ExitStack() as servers:
        reader = Reader(tmp_path, servers)
        for name, text in zip(FILES, PAGE.blocks("toml"), strict=True):
            if name is not None:
                (tmp_path / name).write_text(reader.here(text), "utf-8")
        yield reader


@pytest.mark.timeout(180)  # five starts of a process
@pytest.mark.decision("D32", "D39")
def test_the_page_leads_from_nothing_to_a_payment_its_recording_and_its_replay(
    reader: Reader,
) -> None:
    statuses = []
    for command in PAGE.commands():
        printed = reader.run(command)
        if command.output:
            assert shape(printed) == shape(command.output), command.words
        if "response_data" in printed:
            statuses.append(json.loads(printed)["response_data"]["status"])

    assert statuses == ["000", "000", "000"]
    (cassette,) = (reader.folder / "recorded").iterdir()
    assert cassette.name == "0001-payment.json"
    assert "P1002" not in cassette.read_text("utf-8")
