"""The states of a callback under /_sandbox: pending, retrying, delivered, failed and dropped."""

from typing import Any

import pytest

from tests.conftest import Sandbox
from tests.web.control_api import DEAD, ask, assert_error, get, post


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
