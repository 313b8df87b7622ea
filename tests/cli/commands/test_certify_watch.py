"""`certify --watch` waits until a source file has changed and all have stopped changing."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox_sim.cli.commands import certify
from sandbox_sim.cli.commands.certify import snapshot, wait_for_change


def test_source_files_are_watched_and_files_that_the_application_writes_are_not(
    tmp_path: Path,
) -> None:
    names = ("shop.py", "pages/order.html", ".env", "shop.db", "shop.log", ".git/hook.py")
    for name in (*names, "node_modules/express/index.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")

    assert {str(file.relative_to(tmp_path)) for file in snapshot(tmp_path)} == {
        "shop.py",
        "pages/order.html",
        ".env",
    }


def test_a_folder_that_the_user_may_not_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as that of a database, which belongs to another user."""
    (tmp_path / "shop.py").write_text("x")
    (tmp_path / "data").mkdir(mode=0)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    user = os.geteuid()
    if user == 0:  # root may read everything
        os.seteuid(65534)
    try:
        seen = snapshot(Path())
    finally:
        os.seteuid(user)
        (tmp_path / "data").chmod(0o700)

    assert {*seen} == {Path("shop.py")}


@pytest.mark.parametrize("written", ["report.html", "{folder}/report.html"])
def test_the_report_of_a_run_is_not_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("shop.py", "report.html"):
        (tmp_path / name).write_text("x")

    seen = snapshot(Path(), Path(written.format(folder=tmp_path)))

    assert {*seen} == {Path("shop.py")}


def test_the_wait_ends_when_the_files_have_stopped_changing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(name: str) -> Callable[[], object]:
        return lambda: (tmp_path / name).write_text("x")

    happens: list[Callable[[], object]] = [
        lambda: None,
        write("shop.db"),
        write("shop.py"),
        write("receipt.py"),
        lambda: None,
    ]

    class Pause:
        def wait(self, _seconds: float) -> None:
            happens.pop(0)()

    monkeypatch.setattr(certify, "Event", Pause)
    wait_for_change(tmp_path, snapshot(tmp_path))

    assert happens == []
