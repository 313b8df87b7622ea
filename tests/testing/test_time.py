"""A test controls the time: it advances the clock, waits for a callback, or retries one."""

import math
from datetime import UTC, datetime, timedelta

import pytest
import requests

from sandbox_sim import SandboxGateway
from tests.testing.conftest import (
    UNREACHABLE,
    assert_wrong_timeouts_are_refused,
    collected,
    compact,
    status,
)


def test_advance_runs_due_jobs_and_refuses_an_invalid_duration(
    gateway: SandboxGateway,
) -> None:
    collected(gateway)

    ran = gateway.advance(seconds=1)

    assert [job.kind for job in ran] == ["settle", "deliver"]
    assert status(gateway)["response_data"]["status"] == "000"
    gateway.advance(minutes=14, seconds=58)
    assert status(gateway)["response_code"] == "000"
    gateway.advance(seconds=1)
    assert status(gateway)["response_code"] == "027"
    wrong: list[tuple[dict[str, float], str]] = [
        ({"seconds": -1}, "-1"),
        ({"hours": 24 * 400}, "34560000"),
        ({"seconds": math.nan}, "nan"),
        ({"minutes": math.inf}, "inf"),
    ]
    for by, named in wrong:
        sentence = f"the clock can move by 0 seconds to 366 days, not by {named} seconds$"
        with pytest.raises(ValueError, match=sentence):
            gateway.advance(**by)
    assert gateway.now == datetime(2026, 1, 1, 9, 15, tzinfo=UTC)


class TestWaitCallback:
    async def test_refuses_a_wrong_timeout_at_once(self, gateway: SandboxGateway) -> None:
        await assert_wrong_timeouts_are_refused(gateway)

    def test_moves_the_clock_until_the_callback_comes(self, gateway: SandboxGateway) -> None:
        collected(gateway)

        callback = gateway.wait_callback(transaction_id="T1")

        assert (callback.status, callback.state) == ("000", "delivered")
        assert gateway.now - callback.created_at == timedelta()
        assert gateway.inbox().expect_one().body == callback.body

        gateway.reset()
        collected(gateway, callback_url="http://127.0.0.1:9/callbacks")
        failed = gateway.wait_callback(transaction_id="T1", state="failed")
        assert len(failed.attempts) == 3
        assert gateway.now == datetime(2026, 1, 1, 9, 10, 1, tzinfo=UTC)
        gateway.advance(minutes=1)
        assert gateway.wait_callback(status="000") == failed, "it takes the one that is there"
        with pytest.raises(AssertionError) as caught:
            gateway.wait_callback(state="delivered", timeout_s=0)
        verdict = "not acknowledged: no connection to 127.0.0.1:9: Connection refused"
        assert f"callback of T1, attempt 3: {verdict}" in str(caught.value).splitlines()
        assert gateway.now == datetime(2026, 1, 1, 9, 11, 1, tzinfo=UTC)

    def test_moves_the_clock_no_further_than_to_the_callback(self, gateway: SandboxGateway) -> None:
        collected(gateway)
        gateway.advance(seconds=0.5)
        collected(gateway, transaction_id="T2")

        gateway.wait_callback(transaction_id="T1")

        assert gateway.now == datetime(2026, 1, 1, 9, 0, 1, tzinfo=UTC)
        gateway.callbacks.expect_none(transaction_id="T2")

    def test_lists_the_other_callbacks_and_the_requests(self, gateway: SandboxGateway) -> None:
        collected(gateway)
        gateway.advance(seconds=1)
        collected(gateway, transaction_id="T2", customer_number="0244000009")

        with pytest.raises(AssertionError) as caught:
            gateway.wait_callback(transaction_id="T2", timeout_s=0)

        assert compact(str(caught.value)) == [
            "waited 0 s: expected a callback with transaction_id='T2', but the only one differs:",
            "  transaction_id  status  amount  state  url",
            f"  T1  000  10.5  delivered  {gateway.inbox_url()}  <- transaction_id is 'T1'",
            "the requests were:",
            "  operation  transaction_id  response_code  why",
            "  collect  T1  202  allowlisted number, last digit 0 to 8",
            (
                "  collect  T2  015  last digit 9 is a simulated decline "
                "(customer_number '0244000009')"
            ),
        ]

    def test_shows_only_the_line_of_the_test_and_says_that_there_were_no_requests(
        self, gateway: SandboxGateway
    ) -> None:
        with pytest.raises(AssertionError, match="there is none\nthere were no requests") as caught:
            gateway.wait_callback(timeout_s=0)

        shown = caught.traceback.filter(caught)
        assert [entry.name for entry in shown] == [
            "test_shows_only_the_line_of_the_test_and_says_that_there_were_no_requests"
        ]

    def test_names_the_other_services_that_the_requests_were_for(
        self, gateway: SandboxGateway
    ) -> None:
        for service_id in (55, 7):
            collected(gateway, service_id=service_id, customer_number="0244000009")
        expected = (
            "there were requests for service 7 and 55; "
            f"this test has gateway.service_id, {gateway.service_id}"
        )

        with pytest.raises(AssertionError) as caught:
            gateway.wait_callback(timeout_s=0)
        assert str(caught.value).splitlines()[1:] == ["there were no requests", expected]
        with pytest.raises(AssertionError, match=expected):
            gateway.requests.expect_one()
        assert expected in gateway.report().splitlines()

    def test_names_the_override_that_drops_the_callback(self, gateway: SandboxGateway) -> None:
        override = gateway.override(callback={"drop": True})
        collected(gateway)

        with pytest.raises(AssertionError) as caught:
            gateway.wait_callback(transaction_id="T1", timeout_s=0)

        first, *lines = compact(str(caught.value))
        assert first.endswith("with transaction_id='T1', but 1 of 1 is so, unsent or unanswered:")
        assert lines == [
            "  transaction_id  status  amount  state  url",
            f"  T1  000  10.5  dropped  {gateway.inbox_url()}  <- this one",
            "the requests were:",
            "  operation  transaction_id  response_code  why",
            f"  collect  T1  202  override {override['id']} asks for callback drop",
        ]

    def test_names_a_card_page_that_waits_for_a_person(self, gateway: SandboxGateway) -> None:
        card = {"nw": "VIS", "payment_option": "CRD", "customer_number": "4111111111111111"}
        more = {"currency_code": "GHS", "currency_val": "10.5", "landing_page": "http://shop.test/"}
        page = collected(gateway, **card, **more)["redirect_url"]
        requests.get(page, timeout=5).raise_for_status()

        with pytest.raises(AssertionError, match="T1 stays pending until"):
            gateway.wait_callback(transaction_id="T1", timeout_s=0)

    def test_names_a_receiver_without_an_answer_and_goes_on_after_its_timeout(
        self, hanging: str
    ) -> None:
        with SandboxGateway(callback_timeout_s=0.3) as gateway:
            collected(gateway, callback_url=hanging)
            gateway.advance(seconds=0.5)
            collected(gateway, transaction_id="T2")

            with pytest.raises(AssertionError) as caught:
                gateway.wait_callback(transaction_id="T2", timeout_s=0)

            receiver = hanging.removesuffix("/callbacks")
            assert (
                f"{receiver} has not answered yet: the clock does not move until it answers or "
                "callback_timeout_s of real time have passed"
            ) in str(caught.value).splitlines()
            assert gateway.now == datetime(2026, 1, 1, 9, 0, 1, tzinfo=UTC)
            assert gateway.wait_callback(transaction_id="T2").transaction_id == "T2"
            assert gateway.now == datetime(2026, 1, 1, 9, 0, 1, 500_000, tzinfo=UTC)


