"""A small API that tests describe in a configuration, and the adapter that speaks with it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from sandbox_sim.networks.http_json.adapter import HttpJson, http_json
from sandbox_sim.ports.network import Network
from sandbox_sim.testing.network_contract import HttpReply, HttpRequest
from sandbox_sim.testing.network_contract.http_peer import FaultServer
from sandbox_sim.values.json_text import compact
from tests.networks import fakes
from tests.networks.http_json.fake_networks import adapter

REFERENCE: Final = "0b8a2f4e-7a3d-4c1e-9d53-6f1f2b7c8d90"

SETTINGS: Final[dict[str, Any]] = {
    "base_url": "https://api.example",
    "operations": ["collect"],
    "submit": {
        "path": "/payments",
        # The identity and the amount, so that a test can change the body as it likes.
        "headers": {"X-Reference": "{reference}", "X-Amount": "{amount}"},
        "json": {"id": "{reference}"},
        "fields": {"outcome": "state", "reference": "id"},
        "outcomes": {"NEW": "pending", "PAID": "succeeded", "NO": "failed"},
    },
    "status": {"path": "/payments/{reference}"},
}


def changed(**by: Any) -> dict[str, Any]:
    """The settings with other values; a key such as `submit__path` names a field of a table.

    A value of None takes the field away.
    """
    settings = deepcopy(SETTINGS)
    for name, value in by.items():
        *tables, last = name.split("__")
        table = settings
        for each in tables:
            table = table.setdefault(each, {})
        if value is None:
            table.pop(last, None)
        else:
            table[last] = value
    return settings


def made(**by: Any) -> Network:
    """The adapter, by its factory."""
    return http_json(changed(**by), fakes.environment())


@dataclass
class Api:
    """An open adapter and the requests that came to the API."""

    network: HttpJson
    events: fakes.KeptEvents
    came: list[HttpRequest] = field(default_factory=list)


@asynccontextmanager
async def opened(*answers: HttpReply, **by: Any) -> AsyncIterator[Api]:
    """The adapter at an API that gives these answers in turn, the last one again and again."""
    came: list[HttpRequest] = []

    def answer(_: HttpRequest) -> HttpReply:
        return answers[min(len(came), len(answers)) - 1]

    server = FaultServer(came.append, answer, answer)
    events = fakes.KeptEvents()
    async with server.running():
        network = adapter(changed(**by), fakes.environment(), base_url=server.url)
        await network.open(events)
        yield Api(network, events, came)
        await network.close()


def reply(status: int, /, **document: object) -> HttpReply:
    """An answer with these members."""
    return HttpReply(status, compact(document).encode())


TAKEN: Final = reply(200, state="NEW")
