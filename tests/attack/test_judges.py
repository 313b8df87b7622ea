"""Each attack fails a server that exceeds a bound, and none that keeps all of them."""

from dataclasses import replace
from typing import Any

import pytest

from attack import (
    callback_hosts,
    clock_advance,
    database_files,
    feed,
    foreign_pages,
    hanging_receivers,
    idle_clients,
    lengths,
    many_inboxes,
    notifications,
    odd_addresses,
    packed_bodies,
    recordings,
    secret_values,
    slow_requests,
    waits,
)
from attack.__main__ import ATTACKS
from attack.results import Result

SECRET = secret_values.Secret("4111111111111111", "collection.reference")

# The module, a measurement that keeps all bounds, and a change that exceeds one.
CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    (
        hanging_receivers,
        hanging_receivers.Measured(
            receivers=1100,
            good_one_waited_for=True,
            called_after_s=8.0,
            silence_s=0.2,
            log_bytes=2_000,
            tracebacks=0,
            spent_on_shortage=(),
            descriptors=300,
            limit=1024,
            unanswered=0,
        ),
        {"called_after_s": None},
    ),
    (idle_clients, idle_clients.Measured(400, slowest_s=0.01, tracebacks=0), {"slowest_s": 1.2}),
    (waits, waits.Measured("100 open waits", with_ms=0.4, without_ms=0.3), {"with_ms": 216.0}),
    (
        callback_hosts,
        callback_hosts.Measured(80, past_the_rule=(), without_it=("x",) * 30, tracebacks=0),
        {"past_the_rule": ["http://0.0.0.0/"]},
    ),
    (
        odd_addresses,
        odd_addresses.Measured(300, 40, (), (), (), (), tracebacks=0),
        {"faults": ["http://x: HTTP 500"]},
    ),
    (feed, feed.Measured("no reader", posts=400, taken=400, growth_mib=60), {"growth_mib": 779}),
    (
        database_files,
        database_files.Measured("-wal removed", before=("a",) * 20, after=(), found=("a",)),
        {"after": ["b"]},
    ),
    (
        slow_requests,
        slow_requests.Measured(0.01, 25, (), 200, 0.02, 200, (), growth_mib=5, tracebacks=0),
        {"half_closed_unanswered": ["a payment"]},
    ),
    (
        many_inboxes,
        many_inboxes.Measured(20_000, beside_many=900.0, beside_one=1_000.0, refused=0),
        {"beside_many": 66.0},
    ),
    (
        notifications,
        notifications.Measured(
            (), 2, 0.01, 0, before_ms=6, beside_ms=7, failed=(), disk_mib=0.5, tracebacks=0
        ),
        {"memory_mib": 8_200},
    ),
    (
        packed_bodies,
        packed_bodies.Measured(300, (), 0.02, payment_s=0.01, growth_mib=10, tracebacks=0),
        {"growth_mib": 4_000},
    ),
    (
        recordings,
        recordings.Measured(400, 400, first_ms=8, last_ms=7, undecided=(), lines=3, tracebacks=0),
        {"last_ms": 93},
    ),
    (
        foreign_pages,
        foreign_pages.Measured(200, let_in=(), kept_out=(), missing=()),
        {"let_in": ["sms, Origin: null: HTTP 200"]},
    ),
    (clock_advance, clock_advance.Measured(4.0, 4.1, 600), {"advanced_s": None}),
    (
        lengths,
        lengths.Measured(("SQLite",), 69, not_refused=(), different=(), tracebacks=0),
        {"not_refused": ["SQLite: collection.nickname: HTTP 202"]},
    ),
    (
        secret_values,
        secret_values.Measured([SECRET], answered=1, places={"the log": "411111******1111"}),
        {"places": {"the log": "paid by 4111 1111 1111 1111"}},
    ),
]


def results(judge: Any, measured: Any) -> list[Result]:
    found = judge(measured)
    return found if isinstance(found, list) else [found]


def test_every_attack_has_a_judge_here() -> None:
    assert {each.attack for each, _, _ in CASES} == set(ATTACKS.values())


@pytest.mark.parametrize(("module", "good", "bad"), CASES, ids=[c[0].__name__ for c in CASES])
def test_exactly_the_bound_that_is_exceeded_fails(
    module: Any, good: Any, bad: dict[str, Any]
) -> None:
    assert all(result.line.startswith("held: ") for result in results(module.judge, good))

    (failed,) = (each for each in results(module.judge, replace(good, **bad)) if not each.holds)

    assert failed.line.startswith("FAIL  ")


@pytest.mark.parametrize("way", secret_values.WAYS)
def test_a_secret_is_found_however_it_is_written(way: str) -> None:
    written = secret_values.WAYS[way](SECRET.text)

    assert [*secret_values.found_in(f"x{written}y", [SECRET], "the log")]


def test_an_address_may_stay_in_the_file_and_nowhere_else() -> None:
    secret = replace(SECRET, kept_in_file=True)

    assert [*secret_values.found_in(SECRET.text, [secret], "the SQLite file")] == []
    assert [*secret_values.found_in(SECRET.text, [secret], "the log")]
