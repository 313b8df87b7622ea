"""A new project needs only the wheel: the tests build it, install it and use it."""

import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
THREE_LINES = """\
def test_a_new_project(sandbox_gateway):
    sandbox_gateway.advance(minutes=5)
    sandbox_gateway.callbacks.expect_none()
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run(  # noqa: S603 -- ourselves
        [*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def required_by(*wanted: Distribution) -> set[str]:
    """Return the names of all distributions that these require, also indirectly, without extras."""
    names = {"pytest"}
    left = list(wanted)
    while left:
        for line in left.pop().requires or ():
            requirement = Requirement(line)
            needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if needed and requirement.name not in names:
                found = distribution(requirement.name)
                assert requirement.specifier.contains(found.version, prereleases=True), line
                names.add(requirement.name)
                left.append(found)
    return names


def link(names: set[str], folder: Path) -> None:
    """Make these distributions of the tests' environment importable from a folder."""
    for name in names:
        found = distribution(name)
        tops = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        for top in tops:
            if not (folder / top).exists():
                (folder / top).symlink_to(str(found.locate_file(top)))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only wheel that `make wheel` has built into an empty folder."""
    folder = tmp_path_factory.mktemp("dist")
    command = ("make", "wheel", f"BIN={Path(sys.executable).parent}", f"DIST={folder}")

    # For pip, 0 turns isolation off, so the build does not need a registry.
    built = run(*command, cwd=ROOT, PIP_NO_BUILD_ISOLATION="0")

    assert built.returncode == 0, built.stderr
    (wheel,) = folder.iterdir()
    return wheel


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, what it requires, and pytest.

    Requirements are links into the environment of the tests; pip would download for a minute.
    """
    folder = tmp_path_factory.mktemp("project")
    venv.create(folder / "venv", symlinks=True)
    (packages,) = folder.glob("venv/lib/python*/site-packages")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install")
    # Without --no-compile, pip compiles also the modules that no test imports.
    installed = run(
        *pip, "--no-deps", "--no-index", "--no-compile", "--target", packages, wheel, cwd=folder
    )
    assert installed.returncode == 0, installed.stderr
    (own,) = distributions(name="sandbox-sim", path=[str(packages)])
    link(required_by(own, distribution("pytest")), packages)
    return folder / "venv" / "bin" / "python"


def test_make_wheel_builds_a_wheel(wheel: Path) -> None:
    assert re.fullmatch(r"sandbox_sim-[0-9.]+-py3-none-any\.whl", wheel.name)


def test_a_test_of_three_lines_passes_in_an_empty_folder(python: Path, tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(THREE_LINES, "utf-8")

    # Without this option pytest compiles the package for itself, as it does for our other tests.
    plain = "--assert=plain"
    done = run(python, "-W", "error", "-m", "pytest", "-q", plain, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_package_works_without_pytest(python: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs" / "recipes" / "test_unittest.py", tmp_path)

    done = run(python, "-W", "error", "test_unittest.py", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "Ran 2 tests" in done.stderr


def test_the_installed_package_is_typed(python: Path, tmp_path: Path) -> None:
    done = run(python, "-c", "import sandbox_sim; print(sandbox_sim.__file__)", cwd=tmp_path)

    package = Path(done.stdout.strip()).parent
    assert package.is_relative_to(python.parent.parent)
    assert (package / "py.typed").exists()


def test_the_wheel_contains_the_cases_of_compare(python: Path, tmp_path: Path) -> None:
    done = run(python, "-m", "sandbox_sim", "compare", "https://gateway.invalid", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (
        2,
        "nothing was sent; use --yes to send these requests\n",
    )
    assert "01-collection-success" in done.stdout


def test_the_source_archive_has_the_pages() -> None:
    archive = SdistBuilder(str(ROOT))
    names = {file.distribution_path for file in archive.recurse_included_files()}
    names.add(archive.metadata.core.readme_path)  # it goes in because pyproject.toml names it

    pages = {str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md")}
    assert pages | {"README.md", "Makefile", "constraints.txt"} <= names


EXPLAINED = ("019", "sandbox.3", "D11")
# One process explains them all: its start takes most of the time.
EXPLAIN = f"""
from sandbox_sim.cli import main

for name in {EXPLAINED}:
    main(["explain", name], standalone_mode=False)
    print(end="\\0")
"""


def test_the_wheel_explains_codes_and_rules(python: Path, tmp_path: Path) -> None:
    done = run(python, "-c", EXPLAIN, cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    texts = done.stdout.split("\0")[:-1]
    for name, text in zip(EXPLAINED, texts, strict=True):
        assert text.startswith(name)
        assert "sandbox-sim trigger" in text
