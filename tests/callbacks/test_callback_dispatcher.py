"""A callback, from its claimed job to the saved attempt (D29, D30)."""

import logging
from datetime import timedelta

import pytest

from sandbox_sim.ports import JobLost
from sandbox_sim.records.callbacks import DeliveryState, ReceiverResponse
from tests.conftest import Works, to
from tests.fakes import BROKEN, OK, SILENT
from tests.sample_records import NOW, callback
from tests.units import unit_of

FIVE_MINUTES = timedelta(minutes=5)


@pytest.mark.decision("D29", "D30")
async def test_the_exact_body_goes_out_with_its_signature(works: Works) -> None:
    await works.notify(callback(body='{"message":"Ɛyɛ"}', signature="5ca1ab1e"))

    await works.jobs.settle()

    (post,) = works.sender.posts
    assert post.url == "http://shop.test/callback"
    assert post.body == '{"message":"Ɛyɛ"}'.encode()
    assert post.headers == {"X-Service-Signature": "5ca1ab1e"}
    assert post.timeout == timedelta(seconds=30)


@pytest.mark.spec("delivery.2")
@pytest.mark.decision("D30")
class TestAttempts:
    @pytest.mark.parametrize(
        ("answers", "state", "attempts"),
        [
            ([OK], DeliveryState.DELIVERED, 1),
            ([ReceiverResponse(204, "", 1)], DeliveryState.DELIVERED, 1),
            ([BROKEN, OK], DeliveryState.DELIVERED, 2),
            ([SILENT, ReceiverResponse(302, "", 1), OK], DeliveryState.DELIVERED, 3),
            ([BROKEN, SILENT, BROKEN], DeliveryState.FAILED, 3),
        ],
    )
    async def test_it_is_tried_until_it_is_taken_or_three_times(
        self, works: Works, answers: list[ReceiverResponse], state: DeliveryState, attempts: int
    ) -> None:
        works.sender.answers = list(answers)
        await works.notify(callback())

        await works.jobs.advance(timedelta(days=1))

        done = await works.callback()
        assert done.state is state
        assert [attempt.number for attempt in done.attempts] == list(range(1, attempts + 1))
        assert [attempt.at for attempt in done.attempts] == [
            NOW + n * FIVE_MINUTES for n in range(attempts)
        ]
        assert len(works.sender.posts) == attempts
        assert await works.next_due() is None


async def test_one_that_is_done_with_is_not_sent_again(works: Works) -> None:
    """The dispatcher still finishes its job."""
    await works.notify(callback("C1", state=DeliveryState.DELIVERED))

    await works.jobs.settle()

    assert works.sender.posts == []
    assert await works.next_due() is None


@pytest.mark.spec("delivery.2")
@pytest.mark.decision("D30")
class TestTheLog:
    """One line for each attempt, with the id of its callback."""

    @pytest.mark.parametrize(
        ("answers", "level", "words"),
        [
            ([OK], logging.INFO, "attempt 1 of 3: acknowledged with HTTP 200 (7 ms)"),
            (
                [BROKEN],
                logging.WARNING,
                (
                    "attempt 1 of 3: not acknowledged: HTTP 500, and only 2xx acknowledges (7 ms); "
                    "next attempt in 300 s"
                ),
            ),
            (
                [BROKEN, BROKEN, SILENT],
                logging.WARNING,
                (
                    "attempt 3 of 3: not acknowledged: no answer within 30 s (7 ms); "
                    "that was the last attempt"
                ),
            ),
            (
                [BROKEN, OK],
                logging.INFO,
                "attempt 2 of 3: acknowledged with HTTP 200 (7 ms)",
            ),
        ],
    )
    async def test_it_says_what_came_of_the_attempt_and_what_follows(
        self,
        works: Works,
        caplog: pytest.LogCaptureFixture,
        answers: list[ReceiverResponse],
        level: int,
        words: str,
    ) -> None:
        caplog.set_level("DEBUG", logger="sandbox_sim.callbacks")
        works.sender.answers = list(answers)
        await works.notify(callback())

        await works.jobs.advance((len(answers) - 1) * FIVE_MINUTES)

        assert len(caplog.records) == len(answers)
        last = caplog.records[-1]
        start = "callback of transaction T1 of service 55 to http://shop.test/callback, "
        assert (last.levelno, last.getMessage()) == (level, f"{start}{words} [C1]")

    async def test_its_facts_are_fields_of_their_own(
        self, works: Works, caplog: pytest.LogCaptureFixture
    ) -> None:
        """`logs.JsonFormatter` writes the facts of a request or an attempt as fields."""
        caplog.set_level("DEBUG", logger="sandbox_sim.callbacks")
        await works.notify(callback())

        await works.jobs.settle()

        facts = getattr(caplog.records[-1], "facts", {})
        assert facts.get("transaction_id") == "T1"
        assert facts.get("service_id") == 55

    async def test_a_password_in_the_address_is_not_told(
        self, works: Works, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("DEBUG", logger="sandbox_sim.callbacks")
        await works.notify(callback().with_address("http://ama:s3same@shop.test/callback"))

        await works.jobs.settle()

        assert works.sender.urls == ["http://ama:s3same@shop.test/callback"]
        assert "shop.test" in caplog.text
        assert "s3same" not in caplog.text


class TestWhatMayNotHappen:
    """Errors of the gateway and unforeseen addresses: other callbacks are still sent."""

    async def test_an_attempt_of_a_service_that_was_reset_leaves_no_trace(
        self, works: Works
    ) -> None:
        async def reset() -> None:
            await unit_of(works.store).reset(None)

        works.sender.on_post = reset
        await works.notify(callback())

        await works.jobs.settle()

        assert await works.states() == {}
        assert await works.next_due() is None

    async def test_an_attempt_is_recorded_as_soon_as_the_store_is_back(
        self, works: Works, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def break_the_store() -> None:
            works.store.failures = 3

        works.sender.on_post = break_the_store
        await works.notify(callback())

        await works.jobs.settle()

        tries = caplog.text.count("could not be recorded, trying again: the disk is full")
        assert (tries, len(works.sender.posts)) == (3, 1)
        assert await works.states() == {"C1": DeliveryState.DELIVERED}

    async def test_senders_that_raise_leave_nobody_in_the_queue(self, works: Works) -> None:
        works.sender.raises = [RuntimeError("a bug") for _ in range(32)]
        await works.notify(*to("shop.test", 40))

        await works.jobs.settle()

        delivered = [s for s in (await works.states()).values() if s is DeliveryState.DELIVERED]
        assert len(delivered) >= 40 - 32


async def test_an_attempt_that_another_server_took_over_is_a_line_in_the_log(
    works: Works, caplog: pytest.LogCaptureFixture
) -> None:
    async def lost() -> None:
        works.store.failures, works.store.error = 1, JobLost("job 1 was taken over")

    await works.notify(callback("C1"))
    works.sender.on_post = lost
    await works.jobs.settle()

    assert "an attempt at callback C1 is not recorded: job 1 was taken over" in caplog.text
    assert "Traceback" not in caplog.text
