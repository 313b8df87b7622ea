"""The names of snapshots, and the times of restored records."""

from datetime import timedelta
from typing import Any

import pytest

from sandbox_sim.records.ledger import LedgerLine
from sandbox_sim.records.snapshots import is_valid_name, with_times_shifted
from sandbox_sim.records.transactions import Status
from tests.sample_records import (
    NOW,
    callback,
    checkout,
    delivery,
    entry,
    job,
    message,
    posting,
    transaction,
)
from tests.stores.two_services import TRIED


@pytest.mark.parametrize(
    ("record", "times"),
    [
        (transaction(status=Status.FAILED, decided_at=NOW), {"initiated_at", "decided_at"}),
        (transaction(), {"initiated_at"}),
        (checkout(), {"expires_at"}),
        (callback(), {"created_at"}),
        (job(), {"due_at"}),
        (posting(), {"at"}),
        (message(sent_at=NOW), {"created_at", "sent_at"}),
        (entry(), {"at"}),
        (delivery(), {"at"}),
        (TRIED, {"at", "next_attempt_at"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_shift_moves_the_times_of_a_record_and_nothing_else(record: Any, times: set[str]) -> None:
    moved = with_times_shifted(record, timedelta(hours=2))

    later = {name: getattr(record, name) + timedelta(hours=2) for name in times}
    assert moved == record._replace(**later)
    assert type(moved) is type(record)


def test_a_shift_moves_the_times_of_contained_records() -> None:
    by = timedelta(minutes=1)
    record, moved = callback(attempts=(TRIED,)), with_times_shifted(posting(), by)

    assert with_times_shifted(record, by).attempts == (with_times_shifted(TRIED, by),)
    assert with_times_shifted(LedgerLine(1, posting()), by) == LedgerLine(1, moved)
    assert with_times_shifted(record, timedelta()) is record, "a shift by zero changes nothing"


def test_the_name_of_a_snapshot_has_1_to_255_letters_digits_or_marks() -> None:
    assert all(map(is_valid_name, ("a", "before.v1_2-x", "A" * 255)))
    assert not any(map(is_valid_name, ("", "a b", "A" * 256, "a/b", "é", "a\n")))
