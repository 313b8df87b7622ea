"""Follows a page: runs its servers and commands as processes, on free ports."""

import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, chdir, contextmanager
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.cli.processes import SOON, ended, eventually, first_line, process, python, running
from tests.docs.commands import shape
from tests.docs.pages import ROOT, Command
from tests.kit.requests import basic
from tests.kit.servers import free_port
from tests.requirements import missing


@contextmanager
def reading(folder: Path, monkeypatch: pytest.MonkeyPatch, *ports: str) -> Iterator["Reader"]:
    """A reader who works in this folder; its servers stop at the end of the block.

    ports: those of the pages, beside 8233 and 8234, which stand for free ports.
    """
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    with ExitStack() as servers:
        reader = Reader(folder, servers, ports)
        monkeypatch.setenv("SANDBOX_SIM_ENDPOINT_URL", reader.here("http://127.0.0.1:8233"))
        yield reader


# What `trigger` prints.
TRANSACTION_ID = re.compile(r"^  transaction_id +(\S+)$", re.MULTILINE)
FINAL_STATUS = re.compile(r"^final status (\d+)", re.MULTILINE)


class Reader:
    """Does what the page says, on free ports."""

    def __init__(self, folder: Path, servers: ExitStack, ports: Iterable[str]) -> None:
        self.folder = folder
        self.servers = servers
        # Outgoing connections do not take a quiet port before the test uses it.
        self.ports = {port: str(free_port()) for port in ("8233", "8234", *ports)}
        self.running: dict[str, subprocess.Popen[str]] = {}

    def save(self, name: str, text: str) -> None:
        """Save a file of the page, with our ports."""
        (self.folder / name).write_text(self.here(text), "utf-8")

    def follow(self, commands: Iterable[Command]) -> dict[str, str]:
        """Run the commands in order; each must print the output below it.

        Returns the final status of each payment that `trigger` sent.
        """
        statuses = {}
        for command in commands:
            printed = self.run(command)
            if command.output:
                assert shape(printed) == shape(command.output), command.words
            sent, final = (re.search(at, printed) for at in (TRANSACTION_ID, FINAL_STATUS))
            if sent and final:
                statuses[sent[1]] = final[1]
        return statuses

    def here(self, text: str) -> str:
        """The text with our ports."""
        return re.sub(r"\b\d{4}\b", lambda port: self.ports.get(port[0], port[0]), text)

    def serve(self, words: list[str]) -> None:
        """Start a server, and stop the one that has its port."""
        port = self.here(words[words.index("--port") + 1] if "--port" in words else "8233")
        self.stop(port)
        if "replay.toml" in words:  # the page says: stop both
            self.stop(self.ports["8234"])
        given = () if "--port" in words else ("--port", port)
        typed = [*map(self.here, words[1:]), *given]
        started = self.servers.enter_context(running(*typed))
        assert first_line(started) == f"sandbox-sim ready at http://127.0.0.1:{port}\n"
        self.running[port] = started

    def stop(self, port: str) -> None:
        """Stop the server on this port, if one runs there."""
        if (server := self.running.pop(port, None)) is not None:
            server.send_signal(signal.SIGTERM)
            assert server.wait(SOON) == 0

    def command(self, words: list[str]) -> str:
        """What a command prints."""
        done = ended(*words[1:])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def curl(self, words: list[str]) -> str:
        """The answer to the request of a curl command."""
        options = dict(pairwise(words))
        (address,) = (word for word in words if word.startswith("http"))
        name, _, value = options["-H"].partition(": ")
        credentials = basic(*options["-u"].split(":"))
        headers = {"User-Agent": "curl/8", "Authorization": credentials, name: value}
        request = urllib.request.Request(  # noqa: S310 -- our own server
            self.here(address), self.here(options["-d"]).encode(), headers
        )
        with urllib.request.urlopen(request, timeout=SOON) as answer:  # noqa: S310
            return str(answer.read().decode())

    def final_status(self, words: list[str]) -> str:
        """The answer to a status query, as soon as the payment is no longer pending."""

        def final() -> str:
            answer = self.curl(words)
            return "" if json.loads(answer)["response_data"]["status"] == "002" else answer

        return str(eventually(final))

    def start(self, words: list[str]) -> None:
        """Start a fake network of the clone; it prints a line when it is ready."""
        with chdir(ROOT):
            started = self.servers.enter_context(python(*map(self.here, words[1:])))
        assert " ready at http://127.0.0.1:" in first_line(started)

    def install(self, words: list[str]) -> None:
        """Install an npm package as the page says; the test skips where npm cannot."""
        assert words[:2] == ["npm", "install"]
        typed = [*words, "--prefer-offline", "--no-audit", "--no-fund"]
        done = subprocess.run(typed, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            missing("node", f"npm cannot install {words[-1]}: {done.stderr[-300:]}")

    def start_smsc(self, words: list[str]) -> None:
        """Start the SMSC of the npm package with the script of the clone."""
        path, node, script, port = words
        started = process("env", path, node, str(ROOT / script), self.here(port))
        ready = first_line(self.servers.enter_context(started))
        assert ready == f"SMSC ready at smpp://127.0.0.1:{self.here(port)}\n"

    def export(self, words: list[str]) -> None:
        """Set variables of the environment until the test ends."""
        for word in words[1:]:
            name, _, value = word.partition("=")
            self.servers.enter_context(patch.dict(os.environ, {name: self.here(value)}))

    def run(self, command: Command) -> str:
        """What a command prints; empty for one that starts, installs or sets something."""
        words = command.words
        if words[0] == "curl":
            is_query = any("get_transaction_status" in word for word in words)
            return self.final_status(words) if is_query else self.curl(words)
        actions = {"python": self.start, "npm": self.install, "export": self.export}
        if words[0] in actions:
            actions[words[0]](words)
        elif words[0].startswith("NODE_PATH="):
            self.start_smsc(words)
        elif "serve" in words:
            self.serve(words)
        else:
            return self.command(words)
        return ""
