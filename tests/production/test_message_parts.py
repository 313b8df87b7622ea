"""Messages that go out in parts: the network reports on each part (D39)."""

from collections.abc import Sequence

import pytest

from sandbox_sim.ports import STORE_PAUSE_S
from sandbox_sim.ports.network import NetworkEvents, Notification
from sandbox_sim.production.notifications import ExchangeLog, NetworkEventSink
from sandbox_sim.records.attempts import Attempt
from sandbox_sim.records.exchanges import NotificationState
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.records.reports import Outcome
from tests.fakes import WatchedClock
from tests.production.desk import Desk
from tests.production.texting import UNITS, a_desk, messages, send, statuses
from tests.units import unit_of

pytestmark = pytest.mark.decision("D39")

ARRIVED, FAILED = Outcome.SUCCEEDED, Outcome.FAILED


def events_of(desk: Desk) -> NetworkEvents:
    return NetworkEventSink("first", ExchangeLog(desk.store, desk.clock), desk.notifications)


async def sent(desk: Desk, pages: int = 3) -> str:
    """Send a message of this many pages; returns the id of its attempt."""
    await send(desk, msg_body="x" * 153 * pages)
    await desk.run_due()
    return desk.first.submits[-1].attempt_id


async def take_parts(desk: Desk, attempt_id: str, *ids: str, total: int = 3) -> None:
    for number, network_id in enumerate(ids, 1):
        await events_of(desk).part_taken(attempt_id, number, total, network_id)


async def report(desk: Desk, part_id: str, outcome: Outcome = ARRIVED, reason: str = "") -> None:
    await events_of(desk).notified(Notification(outcome, part_id=part_id, reason=reason))


async def attempt(desk: Desk, attempt_id: str) -> Attempt:
    found = await unit_of(desk.store).attempt(attempt_id)
    assert found is not None
    return found


async def exchanges(desk: Desk, attempt_id: str) -> Sequence[str]:
    found = await unit_of(desk.store).exchanges_of(attempt_id)
    return [each.request_body for each in found]


@pytest.fixture
async def desk() -> Desk:
    return await a_desk()


async def test_a_message_is_sent_when_all_its_parts_arrived_in_any_order(desk: Desk) -> None:
    attempt_id = await sent(desk)
    await take_parts(desk, attempt_id, "a", "b", "c")

    for part_id, outcome in (("c", ARRIVED), ("a", ARRIVED), ("a", ARRIVED), ("a", FAILED)):
        await report(desk, part_id, outcome)
        assert await statuses(desk) == ["QUEUED"]
    await report(desk, "b")

    assert await statuses(desk) == ["SENT"]
    assert (await desk.balances())[UNITS] == 7
    assert '"part_id": "b"' in (await exchanges(desk, attempt_id))[-1]


async def test_a_failed_part_fails_the_message_and_refunds_it_once(desk: Desk) -> None:
    attempt_id = await sent(desk)
    await take_parts(desk, attempt_id, "a", "b", "c")

    await report(desk, "a")
    await report(desk, "b", FAILED, "UNDELIV 001")
    for part_id, outcome in (("b", FAILED), ("c", FAILED), ("c", ARRIVED), ("a", ARRIVED)):
        await report(desk, part_id, outcome)

    (message,) = await messages(desk)
    assert (message.status, message.error_message) == ("REFUNDED", "UNDELIV 001")
    assert (await desk.balances())[UNITS] == 10
    assert (await attempt(desk, attempt_id)).contradiction == ""


async def test_a_failure_of_a_part_that_arrived_is_a_contradiction(desk: Desk) -> None:
    attempt_id = await sent(desk, pages=2)
    await take_parts(desk, attempt_id, "a", "b", total=2)
    await report(desk, "a")
    await report(desk, "b")

    await report(desk, "a", FAILED, "UNDELIV")

    assert await statuses(desk) == ["SENT"]
    assert "failed after succeeded: UNDELIV" in (await attempt(desk, attempt_id)).contradiction


