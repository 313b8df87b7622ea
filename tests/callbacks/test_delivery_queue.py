"""The next callback: new receivers come first and stalled ones last; the gate holds some back."""

import ast
import asyncio
from pathlib import Path

import pytest

from sandbox_sim.callbacks.delivery_queue import (
    MAX_CONCURRENT,
    MAX_CONCURRENT_PER_RECEIVER,
    AttemptWait,
    DeliveryQueue,
    ProcessAnswerGate,
    QueuedCallback,
    ReceiverStanding,
)
from sandbox_sim.ports import AnswerGate
from tests.sample_records import SERVICE, callback, job
from tests.turns import SOON_S


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


def test_receivers_take_turns_a_new_one_first_and_a_stalled_one_last(queue: DeliveryQueue) -> None:
    add(queue, "a", "a", "a", "b", "c", "b")
    assert names(queue) == ["a", "b", "c", "a", "b", "a"]

    other = DeliveryQueue()
    tried(other, "stalled", ReceiverStanding.STALLED)
    tried(other, "tried", ReceiverStanding.TRIED)
    add(other, "new")
    assert names(other) == ["new", "tried", "stalled"]

    tried(queue, "tried", ReceiverStanding.TRIED)
    add(queue, *(f"new{n}" for n in range(2 * MAX_CONCURRENT)))
    assert "tried" in names(queue)[: MAX_CONCURRENT + 2], "new ones do not starve it"


def test_a_receiver_that_answers_again_is_no_longer_stalled(queue: DeliveryQueue) -> None:
    add(queue, "a", "a", "a")
    first, second = take(queue), take(queue)
    queue.done(first.receiver, ReceiverStanding.STALLED)
    assert queue.urgent == 0

    queue.done(second.receiver, ReceiverStanding.TRIED)

    assert queue.urgent == 1
    assert names(queue) == ["a"]


def test_a_receiver_has_limited_attempts_and_after_a_refusal_only_one(queue: DeliveryQueue) -> None:
    add(queue, *["a"] * (MAX_CONCURRENT_PER_RECEIVER + 10))
    assert queue.ready == MAX_CONCURRENT_PER_RECEIVER
    first, *others = [take(queue) for _ in range(MAX_CONCURRENT_PER_RECEIVER)]
    assert queue.take() is None

    for each in (first, *others):
        queue.done(each.receiver, ReceiverStanding.REFUSED)
    assert queue.ready == 1
    probe = take(queue)
    assert queue.take() is None

    queue.done(probe.receiver, ReceiverStanding.TRIED)
    assert queue.ready == 9


def test_callbacks_that_an_advance_waits_for_go_first_also_after_a_refusal(
    queue: DeliveryQueue,
) -> None:
    tried(queue, "a", ReceiverStanding.REFUSED)
    for number in range(MAX_CONCURRENT_PER_RECEIVER):
        queue.add("a", job("C1"), callback(f"C{number}"))

    wait = AttemptWait({"C7", "C5"}, asyncio.Event())
    queue.prioritize(wait)
    first = [take(queue) for _ in range(MAX_CONCURRENT_PER_RECEIVER)]
    queue.waits.remove(wait)

    assert queue.take() is None
    assert [each.callback.id for each in first[:2]] == ["C5", "C7"]
    queue.done(first[0].receiver, ReceiverStanding.REFUSED)
    assert queue.take() is None, "the others are still under way"


def test_a_refusal_is_remembered_while_no_callback_waits(queue: DeliveryQueue) -> None:
    for name in ("a", *(f"other{n}" for n in range(MAX_CONCURRENT - 1))):
        add(queue, name)
        queue.done(take(queue).receiver, ReceiverStanding.REFUSED)
    assert queue.receivers == ()

    add(queue, "a", "a")
    assert queue.ready == 1
    for _ in range(2):
        queue.done(take(queue).receiver, ReceiverStanding.TRIED)
    add(queue, "a", "a")
    assert queue.ready == 2


def test_a_callback_that_is_put_back_is_the_next_of_its_receiver(queue: DeliveryQueue) -> None:
    for name in ("C1", "C2"):
        queue.add("a", job(name), callback(name))

    queue.requeue(take(queue), ReceiverStanding.STALLED)

    assert take(queue).callback.id == "C1"


def test_removed_callbacks_are_not_taken_and_an_idle_receiver_is_forgotten(
    queue: DeliveryQueue,
) -> None:
    add(queue, "a", "b")
    add(queue, "a", service_id=56)

    queue.remove(SERVICE)

    assert (list(queue.receivers), queue.ready, queue.urgent) == (["a"], 1, 1)
    last = take(queue)
    assert last.callback.service_id == 56
    assert queue.take() is None

    queue.done(last.receiver, ReceiverStanding.STALLED)
    assert (list(queue.receivers), queue.ready, queue.urgent) == ([], 0, 0)


PACKAGE = Path(__file__).parents[2] / "sandbox_sim"
FIRST, SECOND = "10000000001", "10000000002"


@pytest.mark.decision("D16")
class TestAnswerGate:
    """The gate holds the callbacks of a transaction until its answer is written."""

    @pytest.fixture
    def gate(self) -> AnswerGate:
        return ProcessAnswerGate()

    async def waiting(self, gate: AnswerGate) -> asyncio.Task[None]:
        """Start a task that waits for the release."""
        task = asyncio.create_task(gate.wait_until_released(FIRST))
        await asyncio.sleep(0)
        return task

    async def test_a_release_ends_each_wait_for_its_transaction(self, gate: AnswerGate) -> None:
        gate.release(FIRST)  # FIRST is not held, so this does nothing
        await asyncio.wait_for(gate.wait_until_released(FIRST), SOON_S)
        assert not gate.is_held(FIRST)

        gate.hold(FIRST)
        assert (gate.is_held(FIRST), gate.is_held(SECOND)) == (True, False)
        gate.hold(SECOND)
        tasks = [await self.waiting(gate), await self.waiting(gate)]
        gate.release(SECOND)
        await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)

        gate.release(FIRST)
        assert not gate.is_held(FIRST)
        await asyncio.wait_for(asyncio.gather(*tasks), SOON_S)
        await asyncio.wait_for(gate.wait_until_released(FIRST), SOON_S)

    def test_a_release_makes_the_registered_call_once(self) -> None:
        gate = ProcessAnswerGate()
        held: list[bool] = []

        def note() -> None:
            held.append(gate.is_held(FIRST))

        gate.hold(FIRST)
        gate.call_when_released(FIRST, note)
        assert held == []
        for _ in range(2):
            gate.release(FIRST)
        assert held == [False]

        gate.call_when_released(FIRST, note)
        assert held == [False] * 2, "at once if it is not held"
        assert (gate._held, gate._on_release) == ({}, {})

    @pytest.mark.parametrize("layer", ["stores", "web"])
    def test_stores_and_web_import_the_answer_gate_from_the_ports(self, layer: str) -> None:
        imports = [
            (path.name, node.module)
            for path in (PACKAGE / layer).rglob("*.py")
            if "AnswerGate" in (text := path.read_text("utf-8"))  # to parse a module takes long
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ImportFrom)
            for name in node.names
            if name.name.endswith("AnswerGate")
        ]

        assert imports
        assert {module for _, module in imports} == {"sandbox_sim.ports"}
