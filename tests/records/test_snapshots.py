"""The names of snapshots, and how the times of restored records move."""

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
def test_its_times_are_later_and_all_else_is_as_it_was(record: Any, times: set[str]) -> None:
    moved = with_times_shifted(record, timedelta(hours=2))

    later = {name: getattr(record, name) + timedelta(hours=2) for name in times}
    assert moved == record._replace(**later)
    assert type(moved) is type(record)


def test_records_inside_of_it_move_too() -> None:
    by = timedelta(minutes=1)

    assert with_times_shifted(callback(attempts=(TRIED,)), by).attempts == (
        with_times_shifted(TRIED, by),
    )
    assert with_times_shifted(LedgerLine(1, posting()), by) == LedgerLine(
        1, with_times_shifted(posting(), by)
    )
    record = callback(attempts=(TRIED,))
    assert with_times_shifted(record, timedelta()) is record, "where no time has gone by"


def test_names() -> None:
    assert all(map(is_valid_name, ("a", "before.v1_2-x", "A" * 255)))
    assert not any(map(is_valid_name, ("", "a b", "A" * 256, "a/b", "é", "a\n")))
