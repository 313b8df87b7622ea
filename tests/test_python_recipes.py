"""The Python recipes in docs/recipes pass in a folder outside of this project."""

import shutil
import subprocess
import sys
from pathlib import Path

RECIPES = Path(__file__).parent.parent / "docs" / "recipes"
# Plugins that no recipe uses, which take long to load.
OTHERS = ("hypothesispytest", "faker", "xdist", "xdist.looponfail", "platformdirs")
WITHOUT_OTHERS = [word for name in OTHERS for word in ("-p", f"no:{name}")]
INI = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(  # noqa: S603 -- ourselves
        command, cwd=folder, capture_output=True, text=True, check=False
    )


def test_they_pass(tmp_path: Path) -> None:
    for recipe in RECIPES.glob("test_*.py"):
        shutil.copy(recipe, tmp_path)
    (tmp_path / "pytest.ini").write_text(INI, "utf-8")

    done = run(tmp_path, "-m", "pytest", "-q", *WITHOUT_OTHERS)

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
