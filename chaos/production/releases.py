"""Another release of the project, to run beside this one: a work tree of git."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]


class NoRelease(Exception):
    """A release cannot be checked out; the text says why and what to do."""


@contextmanager
def checked_out(revision: str, folder: Path, root: Path = _ROOT) -> Iterator[Path]:
    """A work tree of a revision in this folder, which is removed at the end.

    root: a folder of the repository.

    Raises:
        NoRelease: git does not have the revision.
    """
    try:
        commit = _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except (OSError, subprocess.CalledProcessError):
        raise NoRelease(
            f"--beside {revision}: the git history of this folder does not have it, "
            "so run this in a full clone"
        ) from None
    tree = folder / f"release-{commit[:12]}"
    _git(root, "worktree", "add", "--detach", "--force", str(tree), commit)
    try:
        yield tree
    finally:
        _git(root, "worktree", "remove", "--force", str(tree))


def _git(root: Path, *words: str) -> str:
    """Run git there; returns what it prints."""
    command = ["git", "-C", str(root), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 -- git
    return done.stdout.strip()
