"""The answer gate holds the callbacks of a transaction until its answer is written (D16)."""

import ast
import asyncio
from pathlib import Path

import pytest

from sandbox_sim.callbacks.delivery_queue import ProcessAnswerGate
from sandbox_sim.ports import AnswerGate
from tests.turns import SOON_S

PACKAGE = Path(__file__).parents[2] / "sandbox_sim"

FIRST, SECOND = "10000000001", "10000000002"


pytestmark = pytest.mark.decision("D16")


@pytest.fixture
def gate() -> AnswerGate:
    return ProcessAnswerGate()


async def waiting(gate: AnswerGate, network_id: str) -> asyncio.Task[None]:
    """Start a task that waits for the release."""
    task = asyncio.create_task(gate.wait_until_released(network_id))
    await asyncio.sleep(0)
    return task


def test_a_transaction_is_held_from_hold_to_release(gate: AnswerGate) -> None:
    assert not gate.is_held(FIRST)
    gate.hold(FIRST)
    assert gate.is_held(FIRST)
    assert not gate.is_held(SECOND)
    gate.release(FIRST)
    assert not gate.is_held(FIRST)


async def test_all_that_wait_for_a_transaction_go_on_when_it_is_released(gate: AnswerGate) -> None:
    gate.hold(FIRST)
    tasks = [await waiting(gate, FIRST), await waiting(gate, FIRST)]
    assert not any(task.done() for task in tasks)

    gate.release(FIRST)

    await asyncio.wait_for(asyncio.gather(*tasks), SOON_S)


async def test_the_release_of_another_transaction_wakes_nothing(gate: AnswerGate) -> None:
    gate.hold(FIRST)
    gate.hold(SECOND)
    task = await waiting(gate, FIRST)

    gate.release(SECOND)
    await asyncio.sleep(0)

    assert not task.done()
    gate.release(FIRST)
    await asyncio.wait_for(task, SOON_S)


@pytest.mark.parametrize("released_before", [True, False])
async def test_nothing_waits_for_a_transaction_that_is_not_held(
    gate: AnswerGate, released_before: bool
) -> None:
    if released_before:
        gate.hold(FIRST)
        gate.release(FIRST)

    await asyncio.wait_for(gate.wait_until_released(FIRST), SOON_S)


def test_a_call_is_made_once_when_the_transaction_is_released(gate: AnswerGate) -> None:
    calls: list[str] = []
    gate.hold(FIRST)
    gate.call_when_released(FIRST, lambda: calls.append(FIRST))
    assert calls == []

    gate.release(FIRST)
    gate.release(FIRST)

    assert calls == [FIRST]


def test_a_call_for_a_transaction_that_is_not_held_is_made_at_once(gate: AnswerGate) -> None:
    calls: list[str] = []

    gate.call_when_released(FIRST, lambda: calls.append(FIRST))

    assert calls == [FIRST]


def test_a_call_finds_the_transaction_released(gate: AnswerGate) -> None:
    found: list[bool] = []
    gate.hold(FIRST)
    gate.call_when_released(FIRST, lambda: found.append(gate.is_held(FIRST)))

    gate.release(FIRST)

    assert found == [False]


def test_releasing_what_is_not_held_does_nothing(gate: AnswerGate) -> None:
    gate.release(FIRST)

    assert not gate.is_held(FIRST)


def test_nothing_is_kept_of_a_released_transaction() -> None:
    gate = ProcessAnswerGate()
    for number in range(10):
        gate.hold(str(number))
        gate.call_when_released(str(number), lambda: None)
        gate.release(str(number))

    assert (gate._held, gate._calls) == ({}, {})


@pytest.mark.parametrize("layer", ["stores", "web"])
def test_the_layers_around_the_gateway_know_the_port_only(layer: str) -> None:
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
