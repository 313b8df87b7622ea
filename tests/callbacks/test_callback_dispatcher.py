"""A callback, from its claimed job to the saved attempt; it is signed or not sent (D29, D30)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sandbox_sim.callbacks.bodies import sign
from sandbox_sim.callbacks.callback_dispatcher import CallbackSigning
from sandbox_sim.control.scheduler import JobHandler, Scheduler
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.ports import JobLost
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import (
    SIGNATURE_HEADER,
    CallbackRecord,
    DeliveryState,
    ReceiverResponse,
)
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.clients import Client, ServiceMode
from tests.conftest import BEHAVIOUR, Works, to
from tests.fakes import BROKEN, OK, SILENT
from tests.live_records import live_transaction
from tests.sample_records import NOW, callback, transaction
from tests.units import unit_of

FIVE_MINUTES = timedelta(minutes=5)
TAKEN = "acknowledged with HTTP 200 (7 ms)"
FAILED = "not acknowledged: HTTP 500, and only 2xx acknowledges (7 ms); that was the last attempt"


@pytest.mark.decision("D29", "D30")
async def test_a_callback_is_sent_with_its_exact_body_and_signature(
    works: Works, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the facts of the attempt in separate fields, and not the password."""
    caplog.set_level("DEBUG", logger="sandbox_sim.callbacks")
    address = "http://ama:s3same@shop.test/callback"
    saved = callback(body='{"message":"Ɛyɛ"}', signature="5ca1ab1e").with_address(address)
    await works.notify(saved)
    await works.jobs.run_until_idle()
    # A delivered callback is not sent again; the dispatcher finishes its job.
    await works.notify(callback("C2", state=DeliveryState.DELIVERED))
    await works.jobs.run_until_idle()

    (post,) = works.sender.posts
    assert post.url == address
    assert post.body == '{"message":"Ɛyɛ"}'.encode()
    assert post.headers == {"X-Service-Signature": "5ca1ab1e"}
    assert post.timeout == timedelta(seconds=30)
    assert await works.next_due() is None
    facts = getattr(caplog.records[-1], "facts", {})
    assert (facts.get("transaction_id"), facts.get("service_id")) == ("T1", 55)
    assert "shop.test" in caplog.text
    assert "s3same" not in caplog.text


@pytest.mark.spec("delivery.2")
@pytest.mark.decision("D30")
@pytest.mark.parametrize(
    ("answers", "state", "level", "words"),
    [
        ([OK], "delivered", "INFO", TAKEN),
        ([ReceiverResponse(204, "", 1)], "delivered", "INFO", "acknowledged with HTTP 204 (1 ms)"),
        ([BROKEN, OK], "delivered", "INFO", TAKEN),
        ([SILENT, ReceiverResponse(302, "", 1), OK], "delivered", "INFO", TAKEN),
        ([BROKEN, SILENT, BROKEN], "failed", "WARNING", FAILED),
    ],
)
async def test_a_callback_gets_up_to_three_logged_attempts_until_it_is_acknowledged(
    works: Works,
    caplog: pytest.LogCaptureFixture,
    answers: list[ReceiverResponse],
    state: str,
    level: str,
    words: str,
) -> None:
    caplog.set_level("INFO", logger="sandbox_sim.callbacks")
    works.sender.answers = list(answers)
    await works.notify(callback())

    await works.jobs.advance(timedelta(days=1))

    done, count = await works.callback(), len(answers)
    assert done.state == state
    assert [attempt.number for attempt in done.attempts] == list(range(1, count + 1))
    assert [attempt.at for attempt in done.attempts] == [
        NOW + n * FIVE_MINUTES for n in range(count)
    ]
    assert len(works.sender.posts) == count
    assert await works.next_due() is None

    *earlier, last = caplog.records
    start = "callback of transaction T1 of service 55 to http://shop.test/callback, attempt"
    assert (last.levelname, last.getMessage()) == (level, f"{start} {count} of 3: {words} [C1]")
    for number, each in enumerate(earlier, 1):
        assert each.levelname == "WARNING"
        assert each.getMessage().startswith(f"{start} {number} of 3: not acknowledged: ")
        assert each.getMessage().endswith("; next attempt in 300 s [C1]")


