"""The next callback: new receivers come first and stalled ones last, and none waits for ever."""

import pytest

from sandbox_sim.callbacks.delivery_queue import (
    IN_ALL,
    PER_RECEIVER,
    DeliveryQueue,
    QueuedCallback,
    ReceiverStanding,
)
from tests.sample_records import SERVICE, callback, job


def add(queue: DeliveryQueue, *names: str, service_id: int = SERVICE) -> None:
    for name in names:
        queue.add(name, job("C1"), callback(service_id=service_id))


def take(queue: DeliveryQueue) -> QueuedCallback:
    taken = queue.take()
    assert taken is not None
    return taken


def names(queue: DeliveryQueue) -> list[str]:
    """The receivers of all callbacks that can be taken, in order."""
    taken = iter(queue.take, None)
    return [each.receiver.name for each in taken]


def tried(queue: DeliveryQueue, name: str, standing: ReceiverStanding) -> None:
    """Attempt one callback of a receiver that has another one in the queue."""
    add(queue, name, name)
    taken = take(queue)
    queue.done(taken.receiver, standing)


@pytest.fixture
def queue() -> DeliveryQueue:
    return DeliveryQueue()


def test_receivers_take_turns(queue: DeliveryQueue) -> None:
    add(queue, "a", "a", "a", "b", "c", "b")

    assert names(queue) == ["a", "b", "c", "a", "b", "a"]


def test_a_new_receiver_goes_before_one_that_was_tried_and_that_before_a_stalled_one(
    queue: DeliveryQueue,
) -> None:
    tried(queue, "stalled", ReceiverStanding.STALLED)
    tried(queue, "tried", ReceiverStanding.TRIED)
    add(queue, "new")

    assert names(queue) == ["new", "tried", "stalled"]


def test_a_receiver_that_was_tried_is_not_starved_by_new_ones(queue: DeliveryQueue) -> None:
    tried(queue, "tried", ReceiverStanding.TRIED)
    add(queue, *(f"new{n}" for n in range(2 * IN_ALL)))

    assert "tried" in names(queue)[: IN_ALL + 2]


def test_one_that_answers_again_is_not_stalled_any_more(queue: DeliveryQueue) -> None:
    add(queue, "a", "a", "a")
    first, second = take(queue), take(queue)
    queue.done(first.receiver, ReceiverStanding.STALLED)
    assert queue.urgent == 0

    queue.done(second.receiver, ReceiverStanding.TRIED)

    assert queue.urgent == 1
    assert names(queue) == ["a"]


def test_a_receiver_that_refused_gets_one_attempt_at_a_time_until_one_reaches_it(
    queue: DeliveryQueue,
) -> None:
    add(queue, *["a"] * (PER_RECEIVER + 10))
    first, *others = [take(queue) for _ in range(PER_RECEIVER)]

    for each in (first, *others):
        queue.done(each.receiver, ReceiverStanding.REFUSED)
    assert queue.takeable == 1
    probe = take(queue)
    assert queue.take() is None

    queue.done(probe.receiver, ReceiverStanding.TRIED)
    assert queue.takeable == 9


def test_those_that_an_advance_waits_for_go_first_and_a_refusal_does_not_hold_them_back(
    queue: DeliveryQueue,
) -> None:
    tried(queue, "a", ReceiverStanding.REFUSED)
    for number in range(PER_RECEIVER):
        queue.add("a", job("C1"), callback(f"C{number}"))

    queue.hurry({"C7", "C5"})
    first = [take(queue) for _ in range(PER_RECEIVER)]
    queue.end_hurry()

    assert queue.take() is None
    assert [each.callback.id for each in first[:2]] == ["C5", "C7"]
    queue.done(first[0].receiver, ReceiverStanding.REFUSED)
    assert queue.take() is None, "the others are still under way"


def test_a_refusal_is_remembered_while_no_callback_waits(queue: DeliveryQueue) -> None:
    for name in ("a", *(f"other{n}" for n in range(IN_ALL - 1))):
        add(queue, name)
        queue.done(take(queue).receiver, ReceiverStanding.REFUSED)
    assert queue.receivers == ()

    add(queue, "a", "a")
    assert queue.takeable == 1
    for _ in range(2):
        queue.done(take(queue).receiver, ReceiverStanding.TRIED)
    add(queue, "a", "a")
    assert queue.takeable == 2


def test_one_receiver_has_so_many_attempts_and_no_more(queue: DeliveryQueue) -> None:
    add(queue, *["a"] * (PER_RECEIVER + 1))
    assert queue.takeable == PER_RECEIVER

    taken = [take(queue) for _ in range(PER_RECEIVER)]
    assert queue.take() is None

    queue.done(taken[0].receiver, ReceiverStanding.TRIED)
    assert take(queue).receiver.name == "a"


def test_what_is_put_back_is_the_next_of_its_receiver(queue: DeliveryQueue) -> None:
    for name in ("C1", "C2"):
        queue.add("a", job(name), callback(name))

    queue.put_back(take(queue), ReceiverStanding.STALLED)

    assert take(queue).callback.id == "C1"


def test_what_is_removed_is_not_taken(queue: DeliveryQueue) -> None:
    add(queue, "a", "b")
    add(queue, "a", service_id=56)

    queue.remove(SERVICE)

    assert queue.receivers == ("a",)
    assert (queue.takeable, queue.urgent) == (1, 1)
    assert take(queue).callback.service_id == 56
    assert queue.take() is None


def test_nothing_is_left_of_a_receiver_that_is_done_with(queue: DeliveryQueue) -> None:
    add(queue, "a")

    queue.done(take(queue).receiver, ReceiverStanding.STALLED)

    assert queue.receivers == ()
    assert (queue.takeable, queue.urgent) == (0, 0)
