"""docs/writing-a-network.md: its example is a separate package that keeps the contract."""

import json
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.cli.processes import SOON, first_line, python_ended, running
from tests.docs.pages import ROOT, Page

PAGE = Page("docs/writing-a-network.md")
EXAMPLE = ROOT / "docs" / "examples" / "palm_pay"
# The fork server has imported sandbox_sim, so pytest cannot rewrite its asserts.
INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
filterwarnings =
    error
    ignore::pytest.PytestAssertRewriteWarning
"""
# Prints the name of the network that is found, and the error of its factory without settings.
FIND = """
import warnings
warnings.simplefilter("error")
from importlib.metadata import entry_points
from datetime import timedelta
from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.adapters.clock_and_ids import RandomIds
from sandbox_sim.ports.network import NetworkConfigError, NetworkEnvironment
(found,) = entry_points(group="sandbox_sim.networks", name="palm_pay")
try:
    found.load()({}, NetworkEnvironment("palm", SystemClock(), RandomIds(), timedelta(1)))
except NetworkConfigError as error:
    print(found.name, found.dist.name, error, sep="|")
"""
# Plugins that the suite of the example does not use, which take long to load.
OTHERS = ("hypothesispytest", "faker", "xdist", "xdist.looponfail", "platformdirs")
WITHOUT_OTHERS = [word for name in OTHERS for word in ("-p", f"no:{name}")]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed example, which uses the dependencies of the tests.

    Its build backend makes the wheel, as pip has it done, and the wheel is unpacked.
    """
    folder = tmp_path_factory.mktemp("palm_pay")
    source, packages = folder / "source", folder / "packages"
    shutil.copytree(EXAMPLE, source)
    backend = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["build-system"]
    build = f"import {backend['build-backend']} as backend; backend.build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True)  # noqa: S603 -- ourselves
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(packages)
    return packages


@pytest.fixture
def installed(packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that the test starts find the installed example, and not its source."""
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("installed")
def test_the_network_of_the_example_is_found_by_its_entry_point(tmp_path: Path) -> None:
    script = tmp_path / "find.py"
    script.write_text(FIND, "utf-8")

    done = python_ended(str(script))

    assert done.returncode == 0, done.stderr
    name, package, problem = done.stdout.strip().split("|")
    assert (name, package) == ("palm_pay", "palm-pay-network")
    assert problem.startswith("base_url: Field required; api_key: ")


@pytest.mark.decision("D32")
@pytest.mark.usefixtures("installed")
def test_a_gateway_with_the_configuration_of_the_page_routes_to_the_network(tmp_path: Path) -> None:
    (configuration,) = PAGE.blocks("toml")
    file = tmp_path / "sandbox_sim.toml"
    file.write_text(configuration, "utf-8")
    store = f"sqlite:{tmp_path / 'state.sqlite3'}"

    with running("--json", "serve", "--config", file, "--store", store, "--port", 0) as server:
        url = json.loads(first_line(server))["url"]
        with urllib.request.urlopen(f"{url}/_sandbox/networks", timeout=SOON) as answer:  # noqa: S310
            (palm,) = json.load(answer)["networks"]

    assert (palm["name"], palm["adapter"]) == ("palm", "palm_pay")
    assert palm["operations"] == ["collect", "payout"]


@pytest.mark.decision("D39")
@pytest.mark.usefixtures("installed")
def test_the_example_keeps_the_contract(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "test_palm_pay.py", tmp_path)
    (tmp_path / "pytest.ini").write_text(INI, "utf-8")

    done = python_ended("-m", "pytest", "-q", "-rs", *WITHOUT_OTHERS)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "51 passed, 6 skipped" in done.stdout
    assert "not proven: the network uses no tokens" in done.stdout
    assert "not proven: ask the operator of the network whether" in done.stdout


def test_the_code_of_the_page_is_that_of_the_package() -> None:
    texts = [file.read_text("utf-8") for file in EXAMPLE.iterdir() if file.is_file()]
    blocks = [*PAGE.blocks("ini"), *PAGE.blocks("python")]

    assert len(blocks) == 2
    # The page shows a method without the indentation of its class.
    flat = ["".join(line.strip() for line in text.splitlines()) for text in texts]
    for block in blocks:
        wanted = "".join(line.strip() for line in block.splitlines())
        assert [text for text in flat if wanted in text], block
