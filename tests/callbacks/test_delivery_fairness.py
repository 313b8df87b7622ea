"""Receivers take turns: one that hangs does not delay others, and attempts are limited."""

import asyncio
import logging

import pytest

from sandbox_sim.callbacks import callback_dispatcher
from sandbox_sim.callbacks.callback_dispatcher import STARTS_PER_TURN
from sandbox_sim.callbacks.delivery_queue import MAX_CONCURRENT, MAX_CONCURRENT_PER_RECEIVER
from sandbox_sim.records.callbacks import DeliveryState
from tests.conftest import Works, to
from tests.fakes import NO_DESCRIPTORS, NOT_THERE
from tests.sample_records import NOW, SERVICE, callback
from tests.turns import SOON_S, idle, turns

SLOW, QUICK = "http://slow.test/callback", "http://quick.test/callback"


class TestFairness:
    async def test_a_receiver_that_hangs_does_not_delay_the_callbacks_of_others(
        self, works: Works
    ) -> None:
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", 100), *to("quick.test", 100))

        await works.start()

        states = await works.states()
        assert all(states[f"quick.test {n}"] is DeliveryState.DELIVERED for n in range(100))
        assert all(states[f"slow.test {n}"] is DeliveryState.PENDING for n in range(100))

        works.sender.answer_all()
        await asyncio.wait_for(idle(works.deliveries), SOON_S)

        assert set((await works.states()).values()) == {DeliveryState.DELIVERED}
        assert len(works.sender.posts) == 200

    async def test_a_receiver_gets_its_callbacks_in_order_and_is_then_forgotten(
        self, works: Works
    ) -> None:
        await works.notify(*(callback(f"C{n}", body=str(n)) for n in range(50)))

        await works.jobs.run_until_idle()

        assert [post.body for post in works.sender.posts] == [str(n).encode() for n in range(50)]
        assert works.deliveries.receivers == ()
        assert (works.deliveries._senders, works.deliveries._attempts) == ({}, {})


async def test_abandoning_a_service_cancels_its_attempts_and_keeps_those_of_others(
    works: Works,
) -> None:
    works.sender.hang(SLOW)
    others = [callback(f"other {n}", url=SLOW, service_id=56) for n in range(8)]
    await works.notify(*to("slow.test", MAX_CONCURRENT_PER_RECEIVER), *others)
    await works.start()
    assert works.sender.at_work[SLOW] == MAX_CONCURRENT_PER_RECEIVER

    async with works.deliveries.abandoned(SERVICE):
        await turns()
    assert works.sender.at_work[SLOW] == 8
    works.sender.answer_all()
    await asyncio.wait_for(idle(works.deliveries), SOON_S)

    assert len(works.sender.posts) == MAX_CONCURRENT_PER_RECEIVER + 8
    assert works.deliveries.receivers == ()
    assert set((await works.states()).values()) == {DeliveryState.PENDING}


async def begun_in_each_turn(works: Works, begun: int, until: int) -> set[int]:
    """How many attempts begin in each turn of the loop, from `begun` attempts to `until`."""
    in_each = set[int]()
    while begun < until:
        await asyncio.sleep(0)
        in_each.add(len(works.sender.posts) - begun)
        begun = len(works.sender.posts)
    return in_each


