"""Waits until source files of the application change, so that certify can run again."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Final

# Files that an application changes by itself, such as its database and its log, start no run.
_SOURCES: Final = frozenset(
    {
        *(".py", ".js", ".mjs", ".ts", ".php", ".rb", ".go", ".rs", ".java", ".kt", ".cs", ".ex"),
        *(".html", ".sql", ".toml", ".yaml", ".yml", ".env"),
    }
)
_OF_OTHERS: Final = frozenset({"node_modules", "vendor", "venv", "target", "build", "dist"})
_EVERY_S: Final = 0.5

Snapshot = Mapping[Path, int]


def snapshot(folder: Path) -> Snapshot:
    """When each source file in the folder was changed, in nanoseconds."""
    return dict(_changed_at(folder))


def wait_for_change(folder: Path, before: Snapshot) -> None:
    """Return when a source file has changed since `before`, and nothing changes any more."""
    now = snapshot(folder)
    while now == before:
        Event().wait(_EVERY_S)
        now = snapshot(folder)
    while True:
        Event().wait(_EVERY_S)
        later = snapshot(folder)
        if later == now:
            return
        now = later


def _changed_at(folder: Path) -> Iterator[tuple[Path, int]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            if not entry.name.startswith(".") and entry.name not in _OF_OTHERS:
                yield from _changed_at(entry)
        elif entry.suffix in _SOURCES or entry.name == ".env":
            try:
                yield entry, entry.stat().st_mtime_ns
            except OSError:  # an editor has just replaced it
                yield entry, 0