class TestErrors:
    """Errors of the gateway: other callbacks are still sent."""

    async def test_an_attempt_of_a_reset_service_is_not_recorded(self, works: Works) -> None:
        async def reset() -> None:
            await unit_of(works.store).reset(None)

        works.sender.on_post = reset
        await works.notify(callback())

        await works.jobs.run_until_idle()

        assert await works.states() == {}
        assert await works.next_due() is None

    async def test_an_attempt_is_recorded_as_soon_as_the_store_is_back(
        self, works: Works, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def break_the_store() -> None:
            works.store.failures = 3

        works.sender.on_post = break_the_store
        await works.notify(callback())

        await works.jobs.run_until_idle()

        tries = caplog.text.count("could not be recorded, trying again: the disk is full")
        assert (tries, len(works.sender.posts)) == (3, 1)
        assert await works.states() == {"C1": DeliveryState.DELIVERED}

    async def test_a_sender_that_raises_does_not_stop_the_queue(self, works: Works) -> None:
        works.sender.raises = [RuntimeError("a bug") for _ in range(32)]
        await works.notify(*to("shop.test", 40))

        await works.jobs.run_until_idle()

        delivered = [s for s in (await works.states()).values() if s is DeliveryState.DELIVERED]
        assert len(delivered) >= 40 - 32


async def test_an_attempt_that_another_server_took_over_is_logged(
    works: Works, caplog: pytest.LogCaptureFixture
) -> None:
    async def lost() -> None:
        works.store.failures, works.store.error = 1, JobLost("job 1 was taken over")

    await works.notify(callback("C1"))
    works.sender.on_post = lost
    await works.jobs.run_until_idle()

    assert "an attempt at callback C1 is not recorded: job 1 was taken over" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.decision("D30")
class TestResendDuringAnAttempt:
    """A person sends a callback once more while an attempt at it waits for its answer."""

    @pytest.fixture
    async def slow(self, works: Works) -> Works:
        works.sender.hang("http://shop.test/callback")
        await works.notify(callback())
        await works.start()
        return works

    async def resent(self, slow: Works, *answers: ReceiverResponse) -> CallbackRecord:
        """The callback after both attempts; the one of the resend is answered first."""
        slow.sender.answers = [*answers]
        await slow.notify((await slow.callback()).to_resend("http://new.test/callback"))
        await slow.called("http://new.test/callback")
        slow.sender.answer_all()
        await slow.jobs.run_until_idle()
        return await slow.callback()

    async def test_both_attempts_and_the_new_address_are_kept(self, slow: Works) -> None:
        found = await self.resent(slow, BROKEN, BROKEN)

        assert found.url == "http://new.test/callback"
        assert [(each.number, each.sent_to) for each in found.attempts] == [
            (1, "http://new.test/callback"),
            (2, "http://shop.test/callback"),
        ]

    async def test_an_acknowledged_callback_stays_delivered(self, slow: Works) -> None:
        found = await self.resent(slow, OK, SILENT)

        assert found.state is DeliveryState.DELIVERED
        assert [each.next_attempt_at for each in found.attempts] == [None, None]
        assert await slow.next_due() is None


CLIENT = Client("sandbox_key", "sandbox_secret")
UNSIGNED = callback(signature=None)
LIVE = UNSIGNED._replace(mode=ServiceMode.PRODUCTION)


def configured(works: Works, *clients: Client, behaviour: BehaviourHolder = BEHAVIOUR) -> Works:
    """The same store with a dispatcher that knows these clients, as after a restart."""
    signing = CallbackSigning({each.client_key: each for each in clients}, behaviour)
    deliveries = replace(works.deliveries, behaviour=behaviour, signing=signing)
    handlers: dict[JobKind, JobHandler] = dict.fromkeys(
        (JobKind.DELIVER, JobKind.DELIVER_LIVE), deliveries.on_due
    )
    jobs = Scheduler(works.store, works.clock, deliveries, handlers)
    return Works(works.clock, works.store, works.sender, deliveries, jobs)


@pytest.mark.decision("D45")
async def test_a_success_is_not_sent_after_the_reversal_of_its_payment(works: Works) -> None:
    """The receiver would take the payment for successful again."""
    paid = live_transaction().with_status(Status.SUCCESSFUL, NOW)
    await unit_of(works.store).add_transaction(paid)
    success = callback(mode=ServiceMode.PRODUCTION)
    works = configured(works, CLIENT)
    works.sender.answers = [BROKEN, BROKEN]
    await works.notify(success)
    await works.start()
    await works.jobs.advance(timedelta(seconds=10))
    now = works.clock.now()
    await unit_of(works.store).save_transaction(paid.with_reversal(now))
    await works.notify(success._replace(id="C2", url="http://second.test/", created_at=now))
    await works.start()

    await works.jobs.advance(timedelta(minutes=10))

    assert works.sender.urls == [success.url, "http://second.test/", "http://second.test/"]
    assert await works.states() == {"C2": DeliveryState.DELIVERED, "C1": DeliveryState.DROPPED}
    dropped = await works.callback()
    assert dropped.note == "its payment was reversed, which a newer callback reports"

    await works.notify(dropped.to_resend(None))
    await works.start()
    assert works.sender.urls[3:] == [success.url]


@pytest.mark.decision("D29")
@pytest.mark.parametrize("each", [UNSIGNED, LIVE], ids=["mode S", "mode P"])
async def test_an_unsigned_callback_is_listed_as_failed_until_its_credentials_are_back(
    works: Works, each: CallbackRecord, caplog: pytest.LogCaptureFixture
) -> None:
    await unit_of(works.store).add_transaction(transaction())
    await unit_of(works.store).add_transaction(live_transaction())
    without = configured(works, Client("another_key", "another_secret"))
    await without.notify(each)
    await without.start()

    found = await works.callback()
    assert works.sender.urls == []
    assert found.state is DeliveryState.FAILED
    (attempt,) = found.attempts
    assert attempt.verdict.startswith(
        "not sent: the credentials 'sandbox_key' that sign it are not in the configuration"
    )
    assert attempt.next_attempt_at is None
    assert "callback of transaction T1 of service 55 is not sent: the credentials" in caplog.text

    restarted = configured(works, CLIENT)
    await restarted.notify(found.to_resend(None))
    await restarted.called(each.url)

    signature = sign(each.body.encode(), "sandbox_secret")
    assert [post.headers[SIGNATURE_HEADER] for post in works.sender.posts] == [signature]
    assert (await works.callback()).signature == signature


@pytest.mark.decision("D29")
async def test_a_signed_callback_keeps_its_signature_when_its_credentials_are_gone(
    works: Works,
) -> None:
    restarted = configured(works)
    await restarted.notify(callback())
    await restarted.called(callback().url)

    assert [post.headers[SIGNATURE_HEADER] for post in works.sender.posts] == ["5ca1ab1e"]


@pytest.mark.decision("D29")
async def test_an_unsigned_callback_of_a_deleted_transaction_fails_with_the_reason(
    works: Works,
) -> None:
    restarted = configured(works, CLIENT)
    await restarted.notify(UNSIGNED)
    await restarted.start()

    (attempt,) = (await works.callback()).attempts
    assert "the transaction of its client was deleted" in attempt.verdict


@pytest.mark.decision("D29")
async def test_a_callback_is_sent_unsigned_once_signing_is_turned_off(works: Works) -> None:
    behaviour = BehaviourHolder(Behaviour())
    without = configured(works, behaviour=behaviour)
    behaviour.present = Behaviour(sign_callbacks=False)

    await without.notify(UNSIGNED)
    await without.called(UNSIGNED.url)

    assert [post.headers for post in works.sender.posts] == [{}]
    assert (await works.callback()).state is DeliveryState.DELIVERED
