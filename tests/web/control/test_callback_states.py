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
async def test_callbacks_are_found_by_state_and_by_missing_acknowledgement(states: Sandbox) -> None:
    for state in ("pending", "retrying", "delivered", "failed", "dropped"):
        assert await listed(states, f"state={state}") == [state]
    assert await listed(states, "unacknowledged=true") == ["failed", "retrying"]
    rest = await listed(states, "unacknowledged=false")
    assert sorted(rest) == ["delivered", "dropped", "pending"]

    searches: list[tuple[dict[str, Any], int]] = [
        ({"state": "retrying"}, 1),
        ({"unacknowledged": True}, 2),
        ({"unacknowledged": True, "state": "failed"}, 1),
        ({"unacknowledged": True, "state": "delivered"}, 0),
    ]
    for match, count in searches:
        assert (await post(states, "callbacks/count", match=match)).body == {"count": count}
    for text in ["yes", "1", "True", ""]:
        seen = await ask(states, "GET", f"/_sandbox/callbacks?unacknowledged={text}")
        assert_error(seen, 400, "unacknowledged must be true or false")


@pytest.mark.decision("D30")
class TestRetry:
    async def test_retry_makes_the_next_attempt_now_and_only_once(
        self, sandbox: Sandbox, receiver: Receiver
    ) -> None:
        receiver.answer_in_turn(500)
        await sandbox.collect(callback_url=receiver.url)
        await sandbox.advance(seconds=1)
        before = sandbox.gateway.clock.now()
        callback = await only(sandbox, "callbacks")
        assert callback["attempts"][0]["next_attempt_at"] == "2026-01-01T09:05:01.000Z"
        go_on = receiver.hang()

        retried, again = [
            await post(sandbox, f"callbacks/{callback['id']}/retry") for _ in range(2)
        ]
        go_on.set()
        await sandbox.advance(seconds=0)

        assert (retried.status, again.status, retried.body["state"]) == (202, 202, "retrying")
        assert retried.body["attempts"][0]["next_attempt_at"] == "2026-01-01T09:00:01.000Z"
        after = await only(sandbox, "callbacks")
        assert (after["state"], len(after["attempts"])) == ("delivered", 2)
        assert len(receiver.deliveries) == 2
        assert sandbox.gateway.clock.now() == before

    async def test_later_attempts_keep_their_interval_and_number(self, sandbox: Sandbox) -> None:
        await sandbox.collect(callback_url=DEAD)
        await sandbox.advance(seconds=1)
        await sandbox.advance(minutes=1)
        await post(sandbox, "callbacks/T1/retry")

        await sandbox.advance(hours=1)

        callback = await only(sandbox, "callbacks")
        times = [each["at"][11:19] for each in callback["attempts"]]
        assert times == ["09:00:01", "09:01:01", "09:06:01"]
        assert callback["state"] == "failed"

    @pytest.mark.parametrize("callback", [{"delay_ms": 60_000}, {"reorder": True}])
    async def test_retry_sends_a_callback_that_an_override_delays(
        self, sandbox: Sandbox, callback: dict[str, Any]
    ) -> None:
        await post(sandbox, "overrides", match={}, callback=callback)
        await sandbox.collect()
        await sandbox.advance(seconds=1)
        assert (await only(sandbox, "callbacks"))["state"] == "pending"

        await post(sandbox, "callbacks/T1/retry")
        await sandbox.advance(seconds=0)
        await sandbox.advance(minutes=2)

        assert len(await sandbox.inbox()) == 1

    async def test_retry_refuses_a_final_callback_and_names_resend(self, states: Sandbox) -> None:
        for state in ("delivered", "failed"):
            callback = await only(states, "callbacks", f"state={state}")

            seen = await post(states, f"callbacks/{callback['id']}/retry")

            assert_error(seen, 409, f"is {state}", "resend")
            assert seen.body["error"]["code"] == "not_waiting"
            assert await only(states, "callbacks", f"state={state}") == callback
        assert_error(await post(states, "callbacks/C1/retry"), 404, "no 'C1' among the callbacks")


@pytest.mark.decision("D30")
@pytest.mark.parametrize(
    ("body", "retried"),
    [({}, ["T0", "T1", "other"]), ({"service_id": 55}, ["T0", "T1"]), ({"service_id": 99}, [])],
)
async def test_a_retry_of_all_makes_the_next_attempt_of_each_retrying_callback(
    sandbox: Sandbox, body: dict[str, Any], retried: list[str]
) -> None:
    for number in range(2):
        await sandbox.collect(transaction_id=f"T{number}", callback_url=DEAD)
    await sandbox.collect(transaction_id="other", service_id=56, callback_url=DEAD)
    await sandbox.collect(transaction_id="good")
    await sandbox.advance(seconds=1)

    seen = await post(sandbox, "callbacks/retry", **body)
    await sandbox.advance(seconds=0)

    assert seen.status == 202
    assert sorted(each["transaction_id"] for each in seen.body["callbacks"]) == retried
    page = await get(sandbox, "callbacks?state=retrying")
    attempts = {each["transaction_id"]: len(each["attempts"]) for each in page["callbacks"]}
    assert attempts == {n: 2 if n in retried else 1 for n in ("T0", "T1", "other")}
