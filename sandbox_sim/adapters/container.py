"""Whether this process runs in a container, where `localhost` is the container itself."""

from pathlib import Path
from typing import Final

# Files that Docker and Podman create in each container.
MARKERS: Final = ("/.dockerenv", "/run/.containerenv")


def in_container() -> bool:
    """Whether one of the files is there."""
    return any(Path(marker).exists() for marker in MARKERS)
