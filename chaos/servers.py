"""The servers under test: their kills are noted, and so is each that ends by itself."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chaos.facts import Facts, Outage
from tests.kit.servers import ServerProcess, set_options

_OPTIONS: Final = set_options(
    (
        "settle_delay_ms=300",
        "sms_transition_ms=400",
        "card_auto_complete_ms=500",
        "callback_retry_interval_s=0.5",
        "callback_timeout_s=10",
    )
)


class Server(ServerProcess):
    """A server on a port of its own, which it keeps through every start; its log has errors only.

    options: more of its options; by default those of a sandbox whose delays are short.
    """

    def __init__(
        self,
        index: int,
        port: int,
        store: str,
        directory: Path,
        facts: Facts,
        options: Sequence[str] = _OPTIONS,
        tree: Path | None = None,
    ) -> None:
        serve = ("--port", str(port), "--store", store, "--log-level", "error", *options)
        super().__init__(f"server {index}", directory / f"server-{index}.log", serve, tree=tree)
        self.index = index
        self.url = f"http://127.0.0.1:{port}"
        self._facts = facts
        self._down_since: float | None = None

    async def ready(self) -> None:
        """As for every server, and note for how long this one was away."""
        await super().ready()
        if self._down_since is not None:
            self._facts.outages.append(Outage(self.index, self._down_since, time.monotonic()))
            self._down_since = None

    async def kill(self) -> None:
        """Kill the process, and note since when it is away."""
        if self._process is not None and self._process.returncode is not None:
            code = self._process.returncode
            self._complain(f"ended by itself with exit code {code}:")
        elif self._process is not None:
            self._down_since = self._down_since or time.monotonic()
        await super().kill()

    async def stop(self) -> int | None:
        """Stop the process with SIGTERM; it must exit by itself, with code 0."""
        if self._process is None:
            return 0
        code = await super().stop()
        if code != 0:
            said = "did not end" if code is None else f"ended with exit code {code}"
            self._complain(f"{said} on SIGTERM")
        return code

    def _complain(self, text: str) -> None:
        self._facts.complaints.append(f"{self.name} {text}\n{self.tail()}")
