"""Callbacks that an override drops, duplicates, delays, reorders or changes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from sandbox_sim.callbacks.bodies import sign
from sandbox_sim.overrides import overrides
from sandbox_sim.ports import StoreError
from sandbox_sim.records.callbacks import DeliveryState, Profile
from tests import postgres
from tests.conftest import Sandbox, StartSandbox
from tests.web.conftest import Receiver, kept_callback, kept_callbacks, profile_of
from tests.web.control_api import ask, only
from tests.web.hosted_page import status
from tests.web.overriding import override

pytestmark = [pytest.mark.decision("D31")]

SECRET = "sandbox_secret"


def refs(receiver: Receiver) -> list[str]:
    """The transaction ids of the callbacks that arrived, in order."""
    return [delivery.body["trans_ref"] for delivery in receiver.deliveries]


async def override_next(sandbox: Sandbox, **callback: Any) -> str:
    """Add an override for the callback of the next payment, and return its id."""
    return str((await override(sandbox, callback=callback, times=1))["id"])


@pytest.mark.decision("D30")
async def test_a_dropped_callback_can_be_resent(sandbox: Sandbox, receiver: Receiver) -> None:
    made = await override_next(sandbox, drop=True)
    receiver.answer_in_turn(500, 200)
    await sandbox.collect(callback_url=receiver.url)

    await sandbox.advance(hours=1)

    assert receiver.deliveries == []
    shown = await only(sandbox, "callbacks", "state=dropped")
    assert shown["body"]["trans_status"] == "000/SUCCESS"
    assert shown["note"] == f"override {made} asks for callback drop"
    assert shown["attempts"] == []

    callback = await kept_callback(sandbox)
    await ask(sandbox, "POST", f"/_sandbox/callbacks/{callback.id}/resend")
    await sandbox.advance(minutes=5)

    assert [each.raw for each in receiver.deliveries] == [callback.body.encode()] * 2
    assert (await kept_callback(sandbox)).state is DeliveryState.DELIVERED


@pytest.mark.decision("D18", "D29")
async def test_duplicate_callbacks_are_identical(sandbox: Sandbox, receiver: Receiver) -> None:
    await override_next(sandbox, duplicate=3)
    await sandbox.collect(callback_url=receiver.url)

    await sandbox.advance(seconds=1)

    first, *others = receiver.deliveries
    assert len(others) == 2
    assert {each.raw for each in others} == {first.raw}
    assert {each.signature for each in others} == {first.signature} == {sign(first.raw, SECRET)}


async def test_delay_ms_postpones_the_callback(sandbox: Sandbox, receiver: Receiver) -> None:
    await override_next(sandbox, delay_ms=90_000)
    await sandbox.collect(callback_url=receiver.url)

    await sandbox.advance(seconds=90)
    assert await status(sandbox) == "000"
    assert receiver.deliveries == []

    await sandbox.advance(seconds=1)
    assert refs(receiver) == ["T1"]


class TestReorder:
    @pytest.mark.parametrize(
        ("meanwhile", "arrived"),
        [
            (None, ["T2", "T1", "T3"]),
            ("callbacks/T1/resend", ["T1", "T2", "T3"]),
            ("reset", ["T2", "T3"]),
        ],
    )
    async def test_a_later_callback_arrives_before_a_reordered_one(
        self, sandbox: Sandbox, receiver: Receiver, meanwhile: str | None, arrived: list[str]
    ) -> None:
        """A resend sends the reordered callback at once, and a reset deletes it."""
        await override_next(sandbox, reorder=True)
        for transaction_id in "T1", "T2", "T3":
            await sandbox.collect(transaction_id=transaction_id, callback_url=receiver.url)
            await sandbox.advance(seconds=2)
            if meanwhile and transaction_id == "T1":
                body = b'{"service_id": 55}' if meanwhile == "reset" else b""
                await ask(sandbox, "POST", f"/_sandbox/{meanwhile}", body)
                await sandbox.advance(seconds=0)
        await sandbox.advance(hours=1)

        assert refs(receiver) == arrived

    async def test_a_reordered_callback_waits_at_most_a_minute(
        self, sandbox: Sandbox, receiver: Receiver
    ) -> None:
        """An earlier callback does not overtake it, and neither does one of another service."""
        await sandbox.collect(transaction_id="T0", callback_url=receiver.url)
        await override_next(sandbox, reorder=True, duplicate=2)
        await sandbox.collect(callback_url=receiver.url)
        other = {"transaction_id": "of another", "service_id": 56}
        await sandbox.collect(**other, callback_url=receiver.url)

        await sandbox.advance(seconds=60)
        assert refs(receiver) == ["T0", "of another"]
        assert (await kept_callbacks(sandbox))[-1].attempts == ()
        await sandbox.advance(seconds=1)

        assert refs(receiver) == ["T0", "of another", "T1", "T1"]
        await sandbox.collect(transaction_id="T2", callback_url=receiver.url)
        await sandbox.advance(hours=1)
        assert refs(receiver) == ["T0", "of another", "T1", "T1", "T2"]


@pytest.mark.spec("delivery.1")
@pytest.mark.decision("D29")
@pytest.mark.parametrize("signed", [True, False])
async def test_a_wrong_signature_is_well_formed(
    start_sandbox: StartSandbox, receiver: Receiver, signed: bool
) -> None:
    sandbox = await start_sandbox(sign_callbacks=signed)
    for url in receiver.url, sandbox.inbox_url("orders"):
        await override_next(sandbox, bad_signature=True)
        await sandbox.collect(callback_url=url)
        await sandbox.advance(seconds=1)

    signature = receiver.delivery.signature
    assert signature is not None
    assert signature != sign(receiver.delivery.raw, SECRET)
    assert len(bytes.fromhex(signature)) == 32
    assert [message["signature"] for message in await sandbox.inbox()] == ["invalid"]


@pytest.mark.decision("D27")
async def test_an_override_chooses_the_profile_of_the_callback(sandbox: Sandbox) -> None:
    for profile in Profile:
        await override_next(sandbox, profile=profile)
        await sandbox.collect(callback_url=f"{sandbox.inbox_url(profile)}?to=/wc-api/pay")

        await sandbox.advance(seconds=1)

        assert profile_of(await sandbox.callback(profile)) == profile


class TestBeforeTheAnswer:
    @pytest.mark.spec("states.transactions")
    @pytest.mark.decision("D16")
    @pytest.mark.parametrize("operation", ["collect", "card"])
    @pytest.mark.parametrize("code", ["000", "001", "003"])
    async def test_the_transaction_settles_and_its_callback_is_sent_before_the_answer(
        self,
        sandbox: Sandbox,
        receiver: Receiver,
        monkeypatch: pytest.MonkeyPatch,
        operation: str,
        code: str,
    ) -> None:
        monkeypatch.setattr(overrides, "MAX_WAIT_S", 3_600.0)  # the callback ends the wait
        await override(sandbox, outcome={"status": code}, callback={"before_response": True})
        answered = asyncio.Event()
        seen: list[tuple[bool, str]] = []

        async def look(_request: web.Request) -> web.StreamResponse:
            seen.append((answered.is_set(), await status(sandbox)))
            return web.Response()

        receiver.answer = look
        answer = await getattr(sandbox, operation)(callback_url=receiver.url)
        answered.set()

        assert answer.code == ("000" if operation == "card" else "202")
        assert seen == [(False, code)]
        await sandbox.advance(minutes=1)
        assert len(receiver.deliveries) == 1

    @pytest.mark.decision("D16")
    async def test_a_receiver_that_waits_for_the_answer_does_not_block_it(
        self, sandbox: Sandbox, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A client with one thread answers the callback only after it has its own answer."""
        monkeypatch.setattr(overrides, "MAX_WAIT_S", 0.05)
        await override_next(sandbox, before_response=True)
        go_on = receiver.hang()

        assert (await sandbox.collect(callback_url=receiver.url)).code == "202"
        assert (await kept_callback(sandbox)).attempts == ()

        go_on.set()
        await sandbox.advance(seconds=0)
        assert (await kept_callback(sandbox)).state is DeliveryState.DELIVERED

    async def test_a_payment_stays_accepted_if_the_store_fails_meanwhile(
        self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await override_next(sandbox, before_response=True)
        unit: Any = type(sandbox.gateway.store._unit)  # type: ignore[attr-defined]

        async def away(_unit: object, _listing: object) -> None:
            raise StoreError("away")

        monkeypatch.setattr(unit, "list_callbacks", away)

        assert (await sandbox.collect()).code == "202"

    async def test_sqlite_and_postgres_send_the_callback_before_the_answer(
        self, start_sandbox: StartSandbox, receiver: Receiver, tmp_path: Path
    ) -> None:
        for store in f"sqlite:{tmp_path / 'state.sqlite3'}", postgres.empty_database():
            sandbox = await start_sandbox(store=store)
            await override_next(sandbox, before_response=True, duplicate=2)
            receiver.deliveries.clear()

            await sandbox.collect(callback_url=receiver.url)

            assert "T1" in refs(receiver)


async def test_the_override_applies_to_a_payment_that_is_settled_by_hand(sandbox: Sandbox) -> None:
    await override(sandbox, outcome={"status": "002"}, callback={"duplicate": 2})
    await sandbox.collect()

    await ask(sandbox, "POST", "/_sandbox/transactions/55/T1/settle", b'{"status": "003"}')
    await sandbox.advance(seconds=0)

    sent = [message["json"]["trans_status"] for message in await sandbox.inbox()]
    assert sent == ["003/CANCELLED"] * 2
