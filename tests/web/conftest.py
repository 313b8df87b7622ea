"""A merchant's server on a real socket, for tests that check the exact bytes of callbacks."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from sandbox_sim.records.callbacks import CallbackRecord, Profile
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.web.pages.handset import qr_code
from tests.conftest import Sandbox
from tests.kit.http_servers import listening
from tests.sample_records import every
from tests.turns import SOON_S


@dataclass(frozen=True)
class Delivery:
    """A callback as it arrived; `raw` is its body, byte for byte."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.raw)
        return parsed

    @property
    def signature(self) -> str | None:
        return self.headers.get("X-Service-Signature")


async def _thanks(_request: web.Request) -> web.StreamResponse:
    return web.Response(text="thanks")


@dataclass
class Receiver:
    """Records each callback, and answers HTTP 200 unless `answer` is set to another handler."""

    url: str = ""
    deliveries: list[Delivery] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]] = _thanks

    async def receive(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        self.deliveries.append(Delivery(request.method, request.path_qs, request.headers, raw))
        self.arrived.set()
        return await self.answer(request)

    @property
    def delivery(self) -> Delivery:
        """The only callback that arrived; raises ValueError if there is not exactly one."""
        (only,) = self.deliveries
        return only

    async def arrival(self) -> None:
        """Wait for the first callback; raise TimeoutError if none comes."""
        async with asyncio.timeout(SOON_S):
            await self.arrived.wait()

    def answer_in_turn(self, *statuses: int) -> None:
        """Answer with these HTTP statuses, one for each callback."""
        left = iter(statuses)

        async def next_one(_request: web.Request) -> web.StreamResponse:
            return web.Response(status=next(left))

        self.answer = next_one

    def hang(self) -> asyncio.Event:
        """Accept callbacks, and answer them only after the returned event is set."""
        go_on = asyncio.Event()

        async def wait(_request: web.Request) -> web.StreamResponse:
            await go_on.wait()
            return web.Response()

        self.answer = wait
        return go_on


StartReceiver = Callable[[], Awaitable[Receiver]]


@pytest.fixture
async def start_receiver() -> AsyncIterator[StartReceiver]:
    """Start a receiver on a free port."""
    async with AsyncExitStack() as receivers:

        async def start() -> Receiver:
            receiver = Receiver()
            server = listening(web.route("*", "/{path:.*}", receiver.receive))
            receiver.url = f"{await receivers.enter_async_context(server)}/callbacks"
            return receiver

        yield start


@pytest.fixture
async def receiver(start_receiver: StartReceiver) -> Receiver:
    """A receiver that is already running."""
    return await start_receiver()


@pytest.fixture
async def go_on(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """An event; each unit of work of the memory store waits until it is set."""
    go_on, run = asyncio.Event(), MemoryStore.run

    async def slow(self: MemoryStore, work: Any) -> Any:
        await go_on.wait()
        return await run(self, work)

    monkeypatch.setattr(MemoryStore, "run", slow)
    return go_on


@pytest.fixture
def qr_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of the QR codes on the pages of handsets."""
    texts: list[str] = []

    def drawn(text: str) -> str:
        texts.append(text)
        return qr_code(text)

    monkeypatch.setattr("sandbox_sim.web.pages.handset.qr_code", drawn)
    return texts


async def kept_callbacks(sandbox: Sandbox) -> Sequence[CallbackRecord]:
    """Return the callbacks of service 55 in the store, oldest first."""
    newest_first = await sandbox.gateway.store.run(lambda unit: unit.list_callbacks(every(55)))
    return list(reversed(newest_first))


async def kept_callback(sandbox: Sandbox) -> CallbackRecord:
    """Return the only callback of service 55 in the store."""
    (callback,) = await kept_callbacks(sandbox)
    return callback


def profile_of(body: dict[str, Any]) -> Profile:
    """Return the profile of a callback body, which its fields show."""
    if "event_type" in body:
        return Profile.EVENT
    if "trans_ref" not in body:
        return Profile.FLAT
    if "transaction_id" in body:
        return Profile.SUPERSET
    return Profile.TRANS if "/" in body["trans_status"] else Profile.TRANS_BARE
