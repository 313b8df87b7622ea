"""Ctrl-C while the command line is still imported."""

import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from sandbox_sim import cli

PROJECT = Path(str(files("sandbox_sim"))).parent / "pyproject.toml"


def _installed() -> str:
    """What the installed script `sandbox-sim` runs."""
    module, function = tomllib.loads(PROJECT.read_text())["project"]["scripts"][
        "sandbox-sim"
    ].split(":")
    return f"import sys; from {module} import {function}; sys.exit({function}())"


@pytest.mark.parametrize(
    "start",
    [_installed(), "import runpy; runpy.run_module('sandbox_sim', run_name='__main__')"],
    ids=["script", "module"],
)
def test_ctrl_c_during_the_imports_exits_with_130_and_prints_nothing(
    tmp_path: Path, start: str
) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {start}"

    ended = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", code, "serve"], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_ctrl_c_while_a_class_is_made_exits_with_130_and_prints_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python 3.11 raises `RuntimeError` for what `__set_name__` raises."""

    class Interrupted:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(cli, "import_without_gc", lambda _: type("Made", (), {"a": Interrupted()}))

    for words in (["serve"], ["--help"]):
        ended = CliRunner().invoke(cli.main, words)

        assert (ended.exit_code, ended.output) == (130, "")
