"""The setting `fast_path` and the internals of aiohttp decide which protocol is used."""

import ast
import asyncio
import logging
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import http, web
from aiohttp.base_protocol import BaseProtocol
from packaging.requirements import Requirement

from sandbox_sim.web.transport.aiohttp_internals import FAST_CONNECTION, REQUIRED
from tests.conftest import Sandbox, StartSandbox
from tests.web.wire import exchange

ROOT = Path(__file__).parents[3]
FAST_MODULE = "sandbox_sim.web.transport.fast_connection"
NOT_HTTP = b"\x16\x03\x01\x02\x00\r\n\r\n"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The log of a server when it starts."""
    caplog.set_level(logging.INFO, "sandbox_sim.serve")
    return caplog


def lines(log: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    found = [each for each in log.records if each.name == "sandbox_sim.serve"]
    return [(each.levelname, each.getMessage()) for each in found]


async def serving(sandbox: Sandbox) -> type[asyncio.BaseProtocol]:
    """Return the class that serves a new connection; assert that it serves both kinds of paths."""
    assert (await sandbox.collect()).code == "202"
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/livez") as response:
        assert await response.json() == {"status": "ok"}
    server = cast("Any", sandbox.runner.server)
    return type(server())


async def test_the_setting_turns_the_fast_connection_on_and_off(
    start_sandbox: StartSandbox, log: pytest.LogCaptureFixture
) -> None:
    sandbox = await start_sandbox(fast_path=True)
    assert (await serving(sandbox)).__name__ == "Connection"
    assert lines(log) == []

    sandbox = await start_sandbox(fast_path=False)
    assert (await serving(sandbox)).__name__ == "GatewayProtocol"
    text = "the setting fast_path is off: aiohttp's protocol serves every request, more slowly"
    assert lines(log) == [("INFO", text)]


class _OtherArguments(http.HttpRequestParser):
    """A parser that takes other arguments."""

    def __init__(self, protocol: Any) -> None:
        super().__init__(protocol, asyncio.get_running_loop(), 1024)


class _OtherResult(http.HttpRequestParser):
    """A parser that returns requests in another form."""

    def feed_data(self, data: bytes, *more: Any) -> Any:
        return super().feed_data(data, *more)[0]


CHANGED = "a parser that reads requests as expected"


@pytest.mark.parametrize(
    ("module", "name", "other", "shown"),
    [
        ("aiohttp.tcp_helpers", "tcp_keepalive", None, "aiohttp.tcp_helpers.tcp_keepalive"),
        ("aiohttp.http", "HttpRequestParser", None, "aiohttp.http:HttpRequestParser.feed_data"),
        ("aiohttp.http", "HttpRequestParser", _OtherArguments, CHANGED),
        ("aiohttp.http", "HttpRequestParser", _OtherResult, CHANGED),
    ],
)
async def test_without_an_internal_aiohttps_protocol_is_used_and_the_log_says_so(
    start_sandbox: StartSandbox,
    log: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    name: str,
    other: Any,
    shown: str,
) -> None:
    """An internal may be missing, or a parser may have changed."""
    if other is None:
        monkeypatch.delitem(sys.modules, FAST_MODULE, raising=False)
        monkeypatch.delattr(import_module(module), name)
    else:
        monkeypatch.setattr(import_module(module), name, other)

    sandbox = await start_sandbox(fast_path=True)

    assert (await serving(sandbox)).__name__ == "GatewayProtocol"
    assert other or FAST_MODULE not in sys.modules  # its import would fail
    ((level, text),) = lines(log)
    assert level == "WARNING"
    assert f"lacks {shown}: " in text
    assert other or "aiohttp's protocol serves every request" in text
    answer = await exchange(sandbox, NOT_HTTP)
    assert (answer.status, answer.code) == (400, "400")


async def test_the_server_does_not_start_without_an_internal_of_both_protocols(
    start_sandbox: StartSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad requests would get aiohttp's plain text instead of an answer of the interface."""
    monkeypatch.delattr(web.RequestHandler, "handle_error")

    with pytest.raises(
        RuntimeError, match=r"lacks aiohttp\.web:RequestHandler\.handle_error; install"
    ):
        await start_sandbox()


# --- The table of internals is complete ------------------------------------------------------

# Modules of aiohttp whose names are documented.
DOCUMENTED = {"aiohttp", "aiohttp.abc", "aiohttp.hdrs", "aiohttp.typedefs", "aiohttp.web"}
LISTED = {name for each in (*FAST_CONNECTION, *REQUIRED) for name in each.names}
HOLDERS = {
    each.holder.rpartition(":")[2] for each in (*FAST_CONNECTION, *REQUIRED) if ":" in each.holder
}


def trees(folder: str, wanted: str) -> Iterator[ast.AST]:
    """The nodes of each module with this text: to parse a module takes long."""
    for file in sorted((ROOT / "sandbox_sim" / folder).rglob("*.py")):
        if wanted in (text := file.read_text("utf-8")):
            yield from ast.walk(ast.parse(text))


def test_every_import_of_an_internal_is_listed() -> None:
    imported = {
        name.name
        for node in trees(".", "from aiohttp.")
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").partition(".")[0] == "aiohttp"
        and node.module not in DOCUMENTED
        for name in node.names
    }

    assert imported
    assert imported - LISTED - HOLDERS == set()


def test_every_private_name_of_aiohttp_in_use_is_listed() -> None:
    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    loop = asyncio.new_event_loop()
    server = web.Server(handler, loop=loop)
    loop.close()
    theirs = {*dir(BaseProtocol), *dir(web.RequestHandler), *dir(web.AppRunner), *dir(server)}
    # Only a class with a base can use private names of aiohttp by `self`.
    derived = (node for node in trees("web/transport", "class ") if isinstance(node, ast.ClassDef))
    used = {
        node.attr
        for each in derived
        if each.bases
        for node in ast.walk(each)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.endswith("__")
        and node.attr in theirs
    }

    assert used
    assert used - LISTED == set()


def test_the_upper_bound_of_aiohttp_is_above_the_tested_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (bound,) = (line for line in project["dependencies"] if Requirement(line).name == "aiohttp")
    (pinned,) = (
        line.partition("==")[2]
        for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
        if line.startswith("aiohttp==")
    )

    assert bound == "aiohttp>=3.14.1,<3.15"
    assert Requirement(bound).specifier.contains(pinned)
    assert not Requirement(bound).specifier.contains("3.15.0")
