"""The states of a callback under /_sandbox: pending, retrying, delivered, failed and dropped.

`retry` makes the next attempt now, without moving the clock.
"""

from typing import Any

import pytest

from tests.conftest import Sandbox
from tests.web.conftest import Receiver
from tests.web.control_api import DEAD, ask, assert_error, get, only, post


async def listed(sandbox: Sandbox, query: str) -> list[str]:
    """The transaction ids of the callbacks that a filter finds, oldest first."""
    page = await get(sandbox, f"callbacks?{query}")
    return [each["transaction_id"] for each in reversed(page["callbacks"])]


@pytest.fixture
async def states(sandbox: Sandbox) -> Sandbox:
    """A gateway with a callback of each state, whose transaction has the name of the state."""
    for name, callback in (("dropped", {"drop": True}), ("pending", {"delay_ms": 86_400_000})):
        match = {"transaction_id": name}
        await post(sandbox, "overrides", match=match, callback=callback)
    await sandbox.collect(transaction_id="failed", callback_url=DEAD)
    await sandbox.advance(minutes=11)
    await sandbox.collect(transaction_id="retrying", callback_url=DEAD)
    for name in ("delivered", "dropped", "pending"):
        await sandbox.collect(transaction_id=name)
    await sandbox.advance(seconds=1)
    return sandbox


@pytest.mark.decision("D30")
class TestStates:
    @pytest.mark.parametrize("state", ["pending", "retrying", "delivered", "failed", "dropped"])
    async def test_each_is_found_by_its_name(self, states: Sandbox, state: str) -> None:
        assert await listed(states, f"state={state}") == [state]

    async def test_unacknowledged_are_those_that_retry_and_those_that_failed(
        self, states: Sandbox
    ) -> None:
        assert await listed(states, "unacknowledged=true") == ["failed", "retrying"]
        rest = await listed(states, "unacknowledged=false")
        assert sorted(rest) == ["delivered", "dropped", "pending"]

    @pytest.mark.parametrize(
        ("match", "count"),
        [
            ({"state": "retrying"}, 1),
            ({"unacknowledged": True}, 2),
            ({"unacknowledged": True, "state": "failed"}, 1),
            ({"unacknowledged": True, "state": "delivered"}, 0),
        ],
    )
    async def test_searches_take_them_too(
        self, states: Sandbox, match: dict[str, Any], count: int
    ) -> None:
        assert (await post(states, "callbacks/count", match=match)).body == {"count": count}

    async def test_unacknowledged_is_true_or_false(self, sandbox: Sandbox) -> None:
        for text in ["yes", "1", "True", ""]:
            seen = await ask(sandbox, "GET", f"/_sandbox/callbacks?unacknowledged={text}")

            assert_error(seen, 400, "unacknowledged must be true or false")


async def shown(sandbox: Sandbox, transaction_id: str = "T1") -> dict[str, Any]:
    found = await only(sandbox, "callbacks", f"transaction_id={transaction_id}")
    return dict(found)


async def settled(sandbox: Sandbox) -> None:
    """Run all jobs that are due now, without moving the clock."""
    await sandbox.advance(seconds=0)


