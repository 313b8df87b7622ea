"""docs/certifying.md: the Flask shop on it gets the scorecard below it, and its table is true."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from werkzeug.serving import make_server

from sandbox_sim.certify.bench import free_port
from sandbox_sim.certify.cases import CertifyCase, load
from sandbox_sim.certify.files import read
from sandbox_sim.cli import main
from tests.certify.broken_shops import SHOPS
from tests.docs.pages import Page

PAGE = Page("docs/certifying.md")
CERTIFY_TOML, CASE = PAGE.blocks("toml")
SHOP = PAGE.path.with_name("examples").joinpath("shop.py").read_text("utf-8")
(COMMAND,) = PAGE.commands()


class Shop:
    """The shop of the page on a free port, and certify.toml for it."""

    def __init__(self, folder: Path, port: int) -> None:
        names: dict[str, Any] = {"__name__": "shop"}
        exec(SHOP.replace("8233", str(port)), names)  # noqa: S102 -- the code of the page
        self.server = make_server("127.0.0.1", 0, names["app"], threaded=True)
        own = CERTIFY_TOML.replace("8000", str(self.server.port))
        (folder / "certify.toml").write_text(f"[gateway]\nport = {port}\n{own}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with certify.toml, in which the commands run; the shop runs meanwhile."""
    monkeypatch.chdir(tmp_path)
    with free_port() as port:
        shop = Shop(tmp_path, port)
        thread = threading.Thread(target=shop.server.serve_forever)
        thread.start()
        yield tmp_path
        shop.server.shutdown()
        thread.join()
        shop.server.server_close()


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["certify", *words])


def verdicts(output: str) -> list[str]:
    """The lines of the cases, without address and time."""
    return [line for line in output.splitlines() if not line.startswith("gateway at")][:-2]


@pytest.mark.timeout(120)
def test_the_shop_gets_the_scorecard_of_the_page(folder: Path) -> None:
    result = run(*COMMAND.words[2:])

    assert verdicts(result.stdout) == verdicts(COMMAND.output or "")
    assert result.exit_code == 1
    assert "<h1>Not certified</h1>" in (folder / "report.html").read_text()


def test_the_case_of_the_page_is_one(tmp_path: Path) -> None:
    (tmp_path / "callback_a_day_late.toml").write_text(CASE)

    assert read(tmp_path / "callback_a_day_late.toml", CertifyCase).steps[2].verb == "advance"
    assert "callback_a_day_late" in {case.name for case in load([tmp_path])}


def test_the_matrix_of_the_page_is_that_of_the_tests() -> None:
    rows = {row[0]: row[1] for row in PAGE.table("What the cases catch")}

    assert rows == {
        name: ", ".join(f"`{case}`" for case in sorted(shop.fails))
        for name, shop in SHOPS.items()
        if shop.fails
    }


def test_the_options_of_the_page_are_those_of_the_command() -> None:
    named = " ".join(row[0] for row in PAGE.table("Options"))

    for option in ("--case", "--cases", "--seed", "--limit", "--junit", "--html", "--json"):
        assert f"`{option}" in named
