"""A callback that has to be signed is never sent unsigned (D29)."""

import logging
from dataclasses import replace

import pytest

from sandbox_sim.callbacks.bodies import sign
from sandbox_sim.callbacks.callback_dispatcher import CallbackSigning
from sandbox_sim.control.scheduler import JobHandler, Scheduler
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import SIGNATURE_HEADER, CallbackRecord, DeliveryState
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.values.clients import Client, ServiceMode
from tests.conftest import BEHAVIOUR, Works
from tests.live_records import live_transaction
from tests.sample_records import callback, transaction
from tests.units import unit_of

CLIENT = Client("sandbox_key", "sandbox_secret")

UNSIGNED = callback(signature=None)

LIVE = UNSIGNED._replace(mode=ServiceMode.PRODUCTION)


pytestmark = pytest.mark.decision("D29")


def configured(works: Works, *clients: Client, behaviour: BehaviourHolder = BEHAVIOUR) -> Works:
    """The same store with a dispatcher that knows these clients, as after a restart."""
    signing = CallbackSigning({each.client_key: each for each in clients}, behaviour)
    deliveries = replace(works.deliveries, behaviour=behaviour, signing=signing)
    handlers: dict[JobKind, JobHandler] = dict.fromkeys(
        (JobKind.DELIVER, JobKind.DELIVER_LIVE), deliveries.take
    )
    jobs = Scheduler(works.store, works.clock, deliveries, handlers)
    return Works(works.clock, works.store, works.sender, deliveries, jobs)


async def begun(works: Works) -> None:
    """Save the transactions of both modes that the callbacks report."""
    await unit_of(works.store).add_transaction(transaction())
    await unit_of(works.store).add_transaction(live_transaction())


@pytest.mark.parametrize("each", [UNSIGNED, LIVE], ids=["mode S", "mode P"])
async def test_without_its_credentials_a_callback_is_listed_and_not_sent(
    works: Works, each: CallbackRecord, caplog: pytest.LogCaptureFixture
) -> None:
    await begun(works)
    without = configured(works, Client("another_key", "another_secret"))
    await without.notify(each)
    with caplog.at_level(logging.ERROR):
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


@pytest.mark.parametrize("each", [UNSIGNED, LIVE], ids=["mode S", "mode P"])
async def test_it_is_signed_and_sent_once_the_credentials_are_back(
    works: Works, each: CallbackRecord
) -> None:
    await begun(works)
    without = configured(works)
    await without.notify(each)
    await without.start()
    again = (await works.callback()).to_resend(None)

    restarted = configured(works, CLIENT)
    await restarted.notify(again)
    await restarted.called(each.url)

    signature = sign(each.body.encode(), "sandbox_secret")
    assert [post.headers[SIGNATURE_HEADER] for post in works.sender.posts] == [signature]
    assert (await works.callback()).signature == signature


async def test_what_was_signed_before_is_sent_as_it_is(works: Works) -> None:
    restarted = configured(works)
    await restarted.notify(callback())
    await restarted.called(callback().url)

    assert [post.headers[SIGNATURE_HEADER] for post in works.sender.posts] == ["5ca1ab1e"]


async def test_where_the_transaction_is_gone_nobody_can_tell_who_signs(works: Works) -> None:
    restarted = configured(works, CLIENT)
    await restarted.notify(UNSIGNED)
    await restarted.start()

    (attempt,) = (await works.callback()).attempts
    assert "the transaction of its client was deleted" in attempt.verdict


async def test_once_signing_is_turned_off_it_is_sent_unsigned(works: Works) -> None:
    behaviour = BehaviourHolder(Behaviour())
    without = configured(works, behaviour=behaviour)
    behaviour.present = Behaviour(sign_callbacks=False)

    await without.notify(UNSIGNED)
    await without.called(UNSIGNED.url)

    assert [post.headers for post in works.sender.posts] == [{}]
    assert (await works.callback()).state is DeliveryState.DELIVERED