class TestLimits:
    async def test_a_receiver_that_refuses_connections_gets_one_attempt_at_a_time(
        self, works: Works, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The log has one line for the first refusal; a later line counts the others."""
        works.sender.answers = [NOT_THERE] * (MAX_CONCURRENT_PER_RECEIVER + 8)
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", MAX_CONCURRENT_PER_RECEIVER + 8))
        await works.start()

        works.sender.answer_all()
        works.sender.most_at_work.clear()
        await asyncio.wait_for(idle(works.deliveries), SOON_S)

        assert works.sender.most_at_work[SLOW] == 1
        assert set((await works.states()).values()) == {DeliveryState.RETRYING}
        assert len([line for line in caplog.messages if "refused" in line]) == 1

    @pytest.mark.parametrize("advances", [False, True])
    async def test_answers_get_a_turn_of_the_loop_between_two_refused_attempts(
        self, works: Works, advances: bool
    ) -> None:
        """This machine refuses without a wait, so nothing else would let answers run.

        An advance of the clock waits for all of them, and would not end if each took a turn.
        """
        works.sender.answers = [NOT_THERE] * 100
        turns, at = 0, set[int]()

        async def answer() -> None:
            nonlocal turns
            while len(works.sender.posts) < 100:
                turns += 1
                await asyncio.sleep(0)

        async def note_turn() -> None:
            at.add(turns)

        works.sender.on_post = note_turn
        await works.notify(*to("slow.test", 100))
        answering = asyncio.create_task(answer())
        if advances:
            await works.jobs.run_until_idle()
        else:
            await works.start()
            await idle(works.deliveries)
        await answering

        assert (len(at) > 100 - MAX_CONCURRENT_PER_RECEIVER) is not advances

    async def test_few_attempts_begin_in_one_turn_of_the_loop(self, works: Works) -> None:
        """Answers to requests go before the other attempts, also if connections are free."""
        works.sender.hang(SLOW, QUICK)
        await works.notify(
            *to("slow.test", MAX_CONCURRENT_PER_RECEIVER),
            *to("quick.test", MAX_CONCURRENT_PER_RECEIVER),
        )
        await works.jobs.run_due(NOW)

        assert await begun_in_each_turn(works, 0, 2 * MAX_CONCURRENT_PER_RECEIVER) <= {
            0,
            STARTS_PER_TURN,
        }

    async def test_few_attempts_begin_in_one_turn_after_others_end(self, works: Works) -> None:
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", 3 * MAX_CONCURRENT_PER_RECEIVER))
        await works.start()

        works.sender.answer_all()
        begun = len(works.sender.posts)

        in_each = await begun_in_each_turn(works, begun, 3 * MAX_CONCURRENT_PER_RECEIVER)
        assert max(in_each) <= 2 * STARTS_PER_TURN


HANGING = [f"slow{n}.test" for n in range(MAX_CONCURRENT)]


@pytest.fixture
def cut_off_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dispatcher cuts off an attempt without an answer as soon as another receiver waits."""
    monkeypatch.setattr(callback_dispatcher, "CUT_OFF_S", 0.0)


async def hang_everywhere(works: Works, per_host: int = 1) -> None:
    """Use each connection for a receiver that hangs."""
    works.sender.hang(*(f"http://{host}/callback" for host in HANGING))
    for host in HANGING:
        await works.notify(*to(host, per_host))
    await works.start()
    assert works.sender.at_work.total() == MAX_CONCURRENT


class TestCuttingOff:
    """If no connection is free, the dispatcher cuts off an attempt that has no answer yet."""

    @pytest.mark.usefixtures("cut_off_at_once")
    async def test_an_attempt_is_not_cut_off_while_connections_are_free(self, works: Works) -> None:
        """Connections are free, and each turn begins only a few attempts."""
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", 1))
        await works.start()

        await works.notify(*to("quick.test", 3 * STARTS_PER_TURN))
        await works.start()

        assert works.sender.urls.count(SLOW) == 1
        assert works.sender.urls.count(QUICK) == 3 * STARTS_PER_TURN

    async def test_an_attempt_is_not_cut_off_before_its_time(self, works: Works) -> None:
        await hang_everywhere(works)

        await works.notify(callback("late", url=QUICK))
        await works.start()

        assert QUICK not in works.sender.urls

    @pytest.mark.decision("D30")
    @pytest.mark.usefixtures("cut_off_at_once")
    async def test_an_attempt_is_cut_off_for_a_waiting_receiver_and_sent_again_later(
        self, works: Works
    ) -> None:
        """An attempt that is cut off does not count."""
        await hang_everywhere(works)
        await works.notify(callback("late", url=QUICK))
        await works.called(QUICK)
        assert (await works.states())["late"] is DeliveryState.DELIVERED
        cut_off = works.sender.urls[0]

        works.sender.answer_all()
        await asyncio.wait_for(idle(works.deliveries), SOON_S)

        assert works.sender.urls.count(cut_off) == 2
        assert set((await works.states()).values()) == {DeliveryState.DELIVERED}
        assert len((await works.callback("slow0.test 0")).attempts) == 1

    @pytest.mark.decision("D30")
    @pytest.mark.usefixtures("cut_off_at_once")
    async def test_a_stalled_receiver_does_not_cut_off_others(self, works: Works) -> None:
        """So the attempts at stalled receivers have their whole timeout."""
        await hang_everywhere(works)
        works.sender.hang("http://slow.test/callback")
        await works.notify(*to("slow.test", 1))
        await works.called(SLOW)
        posts = len(works.sender.posts)

        await works.start()

        assert len(works.sender.posts) == posts
        assert works.sender.at_work.total() == MAX_CONCURRENT

    @pytest.mark.usefixtures("cut_off_at_once")
    async def test_an_attempt_that_has_its_status_is_not_cut_off(self, works: Works) -> None:
        """Only the rest of its body is missing, and another attempt would be a repetition."""
        works.sender.stalls_in_body.update(f"http://{host}/callback" for host in HANGING)
        await hang_everywhere(works)

        await works.notify(callback("late", url=QUICK))
        await works.start()

        assert QUICK not in works.sender.urls
        assert works.sender.at_work.total() == MAX_CONCURRENT

    @pytest.mark.usefixtures("cut_off_at_once")
    async def test_many_cut_off_attempts_are_logged_in_one_line(
        self, works: Works, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "sandbox_sim.callbacks")
        await hang_everywhere(works)

        await works.notify(*(callback(f"late{n}", url=f"http://late{n}.test/") for n in range(20)))
        await works.called("http://late19.test/")

        lines = [line for line in caplog.messages if "had no answer within" in line]
        assert len(lines) == 1


@pytest.mark.decision("D30")
async def test_an_attempt_without_a_free_descriptor_is_repeated_and_does_not_count(
    works: Works, caplog: pytest.LogCaptureFixture
) -> None:
    works.sender.answers = [NO_DESCRIPTORS] * 3
    await works.notify(callback())

    await works.jobs.run_until_idle()

    (attempt,) = (await works.callback()).attempts
    assert (attempt.number, attempt.status_code) == (1, 200)
    assert len(works.sender.posts) == 4
    assert len([line for line in caplog.messages if "Too many open files" in line]) == 1


class TestClosing:
    """Attempts that were sent may finish; callbacks in the queue are not sent, and not lost."""

    async def test_sent_attempts_finish_within_the_grace_and_queued_callbacks_stay_pending(
        self, works: Works
    ) -> None:
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", MAX_CONCURRENT_PER_RECEIVER + 10))
        await works.start()

        closing = asyncio.create_task(works.deliveries.close(grace=5))
        await asyncio.sleep(0)
        works.sender.answer_all()
        await asyncio.wait_for(closing, SOON_S)

        assert len(works.sender.posts) == MAX_CONCURRENT_PER_RECEIVER
        states = list((await works.states()).values())
        assert states.count(DeliveryState.DELIVERED) == MAX_CONCURRENT_PER_RECEIVER
        assert states.count(DeliveryState.PENDING) == 10
        await asyncio.wait_for(works.deliveries.close(grace=5), SOON_S)  # with nothing to do

    async def test_an_attempt_longer_than_the_grace_is_cut_off_and_not_recorded(
        self, works: Works
    ) -> None:
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", 1))
        await works.start()

        await asyncio.wait_for(works.deliveries.close(grace=0.005), SOON_S)

        assert works.sender.at_work[SLOW] == 0
        assert (await works.callback("slow.test 0")).attempts == ()
