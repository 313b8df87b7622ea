"""/_sandbox/listen: a program on another machine takes callbacks, and its answers are recorded."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from sandbox_sim.callbacks.bodies import check_signature
from tests.conftest import Sandbox, Seen
from tests.web.control_api import ask, assert_error, only, post
from tests.web.events import Listener

LOCAL = "http://127.0.0.1:5000/callback"


class Program(NamedTuple):
    """A listener whose answers the test sends."""

    sandbox: Sandbox
    stream: Listener
    name: str

    async def next(self) -> dict[str, Any]:
        """The next callback."""
        while (block := await self.stream.block()).startswith(":"):
            pass
        event, data = (line.partition(": ")[2] for line in block.splitlines())
        assert event == "callback"
        found: dict[str, Any] = json.loads(data)
        return found

    async def answer(self, number: int, **answer: Any) -> Seen:
        return await post(self.sandbox, f"listen/{self.name}/answers", number=number, **answer)


@asynccontextmanager
async def listening(sandbox: Sandbox, **query: Any) -> AsyncIterator[Program]:
    params = {"forward_to": LOCAL, **query}
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/listen", params=params) as response:
        assert response.status == 200, await response.text()
        stream = Listener(response)
        assert await stream.block() == "retry: 1000\n"
        hello = json.loads((await stream.block()).partition("data: ")[2])
        assert hello["shared"] is False
        yield Program(sandbox, stream, hello["listener"])


def settle(sandbox: Sandbox) -> asyncio.Task[None]:
    """Let the payment settle; the task ends after the attempt of its callback."""
    return asyncio.create_task(sandbox.advance(seconds=1))


@pytest.fixture
async def paid(sandbox: Sandbox) -> Sandbox:
    """A gateway with a payment that is not settled yet."""
    await sandbox.collect(transaction_id="T1001")
    return sandbox


@pytest.mark.decision("D29")
async def test_a_listener_gets_the_signed_body_and_its_answer_is_recorded(paid: Sandbox) -> None:
    """An answer that comes too late is not recorded."""
    async with listening(paid) as program:
        settling = settle(paid)
        callback = await program.next()
        taken = await program.answer(callback["number"], status_code=500, response_body="oops")
        await settling
        await ask(paid, "PATCH", "/_sandbox/config", b'{"callback_timeout_s": 0.001}')
        await paid.advance(minutes=5)
        late = await program.answer(callback["number"] + 1, status_code=200)

    assert (taken.body, late.body) == ({"recorded": True}, {"recorded": False})
    signature = callback["headers"]["X-Service-Signature"]
    assert check_signature(callback["body"].encode(), signature, ["sandbox_secret"]) == "valid"
    assert json.loads(callback["body"])["trans_ref"] == "T1001"
    assert callback["timeout_s"] == 30
    attempt, second = (await only(paid, "callbacks"))["attempts"]
    assert (attempt["status_code"], attempt["response_body"]) == (500, "oops")
    assert attempt["sent_to"] == LOCAL
    assert attempt["next_attempt_at"] is not None
    assert second["verdict"] == "not acknowledged: no answer within 0.001 s"
    assert await paid.inbox() == []


async def test_a_listener_that_fails_or_disconnects_fails_its_attempt(paid: Sandbox) -> None:
    """Without a listener the next attempt goes to the address of the callback."""
    problem = "no connection to 127.0.0.1:5000: Connection refused"
    async with listening(paid) as program:
        settling = settle(paid)
        number = (await program.next())["number"]
        await program.answer(number, problem=problem, failure="connection")
        await settling
        retrying = asyncio.create_task(paid.advance(minutes=5))
        await program.next()
    await retrying

    await paid.advance(minutes=5)

    failed, gone, sent = (await only(paid, "callbacks"))["attempts"]
    assert failed["verdict"] == f"not acknowledged: {problem}"
    assert "the listener that it was forwarded to disconnected" in gone["verdict"]
    assert sent["verdict"] == "acknowledged with HTTP 200"
    assert len(await paid.inbox()) == 1


async def test_a_listener_of_the_service_precedes_listeners_of_all(sandbox: Sandbox) -> None:
    async with (
        listening(sandbox, service_id=55) as of_one,
        listening(sandbox) as older,
        listening(sandbox) as newer,
    ):
        await sandbox.collect(transaction_id="of one")
        await sandbox.collect(transaction_id="of another", service_id=56)
        settling = settle(sandbox)
        for program, name in ((of_one, "of one"), (newer, "of another")):
            callback = await program.next()
            assert json.loads(callback["body"])["trans_ref"] == name
            await program.answer(callback["number"], status_code=200)
        await settling
        assert older.name != newer.name


async def test_a_bad_query_and_a_disconnected_listener_are_refused(sandbox: Sandbox) -> None:
    for query, problem in (
        ("forward_to=shop", "forward_to must be an address such as"),
        (f"forward_to={LOCAL}&service_id=x", "service_id must be"),
    ):
        assert_error(await ask(sandbox, "GET", f"/_sandbox/listen?{query}"), 400, problem)
    answer = await ask(sandbox, "POST", "/_sandbox/listen/gone/answers", b'{"number": 1}')
    assert_error(answer, 404, "connect again")
