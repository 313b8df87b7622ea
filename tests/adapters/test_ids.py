"""Identifiers: of the right shape, none twice, and the same every time where a seed asks for it."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.adapters.ids import RandomIds

KINDS: dict[str, Callable[[RandomIds], str]] = {
    "network_transaction_id": RandomIds.network_transaction_id,
    "message_id": RandomIds.message_id,
    "request_id": RandomIds.request_id,
    "token": RandomIds.token,
}
SHAPES = {
    "network_transaction_id": r"[1-9][0-9]{10}",
    "message_id": r"[0-9a-f]{32}",
    "request_id": r"[0-9a-f]{8}-[0-9a-f]+",
    "token": r"[A-Za-z0-9_-]{22}",
}


@pytest.mark.decision("D18")
@given(seed=st.none() | st.integers())
def test_a_network_transaction_id_is_eleven_digits(seed: int | None) -> None:
    ids = RandomIds(seed)

    assert all(re.fullmatch(r"[0-9]{11}", ids.network_transaction_id()) for _ in range(10))


@pytest.mark.parametrize("kind", KINDS)
def test_each_has_its_shape(kind: str) -> None:
    assert re.fullmatch(SHAPES[kind], KINDS[kind](RandomIds()))


@pytest.mark.parametrize("kind", KINDS)
def test_none_comes_twice(kind: str) -> None:
    ids = RandomIds()

    assert len({KINDS[kind](ids) for _ in range(5000)}) == 5000


@pytest.mark.parametrize("kind", ["network_transaction_id", "message_id", "request_id"])
def test_a_seed_makes_them_come_out_the_same(kind: str) -> None:
    one, same, other, any_ = RandomIds(7), RandomIds(7), RandomIds(8), RandomIds()
    made = {
        name: [KINDS[kind](ids) for _ in range(5)]
        for name, ids in {"one": one, "same": same, "other": other, "any": any_}.items()
    }

    assert made["one"] == made["same"]
    assert made["one"] != made["other"]
    assert made["one"] != made["any"]


def test_a_seed_makes_no_token_guessable() -> None:
    """Whoever has the address of a payment page may pay on it."""
    assert RandomIds(7).token() != RandomIds(7).token()


def test_a_token_has_128_bits() -> None:
    assert len(RandomIds().token()) * 6 >= 128


def test_chance_is_that_of_the_seed_and_no_id_changes_by_it() -> None:
    one, same, other = RandomIds(7), RandomIds(7), RandomIds(8)

    drawn = [one.draw() for _ in range(100)]

    assert drawn == [same.draw() for _ in range(100)]
    assert drawn != [other.draw() for _ in range(100)]
    assert all(0 <= number < 1 for number in drawn)
    assert one.message_id() == RandomIds(7).message_id()
