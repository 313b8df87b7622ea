"""Identifiers have the right shape, are unique, and are the same each time for the same seed."""

import re
from random import Random

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds
from sandbox_sim.ports import StoreError
from sandbox_sim.values.cards import SHORTEST
from sandbox_sim.values.redaction import redact_text

# By the method that gives the ids.
SHAPES = {
    "network_transaction_id": r"[1-9][0-9]{10}",
    "record_id": r"[0-9a-f]{32}",
    "request_id": r"[0-9a-f]{8}-[0-9a-f]+",
    "token": r"[A-Za-z0-9_-]{22}",
}


@pytest.mark.decision("D18")
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("seed", [None, 7])
def test_ids_have_the_shape_of_their_kind_and_are_unique(kind: str, seed: int | None) -> None:
    ids = RandomIds(seed)
    made = [getattr(ids, kind)() for _ in range(5000)]

    assert len(set(made)) == 5000
    assert all(re.fullmatch(SHAPES[kind], each) for each in made)
    if kind == "record_id":  # a database then stores each one next to the last one
        assert made == sorted(made)


@pytest.mark.parametrize("kind", ["network_transaction_id", "record_id", "request_id"])
def test_the_same_seed_gives_the_same_ids(kind: str) -> None:
    one, same, other, any_ = RandomIds(7), RandomIds(7), RandomIds(8), RandomIds()
    made = {
        name: [getattr(ids, kind)() for _ in range(5)]
        for name, ids in {"one": one, "same": same, "other": other, "any": any_}.items()
    }

    assert made["one"] == made["same"]
    assert made["one"] != made["other"]
    assert made["one"] != made["any"]


def test_a_seed_fixes_the_random_numbers_and_not_the_tokens() -> None:
    one, same, other = RandomIds(7), RandomIds(7), RandomIds(8)

    drawn = [one.draw() for _ in range(100)]

    assert drawn == [same.draw() for _ in range(100)]
    assert drawn != [other.draw() for _ in range(100)]
    assert all(0 <= number < 1 for number in drawn)
    assert one.record_id() == RandomIds(7).record_id(), "a draw does not change the ids"
    # Anyone who has the address of a payment page may pay on it, so no seed makes tokens.
    assert one.token() != same.token()


class TestSuppliedNumbers:
    """The caller supplies the numbers from which network transaction ids are made."""

    @pytest.mark.decision("D18")
    def test_ids_follow_the_numbers_and_start_again_before_those_of_sample_people(self) -> None:
        ids, last = RandomIds(), 8 * 10**10
        for numbers, given in (
            (range(5, 8), ["10000000005", "10000000006", "10000000007"]),
            (range(last - 1, last + 1), ["89999999999", "10000000000"]),
        ):
            ids.use_numbers(numbers, on_low=lambda: None)
            assert [ids.network_transaction_id() for _ in given] == given

    def test_half_used_numbers_are_reported_once_and_used_up_numbers_raise(self) -> None:
        ids = RandomIds()
        reports: list[str] = []
        ids.use_numbers(range(100, 110), on_low=lambda: reports.append("low"))

        given = [ids.network_transaction_id() for _ in range(5)]
        assert reports == []
        given += [ids.network_transaction_id() for _ in range(5)]
        assert reports == ["low"]
        with pytest.raises(StoreError, match="no network transaction ids are left"):
            ids.network_transaction_id()

        ids.use_numbers(range(2, 4), on_low=lambda: None)
        assert ids.network_transaction_id() not in given


def test_an_id_never_looks_like_a_card_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be masked in the log and in the journal."""
    monkeypatch.setattr(Random, "getrandbits", lambda _self, bits: int("4" * (bits // 4), 16))
    ids = RandomIds()

    given = [make(ids) for _ in range(300) for make in (RandomIds.record_id, RandomIds.request_id)]

    assert [redact_text(each) for each in given] == given
    assert max(len(run) for each in given for run in re.findall("[0-9]+", each)) < SHORTEST
