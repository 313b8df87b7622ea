"""A gateway in production at an SMSC that others wrote, with all its faults (D39)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from sandbox_sim.networks.smpp import adapter
from sandbox_sim.sms.sms_encoding import measure
from tests.conftest import Sandbox, StartSandbox, basic
from tests.networks.smpp.node_smsc import PASSWORD, NodeSmsc, node_modules, running
from tests.production.settings import LIVE
from tests.web.control_api import get, post

pytestmark = [pytest.mark.decision("D39"), pytest.mark.timeout(60)]

T = TypeVar("T")
RTHROTTLED, RMSGQFUL = 0x58, 0x14
LONG = "The quick brown fox {jumps} over the lazy dog. " * 8


@pytest.fixture(scope="module")
def one_smsc(request: pytest.FixtureRequest) -> Iterator[NodeSmsc]:
    with running(node_modules(request.config)) as smsc:
        yield smsc


@pytest.fixture
def smsc(one_smsc: NodeSmsc) -> NodeSmsc:
    one_smsc.do("reset")
    return one_smsc


@dataclass
class Texter:
    """A client of mode P at a gateway that is bound at the SMSC."""

    sandbox: Sandbox
    smsc: NodeSmsc
    start: Callable[[], Any]

    async def send(self, text: str = "Hello", number: str = "0244000001") -> str:
        """Send a message; returns its processing_id."""
        sent = await self.sandbox.sms(msg_body=text, customer_number=number)
        assert sent.body["response_code"] == "370", sent
        return str(sent.data["processing_id"])

    async def message(self) -> dict[str, Any]:
        """The newest message as the client's history has it."""
        return dict((await self.sandbox.history()).data[0])

    async def becomes(self, status: str) -> dict[str, Any]:
        """The newest message, as soon as it has this status."""
        return await self.until(self.message, lambda message: message["status"] == status)

    async def comes(self, count: int) -> list[dict[str, Any]]:
        """The parts that came to the SMSC, as soon as there are this many."""

        async def submits() -> list[dict[str, Any]]:
            return await asyncio.to_thread(lambda: self.smsc.submits)

        return await self.until(submits, lambda found: len(found) >= count)

    async def until(self, ask: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
        """Ask until the answer holds, and return it; due work of the gateway runs in between."""
        while not holds(found := await ask()):
            await self.sandbox.advance(seconds=0)
        return found

    async def bound(self) -> None:
        await self.until(self.health, lambda network: bool(network["ok"]))

    async def health(self) -> dict[str, Any]:
        (network,) = (await post(self.sandbox, "networks/check")).body["networks"]
        return dict(network["health"])

    async def receipt(self, message_id: str, state: str = "DELIVRD") -> object:
        """Let the SMSC send a receipt; returns the status that it is answered with."""
        done = await asyncio.to_thread(self.smsc.do, "receipt", id=message_id, state=state)
        return done["status"]

    async def ids(self, count: int) -> list[str]:
        """The ids of the parts of the newest message, as soon as this many are known."""

        async def found() -> list[str]:
            exchanges = (await self.record())["attempts"][0]["exchanges"]
            said = [each["answer_body"] for each in exchanges if each["purpose"] == "submit"]
            return [text.split()[1] for text in said if text.startswith("ESME_ROK ")]

        return await self.until(found, lambda ids: len(ids) == count)

    async def record(self) -> dict[str, Any]:
        """The newest message with its attempts, as a person sees it."""
        (attempt, *_) = (await get(self.sandbox, "attempts"))["attempts"]
        return dict(await get(self.sandbox, f"transactions/55/{attempt['transaction_id']}"))

    async def settled(self) -> None:
        """Wait until the gateway has recorded what it knows."""
        while [task for task in asyncio.all_tasks() if "BackgroundJobs" in repr(task)]:
            await self.sandbox.advance(seconds=0)

    async def restart(self) -> None:
        """Stop the gateway and start it again with its file."""
        await self.settled()
        await self.sandbox.stop()
        self.sandbox = await self.start()
        await self.bound()


@pytest.fixture
async def texter(
    start_sandbox: StartSandbox, smsc: NodeSmsc, tmp_path: Path
) -> AsyncIterator[Texter]:
    async def start() -> Sandbox:
        sandbox = await start_sandbox(
            production=True,
            store=f"sqlite:{tmp_path / 'state.sqlite3'}",
            credentials=[LIVE],
            networks={"smsc": smsc.settings},
            routes=[{"network": "smsc"}],
        )
        sandbox.headers["Authorization"] = basic("live_key", "live_secret")
        return sandbox

    each = Texter(await start(), smsc, start)
    await post(
        each.sandbox, "ledger/topup", service_id=55, units=100, mode="P", by="ama", reason="stock"
    )
    await each.bound()
    yield each
    await each.sandbox.stop()


async def test_a_message_arrives_as_it_was_written_and_becomes_sent(texter: Texter) -> None:
    await texter.send("Akwaaba! 5€ [ok]")
    (submit,) = await texter.comes(1)

    assert (submit["text"], submit["data_coding"], submit["udh"]) == ("Akwaaba! 5€ [ok]", 0, [])
    assert (submit["destination_addr"], submit["source_addr"]) == ("233244000001", "Shop")
    assert submit["registered_delivery"] == 1
    assert (await texter.message())["status"] == "QUEUED"
    assert await texter.receipt("1") == 0
    assert (await texter.becomes("SENT"))["sent_at"] is not None
    assert PASSWORD not in str(await get(texter.sandbox, "attempts"))


@pytest.mark.parametrize("text", [LONG, "Ɛnnɛ yɛ dɛ! 🎉 " * 12], ids=["gsm", "ucs2"])
async def test_a_long_message_arrives_in_the_parts_that_are_charged(
    texter: Texter, text: str
) -> None:
    pages = measure(text).page_count
    await texter.send(text)
    submits = await texter.comes(pages)

    assert "".join(submit["text"] for submit in submits) == text
    # Of a header's elements: concatenation, its length, the reference, the count and the place.
    assert {submit["udh"][0][-2] for submit in submits} == {pages}
    assert [submit["udh"][0][-1] for submit in submits] == [*range(1, pages + 1)]
    for message_id in reversed(await texter.ids(pages)):
        assert (await texter.message())["status"] == "QUEUED"
        assert await texter.receipt(message_id) == 0
    await texter.becomes("SENT")


@pytest.mark.parametrize("status", [RTHROTTLED, RMSGQFUL])
async def test_a_throttled_part_is_sent_again_and_taken_once(
    texter: Texter, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "FIRST_PAUSE_S", 0.01)
    texter.smsc.do("plan", plan=[{}, {"status": status}, {"status": status}])
    await texter.send(LONG)
    submits = await texter.comes(5)

    for message_id in await texter.ids(3):
        await texter.receipt(message_id)
    await texter.becomes("SENT")
    assert [submit["udh"][0][-1] for submit in submits] == [1, 2, 2, 2, 3]
    taken = [submit["udh"][0][-1] for submit in texter.smsc.submits if not submit["status"]]
    assert taken == [1, 2, 3]


async def test_receipts_after_a_restart_still_match_their_message(texter: Texter) -> None:
    await texter.send(LONG)
    first, second, third = await texter.ids(3)
    assert await texter.receipt(first) == 0

    await texter.restart()
    assert await texter.receipt(second) == 0
    await texter.restart()
    assert (await texter.message())["status"] == "QUEUED"
    assert await texter.receipt(third) == 0

    await texter.becomes("SENT")
    assert len(texter.smsc.submits) == 3
