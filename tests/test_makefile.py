"""`make` with a Python that is too old, or with a broken environment."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Scripts in place of Python: one that is too old, and one that makes an environment.
TOO_OLD = "#!/bin/sh\nexit 1\n"
GOOD = (
    '#!/bin/sh\nif [ "$2" = venv ]; then rm "$4/.installed"; ln -sf /bin/true "$4/bin/python"; fi\n'
)


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An environment that was installed, and whose Python no longer exists."""
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to("/nowhere/python")
    (tmp_path / "venv" / ".installed").touch()
    return tmp_path / "venv"


def make(venv: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Run `make` for the Python of this environment, with this script as PYTHON."""
    script = venv.parent / "python3"
    script.write_text(python, "utf-8")
    script.chmod(0o755)
    return subprocess.run(  # noqa: S603 -- ourselves
        ["make", f"{venv}/bin/python", f"PYTHON={script}", f"VENV={venv}"],  # noqa: S607 -- wherever it is
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
