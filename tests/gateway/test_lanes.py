"""A lane for each receiver: one that hangs delays nobody else, and all of them are bounded."""

import asyncio

import pytest

from sandbox_sim.domain.callbacks import Delivery
from sandbox_sim.gateway.deliveries import IN_ALL, PER_RECEIVER
from tests.gateway.conftest import Works, to
from tests.records import SERVICE, callback

SLOW, QUICK = "http://slow.test/callback", "http://quick.test/callback"


class TestFairness:
    async def test_a_receiver_that_hangs_delays_nobody_else(self, works: Works) -> None:
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", 100), *to("quick.test", 100))

        await works.start()

        states = await works.states()
        assert all(states[f"quick.test {n}"] is Delivery.DELIVERED for n in range(100))
        assert all(states[f"slow.test {n}"] is Delivery.PENDING for n in range(100))

    async def test_once_it_answers_it_gets_all_of_them(self, works: Works) -> None:
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", 100))
        await works.start()

        works.sender.let_go()
        await asyncio.wait_for(works.deliveries.wait_idle(), 1)

        assert set((await works.states()).values()) == {Delivery.DELIVERED}
        assert len(works.sender.posts) == 100

    async def test_a_lane_keeps_the_order(self, works: Works) -> None:
        await works.notify(*(callback(f"C{n}", body=str(n)) for n in range(50)))

        await works.jobs.settle()

        assert [post.body for post in works.sender.posts] == [str(n).encode() for n in range(50)]

    @pytest.mark.parametrize(
        ("other", "same"),
        [
            ("http://shop.test/other?path=1", True),
            ("http://ama:secret@shop.test/", True),
            ("https://shop.test/", False),
            ("http://shop.test:8080/", False),
            ("http://other.shop.test/", False),
        ],
    )
    async def test_a_receiver_is_scheme_host_and_port(
        self, works: Works, other: str, same: bool
    ) -> None:
        works.sender.hang("http://shop.test/callback")
        await works.notify(*to("shop.test", PER_RECEIVER), callback("other", url=other))

        await works.start()

        assert (other not in works.sender.urls) is same


class TestAbandoned:
    async def test_what_is_on_its_way_for_a_service_is_broken_off(self, works: Works) -> None:
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", PER_RECEIVER + 8))
        await works.start()

        await works.deliveries.abandon(SERVICE)

        await asyncio.wait_for(works.deliveries.wait_idle(), 1)
        assert works.sender.at_work[SLOW] == 0
        assert works.deliveries.receivers == ()
        assert set((await works.states()).values()) == {Delivery.PENDING}

    async def test_those_of_another_in_the_same_lane_go_on(self, works: Works) -> None:
        works.sender.hang(SLOW)
        others = [callback(f"other {n}", url=SLOW, service_id=56) for n in range(8)]
        await works.notify(*to("slow.test", PER_RECEIVER), *others)
        await works.start()
        assert works.sender.at_work[SLOW] == PER_RECEIVER

        await works.deliveries.abandon(SERVICE)
        works.sender.let_go()
        await asyncio.wait_for(works.deliveries.wait_idle(), 1)

        assert len(works.sender.posts) == PER_RECEIVER + 8