async def test_a_report_that_comes_before_the_id_of_its_part_is_kept_until_then(desk: Desk) -> None:
    attempt_id = await sent(desk, pages=1)

    await report(desk, "a")
    assert await desk.run_due() == []
    assert await desk.wait(seconds=1) == [JobKind.READ_NOTIFICATION]
    assert await statuses(desk) == ["QUEUED"]
    await take_parts(desk, attempt_id, "a", total=1)
    await desk.wait(seconds=2)

    assert await statuses(desk) == ["SENT"]
    kept = await desk.notification()
    assert (kept.state, kept.attempt_id) == (NotificationState.APPLIED, attempt_id)


async def test_a_report_does_not_apply_to_a_message_that_is_sent_later(desk: Desk) -> None:
    await sent(desk, pages=1)
    await report(desk, "a", FAILED, "UNDELIV")
    await desk.wait(seconds=1)

    attempt_id = await sent(desk, pages=1)
    await take_parts(desk, attempt_id, "a", total=1)
    await desk.wait(seconds=2)
    assert await statuses(desk) == ["QUEUED", "QUEUED"]
    await report(desk, "a")

    assert await statuses(desk) == ["QUEUED", "SENT"]


async def test_a_report_about_an_unknown_part_is_given_up_after_a_day(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await report(desk, "of another")
    for _ in range(20):
        await desk.wait(hours=2)

    assert (await desk.notification()).state is NotificationState.UNMATCHED
    assert caplog.messages == ["a notification of network first belongs to no attempt"]
    assert await desk.wait(days=10) == []


async def test_unmatched_reports_cause_a_warning_at_the_tenth_and_then_each_hour(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    async def come(count: int) -> None:
        for number in range(count):
            await report(desk, f"of another {number}")
        for seconds in (1, 2, 4, 8):
            await desk.wait(seconds=seconds)

    await come(9)
    assert caplog.messages == []
    await come(1)
    await come(12)
    await desk.wait(minutes=60)
    first = (
        "network first: 10 receipts match no message, the last one has the id 'of another 0'; "
        "check the setting receipt_ids, and whether another system uses the same account"
    )
    assert caplog.messages == [first]

    await come(1)
    assert "network first: 13 receipts match no message" in caplog.messages[1]
    assert len(caplog.messages) == 2


async def test_reports_that_come_before_the_answer_of_their_submit_cause_no_warning(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    attempt_id = await sent(desk, pages=10)
    names = [str(number) for number in range(10)]
    for name in names:
        await report(desk, name)
    for seconds in (1, 2, 4):
        await desk.wait(seconds=seconds)
    await take_parts(desk, attempt_id, *names, total=10)
    for seconds in (8, 16):
        await desk.wait(seconds=seconds)

    assert await statuses(desk) == ["SENT"]
    assert caplog.messages == []


async def test_the_part_ids_of_each_network_are_separate(desk: Desk) -> None:
    attempt_id = await sent(desk, pages=1)
    await take_parts(desk, attempt_id, "a", total=1)

    sink = NetworkEventSink("second", ExchangeLog(desk.store, desk.clock), desk.notifications)
    await sink.notified(Notification(ARRIVED, part_id="a"))

    assert await statuses(desk) == ["QUEUED"]


@pytest.mark.parametrize("outcome", [Outcome.PENDING, Outcome.UNKNOWN])
async def test_a_report_without_an_outcome_leaves_the_message_queued(
    desk: Desk, outcome: Outcome
) -> None:
    attempt_id = await sent(desk, pages=1)
    await take_parts(desk, attempt_id, "a", total=1)

    await report(desk, "a", outcome)
    assert await statuses(desk) == ["QUEUED"]
    await report(desk, "a")

    assert await statuses(desk) == ["SENT"]


async def test_a_part_and_its_report_wait_for_an_unavailable_store() -> None:
    clock = WatchedClock()
    desk = await a_desk(clock=clock)
    attempt_id = await sent(desk, pages=1)

    desk.store.failures = 3
    await take_parts(desk, attempt_id, "a", total=1)
    desk.store.failures = 3
    await report(desk, "a")

    assert await statuses(desk) == ["SENT"]
    assert clock.pauses == [STORE_PAUSE_S] * 6
