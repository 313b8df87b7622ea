"""`GET transactions?open_longer_than_s=…` in both modes, and `POST transactions/…/ask` (D39)."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox, basic
from tests.production.client import live
from tests.production.settings import BUILT_IN, LIVE
from tests.web.control_api import ask, assert_error, assert_unknown, get, ids, only, post

# The carrier takes every payment, its answer is lost, and it decides after five minutes.
SLOW: Mapping[str, Any] = {
    "adapter": "simulated", "failures": {"lost_answer": 1}, "notify": "never",
    "settle_after_ms": 300_000, "poll_after_s": 3600, "poll_at_most_s": 3600,
}  # fmt: skip

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
async def both(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway in production with an open payment of each mode; later requests are of mode S."""
    both = await live(
        start_sandbox, {"slow": SLOW}, credentials=[LIVE, BUILT_IN], approval="handset",
        approval_timeout_s=86_400, approved_senders=["Shop"],
    )  # fmt: skip
    await both.collect(transaction_id="P1", request_time="2026-01-31 09:30:00")
    both.headers["Authorization"] = basic()
    await both.collect(transaction_id="S1", service_id=56)
    return both


class TestOpenLongerThan:
    async def test_the_filter_lists_older_transactions_of_both_modes(self, both: Sandbox) -> None:
        assert await ids(both, "open_longer_than_s=600") == []

        await both.advance(seconds=601)
        await both.collect(transaction_id="S2")

        assert sorted(await ids(both, "open_longer_than_s=600")) == ["P1", "S1"]
        assert await ids(both, "waiting=true") == []

    async def test_the_filter_combines_with_other_filters_and_pages(self, both: Sandbox) -> None:
        for query, found in (
            ("mode=P", ["P1"]), ("service_id=56", ["S1"]), ("mode=P&service_id=56", [])
        ):  # fmt: skip
            assert await ids(both, f"open_longer_than_s=0&{query}") == found

        first = await get(both, "transactions?open_longer_than_s=0&limit=1")
        second = await get(both, f"transactions?open_longer_than_s=0&limit=1&after={first['next']}")
        listed = [*first["transactions"], *second["transactions"]]
        assert sorted(each["transaction_id"] for each in listed) == ["P1", "S1"]
        assert second["next"] is None

        for path in ("attempts?", "transactions?waiting=true&"):
            assert_unknown(await ask(both, "GET", f"/_sandbox/{path}after=X1"), "X1")
        (attempt,) = (await get(both, "attempts"))["attempts"]
        assert (await get(both, f"attempts?after={attempt['id']}"))["attempts"] == []

    async def test_a_transaction_of_mode_p_says_why_it_is_open(self, both: Sandbox) -> None:
        found = await only(both, "transactions", "open_longer_than_s=0&mode=P")

        (why,) = found["open_because"]
        # The jitter makes it at most a tenth later.
        assert why.startswith(
            "network slow gives no outcome; not asked yet, next at 2026-01-01T10:0"
        )
        assert found["waiting"] == []

    async def test_bad_seconds_and_the_waiting_filter_are_refused(self, both: Sandbox) -> None:
        wrong = "open_longer_than_s must be seconds, at most 315360000"
        for query, says in (
            *((f"open_longer_than_s={each}", wrong) for each in ("10m", "-1", "999999999")),
            ("open_longer_than_s=1&waiting=true", "give one of them"),
        ):
            answer = await ask(both, "GET", f"/_sandbox/transactions?{query}")
            assert says in answer.body["error"]["message"]
            assert answer.status == 400


async def test_the_network_is_asked_and_its_answer_is_saved_and_shown(both: Sandbox) -> None:
    """An answer that decides settles the payment at once."""
    asked = await post(both, "transactions/55/P1/ask")
    assert asked.status == 200
    assert (asked.body["network_said"], asked.body["status"]) == (
        "network slow says pending", "002"
    )  # fmt: skip
    assert asked.body["attempts"][0]["polls"] == 1
    assert asked.body["open_because"][0].startswith("network slow says pending; asked once, n")

    await both.advance(seconds=301)
    asked = await post(both, "transactions/P1/ask")
    assert (asked.body["network_said"], asked.body["status"]) == (
        "network slow says succeeded", "000"
    )  # fmt: skip
    assert asked.body["open_because"] == []
    assert await ids(both, "open_longer_than_s=0&mode=P") == []


async def test_a_transaction_of_mode_s_has_no_network_to_ask(both: Sandbox) -> None:
    asked = await post(both, "transactions/S1/ask")

    assert_error(asked, 409, "no network can be asked about S1", "mode S")
    assert asked.body["error"]["code"] == "cannot_ask"
    for path in ("transactions/none/ask", "transactions/56/P1/ask"):
        assert_error(await post(both, path), 404, "among the transactions")