@pytest.mark.decision("D30")
class TestOne:
    async def test_the_next_attempt_comes_now(self, sandbox: Sandbox, receiver: Receiver) -> None:
        receiver.answer_in_turn(500, 200)
        await sandbox.collect(callback_url=receiver.url)
        await sandbox.advance(seconds=1)
        before = sandbox.gateway.clock.now()
        callback = await shown(sandbox)
        assert callback["attempts"][0]["next_attempt_at"] == "2026-01-01T09:05:01.000Z"

        retried = await post(sandbox, f"callbacks/{callback['id']}/retry")
        await settled(sandbox)

        assert (retried.status, retried.body["state"]) == (202, "retrying")
        assert retried.body["attempts"][0]["next_attempt_at"] == "2026-01-01T09:00:01.000Z"
        after = await shown(sandbox)
        assert (after["state"], len(after["attempts"])) == ("delivered", 2)
        assert sandbox.gateway.clock.now() == before

    async def test_those_that_follow_keep_their_spacing_and_their_number(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.collect(callback_url=DEAD)
        await sandbox.advance(seconds=1)
        await sandbox.advance(minutes=1)
        await post(sandbox, f"callbacks/{(await shown(sandbox))['id']}/retry")

        await sandbox.advance(hours=1)

        callback = await shown(sandbox)
        assert [each["at"][11:19] for each in callback["attempts"]] == [
            "09:00:01",
            "09:01:01",
            "09:06:01",
        ]
        assert callback["state"] == "failed"

    async def test_retried_twice_it_is_attempted_once(
        self, sandbox: Sandbox, receiver: Receiver
    ) -> None:
        receiver.answer_in_turn(500, 500)
        await sandbox.collect(callback_url=receiver.url)
        await sandbox.advance(seconds=1)
        callback_id = (await shown(sandbox))["id"]
        go_on = receiver.hang()

        first = await post(sandbox, f"callbacks/{callback_id}/retry")
        second = await post(sandbox, f"callbacks/{callback_id}/retry")
        go_on.set()
        await settled(sandbox)

        assert (first.status, second.status) == (202, 202)
        assert len(receiver.deliveries) == 2

    @pytest.mark.parametrize("callback", [{"delay_ms": 60_000}, {"reorder": True}])
    async def test_one_that_an_override_holds_back_comes_now(
        self, sandbox: Sandbox, callback: dict[str, Any]
    ) -> None:
        await post(sandbox, "overrides", match={}, callback=callback)
        await sandbox.collect()
        await sandbox.advance(seconds=1)
        waiting = await shown(sandbox)
        assert waiting["state"] == "pending"

        await post(sandbox, f"callbacks/{waiting['id']}/retry")
        await settled(sandbox)
        await sandbox.advance(minutes=2)

        assert len(await sandbox.inbox()) == 1

    @pytest.mark.parametrize("url", [None, DEAD])
    async def test_one_that_waits_for_nothing_is_for_resend(
        self, sandbox: Sandbox, url: str | None
    ) -> None:
        state = "delivered" if url is None else "failed"
        await sandbox.collect(callback_url=url or sandbox.inbox_url("orders"))
        await sandbox.advance(minutes=11)
        callback = await shown(sandbox)
        assert callback["state"] == state

        seen = await post(sandbox, f"callbacks/{callback['id']}/retry")

        assert_error(seen, 409, f"is {state}", "resend")
        assert seen.body["error"]["code"] == "not_waiting"
        assert await shown(sandbox) == callback

    async def test_one_that_is_not_there(self, sandbox: Sandbox) -> None:
        assert_error(await post(sandbox, "callbacks/C1/retry"), 404, "no 'C1' among the callbacks")


@pytest.mark.decision("D30")
class TestAll:
    @pytest.fixture
    async def refused(self, sandbox: Sandbox) -> Sandbox:
        """A gateway with two retrying callbacks, one more of another service, and one delivered."""
        for number in range(2):
            await sandbox.collect(transaction_id=f"T{number}", callback_url=DEAD)
        await sandbox.collect(transaction_id="other", service_id=56, callback_url=DEAD)
        await sandbox.collect(transaction_id="good")
        await sandbox.advance(seconds=1)
        return sandbox

    @pytest.mark.parametrize(
        ("body", "retried"),
        [({}, ["T0", "T1", "other"]), ({"service_id": 55}, ["T0", "T1"]), ({"service_id": 99}, [])],
    )
    async def test_those_that_retry_are_tried_now(
        self, refused: Sandbox, body: dict[str, Any], retried: list[str]
    ) -> None:
        seen = await post(refused, "callbacks/retry", **body)
        await settled(refused)

        assert seen.status == 202
        assert sorted(each["transaction_id"] for each in seen.body["callbacks"]) == retried
        page = await get(refused, "callbacks?state=retrying")
        attempts = {each["transaction_id"]: len(each["attempts"]) for each in page["callbacks"]}
        assert attempts == {n: 2 if n in retried else 1 for n in ("T0", "T1", "other")}
