"""The fake servers of docs/examples/fake_networks, and the configurations of docs/networks."""

import importlib
import sys
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from sandbox_sim.networks.http_json.adapter import HttpJson
from sandbox_sim.networks.http_json.settings import HttpJsonSettings
from sandbox_sim.ports.network import NetworkEnvironment
from sandbox_sim.settings.networks import NetworkTable
from sandbox_sim.testing.network_contract import HttpReply, HttpRequest
from sandbox_sim.values.json_text import compact
from tests.docs.pages import ROOT, Page

FOLDER: Final = ROOT / "docs" / "examples" / "fake_networks"


def module(name: str) -> Any:
    """A script of the folder, imported as a module."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(name)


def documented(name: str, page: str = "") -> dict[str, object]:
    """The settings of a network in the configuration to copy, or of a page in docs/networks."""
    file = ROOT / "docs" / "networks" / f"{name}.toml"
    text = (
        file.read_text("utf-8") if not page else Page(f"docs/networks/{page}.md").blocks("toml")[0]
    )
    table = NetworkTable.model_validate(tomllib.loads(text)["networks"][name])
    assert table.adapter == "http_json"
    return table.adapter_settings()


def adapter(
    settings: Mapping[str, object],
    environment: NetworkEnvironment,
    made: type[HttpJson] = HttpJson,
    **changed: object,
) -> HttpJson:
    """The adapter with these settings, in which its repeated queries do not wait."""
    read = HttpJsonSettings.model_validate({**settings, **changed})
    return made(read, environment, first_pause_s=0.001)


def reply(answer: tuple[int, object]) -> HttpReply:
    """The answer of a fake as the contract suite sends it."""
    status, document = answer
    return HttpReply(status, compact(document).encode())


def reply_of(fake: Any, request: HttpRequest) -> HttpReply:
    """The reply of a fake to a request."""
    return reply(fake.answer(request.method, request.path, request.headers, request.body))
