"""Ctrl-C while the command line is still imported."""

import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

PROJECT = Path(str(files("sandbox_sim"))).parent / "pyproject.toml"


def _installed() -> str:
    """What the installed script `sandbox-sim` runs."""
    module, function = tomllib.loads(PROJECT.read_text())["project"]["scripts"][
        "sandbox-sim"
    ].split(":")
    return f"import sys; from {module} import {function}; sys.exit({function}())"


@pytest.mark.parametrize(
    "start", [("-c", _installed()), ("-m", "sandbox_sim")], ids=["script", "module"]
)
def test_it_exits_with_130_and_prints_nothing(tmp_path: Path, start: tuple[str, str]) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    before = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    run = f"import runpy; runpy.run_module({start[1]!r}, run_name='__main__')"
    code = before + (run if start[0] == "-m" else start[1])

    ended = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", code, "serve"], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
