"""The SMSC of the npm package `smpp`, which others wrote, as its own process."""

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from tests.cli.processes import SOON, process
from tests.requirements import missing

PACKAGE: Final = "smpp@0.5.1"
SCRIPT: Final = Path(__file__).with_name("smsc.js")
SYSTEM_ID, PASSWORD = "shop", "smscpass"


def node_modules(config: pytest.Config) -> Path:
    """The folder with the npm package, installed once into pytest's cache.

    The test skips or fails if node, npm or the cache is missing, or if the package cannot be
    installed.
    """
    if not hasattr(config, "cache"):
        missing("node", f"{PACKAGE} is installed into pytest's cache, which is off")
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            missing("node", f"{program} is not installed")
    assert config.cache is not None
    folder = config.cache.mkdir("npm-" + PACKAGE.replace("@", "-"))
    found = folder / "node_modules"
    if not found.exists():
        with TemporaryDirectory(dir=folder) as own:
            installed = npm_install(Path(own))
            if installed.returncode:
                missing("node", f"npm cannot install {PACKAGE}: {installed.stderr[-300:]}")
            with suppress(OSError):  # another worker of the tests was faster
                (Path(own) / "node_modules").rename(found)
    return found


def npm_install(folder: Path) -> "subprocess.CompletedProcess[str]":
    """Install the package into a folder."""
    npm = shutil.which("npm") or "npm"
    return subprocess.run(  # noqa: S603 -- ourselves
        [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), PACKAGE],
        capture_output=True,
        text=True,
        timeout=45,
        check=False,
    )


@dataclass
class NodeSmsc:
    """The running SMSC."""

    port: int
    control: str

    def do(self, what: str, **fields: Any) -> dict[str, Any]:
        """Send it a command; call this in a thread if the answer waits for the adapter."""
        body = json.dumps({"do": what, **fields}).encode()
        request = urllib.request.Request(self.control, body)  # noqa: S310 -- our own process
        with urllib.request.urlopen(request, timeout=SOON) as answer:  # noqa: S310
            found: dict[str, Any] = json.loads(answer.read())
            return found

    @property
    def submits(self) -> list[dict[str, Any]]:
        """The parts that came, oldest first."""
        return list(self.do("seen")["submits"])

    @property
    def bound(self) -> int:
        """How many connections are bound."""
        return int(self.do("seen")["bound"])

    @property
    def settings(self) -> Mapping[str, Any]:
        """The table of a network that is bound here."""
        return {
            "adapter": "smpp",
            "host": "127.0.0.1",
            "port": self.port,
            "system_id": SYSTEM_ID,
            "password": PASSWORD,
            "reconnect_after_s": 0.01,
        }


@contextmanager
def running(modules: Path) -> Iterator[NodeSmsc]:
    """The SMSC on free ports, inside of the context."""
    node = shutil.which("node") or "node"
    with process("env", f"NODE_PATH={modules}", node, str(SCRIPT), "0") as started:
        assert started.stdout is not None
        ready, steered = started.stdout.readline(), started.stdout.readline()
        assert ready.startswith("SMSC ready at smpp://127.0.0.1:"), ready
        yield NodeSmsc(int(ready.rpartition(":")[2]), steered.split()[-1])
