"""`make` with a Python that is too old, or with a broken environment."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Scripts in place of Python: one that is too old, and one that makes an environment.
TOO_OLD = "#!/bin/sh\nexit 1\n"
GOOD = """#!/bin/sh
if [ "$2" = venv ]; then
    rm "$4/.installed"
    ln -sf "$4/../old" "$4/bin/python"
    ln -sf "$4/../old" "$4/bin/pip"
fi
"""


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An environment that was installed, and whose Python no longer exists."""
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to("/nowhere/python")
    installed, old = tmp_path / "venv" / ".installed", tmp_path / "old"
    newest = max((ROOT / name).stat().st_mtime_ns for name in ("pyproject.toml", "constraints.txt"))
    for path, content, mtime in ((installed, "", newest), (old, "#!/bin/sh\n", 0)):
        path.write_text(content, "utf-8")
        path.chmod(0o755)
        os.utime(path, ns=(mtime, mtime))
    return tmp_path / "venv"


def make(venv: Path, python: str, target: str = "bin/python") -> subprocess.CompletedProcess[str]:
    """Run `make` for this file of the environment, with this script as PYTHON."""
    script = venv.parent / "python3"
    script.write_text(python, "utf-8")
    script.chmod(0o755)
    return subprocess.run(  # noqa: S603 -- ourselves
        ["make", f"{venv}/{target}", f"PYTHON={script}", f"VENV={venv}"],  # noqa: S607 -- wherever it is
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_python_that_is_too_old_is_refused_in_a_sentence(venv: Path) -> None:
    done = make(venv, TOO_OLD)

    assert done.returncode == 2
    assert done.stderr.startswith(f"Python 3.11 or newer is needed, and {venv.parent}/python3 is")
    assert (venv / ".installed").exists()


def test_an_environment_whose_python_is_gone_is_made_again(venv: Path) -> None:
    done = make(venv, GOOD)

    assert (done.returncode, done.stderr) == (0, "")
    assert (venv / "bin" / "python").exists()
    assert not (venv / ".installed").exists()


def test_an_environment_that_was_made_again_is_installed_into_by_the_same_call(venv: Path) -> None:
    done = make(venv, GOOD, ".installed")

    assert (done.returncode, done.stderr) == (0, "")
    assert (venv / ".installed").exists()