def test_reset_clock_takes_the_time_of_the_machine_unless_a_later_payment_waits(
    gateway: SandboxGateway,
) -> None:
    before = datetime.now(UTC)
    gateway.reset_clock()
    assert before <= gateway.now <= datetime.now(UTC)

    gateway.renew()
    for _ in range(2):
        gateway.advance(hours=366 * 24)
    collected(gateway)
    with pytest.raises(ValueError, match="payment T1 of service"):
        gateway.reset_clock()


@pytest.mark.decision("D30")
def test_retry_callbacks_makes_each_attempt_that_is_left(
    gateway: SandboxGateway,
) -> None:
    collected(gateway, callback_url=UNREACHABLE)
    gateway.advance(seconds=1)
    before = gateway.now
    refused = gateway.callbacks.expect_one(state="retrying", unacknowledged=True)
    assert len(refused.attempts) == 1

    (callback,) = gateway.retry_callbacks()

    assert (len(callback.attempts), callback.state) == (2, "retrying")
    assert gateway.now == before
    assert [len(each.attempts) for each in gateway.retry_callbacks(callback.id)] == [3]
    assert gateway.retry_callbacks() == []
    gateway.callbacks.expect_one(state="failed", unacknowledged=True)


@pytest.mark.decision("D30")
def test_retry_callbacks_refuses_a_delivered_and_an_unknown_callback(
    gateway: SandboxGateway,
) -> None:
    collected(gateway)
    callback = gateway.wait_callback(state="delivered")

    with pytest.raises(ValueError, match=r"is delivered, so no attempt is due"):
        gateway.retry_callbacks(callback.id)
    with pytest.raises(ValueError, match="there is no callback 'C1'"):
        gateway.retry_callbacks("C1")


@pytest.mark.decision("D30")
async def test_retry_callbacks_can_be_awaited(gateway: SandboxGateway) -> None:
    collected(gateway, callback_url=UNREACHABLE)
    await gateway.aio.advance(seconds=1)

    (callback,) = await gateway.aio.retry_callbacks()

    assert len(callback.attempts) == 2
