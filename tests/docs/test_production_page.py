"""docs/production.md, from its first command to its last: real servers, files and payments."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.page_reader import Reader, reading
from tests.docs.pages import Page
from tests.networks.smpp.node_smsc import node_modules

PAGE = Page("docs/production.md")
# The files in the order in which the page shows them; the last one is a part of a file.
FILES = ("production.toml", "account.toml", "replay.toml", None)
# A section that needs Node.js.
TEXTING = "An SMS over SMPP"
OF_OTHER_PAGES = {
    "momo.toml": "docs/networks/mtn_momo.md",
    "paystack.toml": "docs/networks/paystack.md",
    "smpp.toml": "docs/networks/smpp.md",
}


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    with reading(tmp_path, monkeypatch, "8300", "8301", "2775") as reader:
        own = zip(FILES, PAGE.blocks("toml"), strict=True)
        others = [(name, Page(page).blocks("toml")[0]) for name, page in OF_OTHER_PAGES.items()]
        for name, text in (*own, *others):
            if name is not None:
                reader.save(name, text)
        yield reader


@pytest.mark.timeout(180)  # nine starts of a process
@pytest.mark.decision("D32", "D39")
def test_the_page_leads_from_nothing_to_payments_through_each_network(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBOX_SIM_SETTLE_DELAY_MS", "100")
    texting = PAGE.commands(TEXTING)

    records = reader.follow(each for each in PAGE.commands() if each not in texting)

    statuses = [(record["transaction_id"], record["status"]) for record in records]
    paid = [f"P100{number}" for number in range(1, 8)]
    assert statuses == [(transaction_id, "000") for transaction_id in paid]
    (cassette,) = (reader.folder / "recorded").iterdir()
    assert cassette.name == "0001-payment.json"
    assert "P1002" not in cassette.read_text("utf-8")


@pytest.mark.timeout(120)  # five starts of a process
@pytest.mark.decision("D32", "D39")
def test_the_page_leads_from_nothing_to_an_sms(
    reader: Reader, request: pytest.FixtureRequest
) -> None:
    node_modules(request.config)  # skips where there is no npm

    *_, waited = commands = PAGE.commands(TEXTING)
    reader.follow(commands)

    assert waited.output is not None
    assert "SENT" in waited.output
