"""docs/comparing.md: its commands work, and print the output below them."""

import pytest
from click.testing import Result

from sandbox_sim.settings.schema import Settings
from tests.cli.compare.others import other_gateway
from tests.cli.processes import in_process
from tests.docs.commands import ADDRESS, shape
from tests.docs.pages import Page

PAGE = Page("docs/comparing.md")
HERE, ACCOUNT = PAGE.commands()


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("config", "client_key", "secret_key", *Settings.model_fields):
        monkeypatch.delenv(f"SANDBOX_SIM_{name.upper()}", raising=False)


def run(words: list[str], url: str = "") -> Result:
    return in_process(*(word.replace(ADDRESS, url) for word in words[1:]))


def test_the_report_is_that_of_the_page() -> None:
    with other_gateway(duplicates="reject", match_network=True) as other:
        result = run(HERE.words, other.url)

    assert result.exit_code == 1
    assert shape(result.stdout) == shape(HERE.output or "")


def test_an_account_gets_no_request_without_yes() -> None:
    result = run(ACCOUNT.words)

    assert (result.exit_code, result.stderr) == (
        2,
        "nothing was sent; use --yes to send these requests\n",
    )
    assert "requests would go to https://gateway.example/v1:" in result.stdout
