"""docs/certifying.md: the Flask shop on it gets the scorecard below it; its table is correct."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from werkzeug.serving import make_server

from sandbox_sim.certify.bench import free_port
from sandbox_sim.certify.cases import CertifyCase, load
from sandbox_sim.certify.files import read
from tests.certify.broken_shops import SHOPS
from tests.cli.processes import in_process
from tests.docs.pages import Page
from tests.requirements import missing

PAGE = Page("docs/certifying.md")
CERTIFY_TOML, AT_ONCE, CASE = PAGE.blocks("toml")
(FIXTURE,) = PAGE.blocks("python")
EXAMPLES = PAGE.path.with_name("examples")
SHOP = (EXAMPLES / "shop.py").read_text("utf-8")
NODE_SHOP = (EXAMPLES / "shop.mjs").read_text("utf-8")
# Real times of the Node shop, and those of the test, which are three times as long: on a busy
# machine an answer takes longer than the shop of the page waits. More cases at once make up for it.
NODE_TIMES = {"AbortSignal.timeout(800)": "AbortSignal.timeout(2400)", "}, 300);": "}, 900);"}
(COMMAND,) = PAGE.commands()


def certify_toml(folder: Path, shop_port: int, gateway_port: int, *changes: str) -> None:
    """Write that of the page, with the order that lets cases run at once. changes: old and new."""
    before, _, after = CERTIFY_TOML.partition("[order]")
    text = before + AT_ONCE + after[after.index("[state]") :]
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        text = text.replace(old, new)
    text = text.replace("8000", str(shop_port))
    (folder / "certify.toml").write_text(f"{text}\n[gateway]\nport = {gateway_port}\n")


class Shop:
    """The shop of the page on a free port, and certify.toml for it.

    Each order says which service it is about, so that the cases run at once.
    """

    def __init__(self, folder: Path, port: int) -> None:
        names: dict[str, Any] = {"__name__": "shop"}
        code = SHOP.replace('"service_id": 55', '"service_id": wanted["service"]')
        code = code.replace("http://127.0.0.1:8233", f"http://127.0.0.1:{port}")
        exec(code, names)  # noqa: S102 -- the code of the page
        self.server = make_server("127.0.0.1", 0, names["app"], threaded=True)
        certify_toml(folder, self.server.port, port, "[application]", "at_once = 8\n[application]")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with certify.toml, in which the commands run; the shop runs meanwhile."""
    with free_port() as port:
        shop = Shop(tmp_path, port)
        thread = threading.Thread(target=shop.server.serve_forever, args=(0.01,))
        thread.start()
        yield tmp_path
        shop.server.shutdown()
        thread.join()
        shop.server.server_close()


def run(*words: str) -> Result:
    return in_process("certify", *words)


def verdicts(output: str) -> list[str]:
    """The lines of the cases, without the address, which of them run alone, and the time."""
    others = "gateway at", "run alone"
    return [line for line in output.splitlines() if not line.startswith(others)][:-2]


@pytest.mark.timeout(120)
def test_the_shop_gets_the_scorecard_of_the_page(folder: Path) -> None:
    result = run(*COMMAND.words[2:])

    assert verdicts(result.stdout) == verdicts(COMMAND.output or "")
    assert result.exit_code == 1
    assert ">Not certified</h1>" in (folder / "report.html").read_text()


@pytest.fixture
def node_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with certify.toml, in which the Node shop of the page runs."""
    node = shutil.which("node") or missing("node", "node is not installed")
    with free_port() as port, free_port() as own_port:
        shop_text = NODE_SHOP
        for old, new in NODE_TIMES.items():
            assert old in shop_text
            shop_text = shop_text.replace(old, new)
        (tmp_path / "shop.mjs").write_text(shop_text)
        certify_toml(
            *(tmp_path, own_port, port),
            *('"0s" ', '"900ms"', '"1s"', '"2400ms"', '"500ms"', '"1500ms"'),
            *("[words]", '[words]\ncancelled = ["cancelled"]'),
            *('service = "{service_id}"', 'gateway = "{gateway}"'),
            *("[application]", "at_once = 16\n[application]"),
        )
        command = (node, "shop.mjs", str(own_port))
        with subprocess.Popen(command, stdout=subprocess.PIPE) as shop:  # noqa: S603 -- the page's
            assert shop.stdout is not None
            assert shop.stdout.readline().startswith(b"shop on port")
            yield tmp_path
            shop.terminate()


@pytest.mark.timeout(120)
def test_the_node_shop_passes_every_case(node_folder: Path) -> None:
    output = run().stdout
    lines = output.splitlines()

    assert [line for line in lines if line.startswith(("FAILED", "INCONCLUSIVE", " "))] == [], (
        output
    )
    assert f"`{lines[-1].split(';')[0]}`" in PAGE.text


def test_the_test_of_the_page_runs_once_for_each_case(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # a process and plugins take a second
    pytester.makepyfile(FIXTURE)

    result = pytester.runpytest_inprocess("-p", "sandbox_sim.pytest_plugin", "--collect-only", "-q")

    result.stdout.fnmatch_lines(["*::test_bad_days[[]control_paid]", f"{len(load())} tests *"])


def test_the_case_of_the_page_can_be_loaded(tmp_path: Path) -> None:
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
