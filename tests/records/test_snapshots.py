"""The names of snapshots, and how the times of restored records move."""

from datetime import timedelta
from typing import Any

import pytest

from sandbox_sim.records.callbacks import DeliveryAttempt
from sandbox_sim.records.ledger import LedgerLine
from sandbox_sim.records.snapshots import is_valid_name, with_times_shifted
from sandbox_sim.records.transactions import Status
from tests.sample_records import (
    NOW,
    after,
    callback,
    checkout,
    delivery,
    entry,
    job,
    message,
    posting,
    transaction,
)

ATTEMPT = DeliveryAttempt(
    1, NOW, 500, 7, "out of order", "not acknowledged", "http://shop.test", after(minutes=5)
)


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
        (ATTEMPT, {"at", "next_attempt_at"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_its_times_are_later_and_all_else_is_as_it_was(record: Any, times: set[str]) -> None:
    moved = with_times_shifted(record, timedelta(hours=2))

    later = {name: getattr(record, name) + timedelta(hours=2) for name in times}
    assert moved == record._replace(**later)
    assert type(moved) is type(record)


def test_records_inside_of_it_move_too() -> None:
    by = timedelta(minutes=1)

    assert with_times_shifted(callback(attempts=(ATTEMPT,)), by).attempts == (
        with_times_shifted(ATTEMPT, by),
    )
    assert with_times_shifted(LedgerLine(1, posting()), by) == LedgerLine(
        1, with_times_shifted(posting(), by)
    )


def test_where_no_time_has_gone_by_it_is_the_same() -> None:
    record = callback(attempts=(ATTEMPT,))

    assert with_times_shifted(record, timedelta()) is record


@pytest.mark.parametrize("name", ["a", "before.v1_2-x", "A" * 255])
def test_names(name: str) -> None:
    assert is_valid_name(name)


@pytest.mark.parametrize("name", ["", "a b", "A" * 256, "a/b", "é", "a\n"])
def test_what_is_no_name(name: str) -> None:
    assert not is_valid_name(name)