class TestBounds:
    async def test_one_receiver_gets_so_many_at_once_and_no_more(self, works: Works) -> None:
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", PER_RECEIVER + 8))
        await works.start()
        assert works.sender.at_work[SLOW] == PER_RECEIVER

        works.sender.let_go()
        await asyncio.wait_for(works.deliveries.wait_idle(), 1)

        assert works.sender.most_at_work[SLOW] == PER_RECEIVER
        assert len(works.sender.posts) == PER_RECEIVER + 8

    async def test_when_all_senders_are_at_work_a_new_lane_still_gets_one(
        self, works: Works
    ) -> None:
        full = [f"full{n}.test" for n in range(IN_ALL // PER_RECEIVER)]
        late = ["late1.test", "late2.test"]
        works.sender.hang(*(f"http://{host}/callback" for host in (*full, *late)))
        for host in (*full, *late):
            await works.notify(*to(host, PER_RECEIVER))

        await works.start()

        working = works.sender.at_work
        assert [working[f"http://{host}/callback"] for host in full] == [PER_RECEIVER] * len(full)
        assert [working[f"http://{host}/callback"] for host in late] == [1, 1]

    async def test_an_idle_lane_is_forgotten(self, works: Works) -> None:
        await works.notify(*(callback(f"C{n}", url=f"http://shop{n}.test/") for n in range(20)))

        await works.jobs.settle()

        assert works.deliveries._lanes == {}
        assert works.deliveries._tasks == {}


@pytest.mark.decision("D16")
class TestTheGate:
    """No callback leaves before the answer to its own request has been written out."""

    async def test_a_held_callback_waits_and_leaves_when_it_is_released(self, works: Works) -> None:
        works.deliveries.gate.hold("10000000001")
        await works.notify(callback())
        await works.start()
        assert works.sender.posts == []

        works.deliveries.gate.release("10000000001")
        await asyncio.wait_for(works.deliveries.wait_idle(), 1)

        assert await works.states() == {"C1": Delivery.DELIVERED}

    async def test_one_that_is_released_before_it_is_due_does_not_wait(self, works: Works) -> None:
        works.deliveries.gate.hold("10000000001")
        works.deliveries.gate.release("10000000001")
        await works.notify(callback())

        await works.start()

        assert len(works.sender.posts) == 1

    async def test_it_holds_its_own_callback_only(self, works: Works) -> None:
        works.deliveries.gate.hold("10000000001")
        other = callback("C2", network_transaction_id="10000000002")
        await works.notify(callback("C1"), other)

        await works.start()

        assert await works.states() == {"C1": Delivery.PENDING, "C2": Delivery.DELIVERED}

    async def test_releasing_what_is_not_held_is_harmless(self, works: Works) -> None:
        works.deliveries.gate.release("10000000001")
        await works.notify(callback())

        await works.start()

        assert len(works.sender.posts) == 1

    async def test_a_retry_is_not_held_again(self, works: Works) -> None:
        works.deliveries.gate.hold("10000000001")
        works.deliveries.gate.release("10000000001")

        await asyncio.wait_for(works.deliveries.gate.passed("10000000001"), 1)
        await asyncio.wait_for(works.deliveries.gate.passed("10000000001"), 1)

    async def test_nothing_is_remembered_of_what_was_released(self, works: Works) -> None:
        for number in range(10):
            works.deliveries.gate.hold(str(number))
            works.deliveries.gate.release(str(number))

        assert works.deliveries.gate._held == {}


class TestClosing:
    """What is on the wire may finish; what is in the queue is not begun, and not lost either."""

    async def test_what_is_on_the_wire_finishes_within_the_grace(self, works: Works) -> None:
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", 1))
        await works.start()

        closing = asyncio.create_task(works.deliveries.close(grace=5))
        await asyncio.sleep(0)
        works.sender.let_go()
        await asyncio.wait_for(closing, 1)

        assert await works.states() == {"slow.test 0": Delivery.DELIVERED}

    async def test_what_takes_longer_is_cut_off_and_not_recorded(self, works: Works) -> None:
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", 1))
        await works.start()

        await asyncio.wait_for(works.deliveries.close(grace=0.005), 1)

        assert works.sender.at_work[SLOW] == 0
        assert (await works.callback("slow.test 0")).attempts == ()

    async def test_the_queue_is_not_begun(self, works: Works) -> None:
        works.sender.hang(SLOW)
        await works.notify(*to("slow.test", PER_RECEIVER + 10))
        await works.start()

        closing = asyncio.create_task(works.deliveries.close(grace=5))
        await asyncio.sleep(0)
        works.sender.let_go()
        await asyncio.wait_for(closing, 1)

        assert len(works.sender.posts) == PER_RECEIVER
        assert list((await works.states()).values()).count(Delivery.PENDING) == 10

    async def test_with_nothing_to_do_it_returns_at_once(self, works: Works) -> None:
        await asyncio.wait_for(works.deliveries.close(grace=5), 1)
