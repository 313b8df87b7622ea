"""Each attack prints FAIL for a server that exceeds a bound, and held for one that does not."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from attack import (
    callback_hosts,
    database_files,
    feed,
    hanging_receivers,
    idle_clients,
    odd_addresses,
    secret_values,
    slow_requests,
    waits,
)
from attack.results import Result

HANGING = hanging_receivers.Measured(
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
)
IDLE = idle_clients.Measured(idle=400, slowest_s=0.01, tracebacks=0)
WAITING = waits.Measured("100 open waits", with_ms=0.4, without_ms=0.3)
HOSTS = callback_hosts.Measured(80, past_the_rule=(), without_it=("x",) * 30, tracebacks=0)
ODD = odd_addresses.Measured(
    tried=300, accepted=40, faults=(), unnamed=(), untried=(), resend_faults=(), tracebacks=0
)
FEED = feed.Measured("no reader", posts=400, taken=400, growth_mib=60)
ORIGINS = feed.Origins(let_in=(), kept_out=())
FILES = database_files.Measured("-wal removed", before=("a",) * 20, after=(), found=("a",))
SLOW = slow_requests.Measured(
    unauthorized_s=0.01,
    half_closed=25,
    half_closed_unanswered=(),
    slow_clients=200,
    beside_slow_s=0.02,
    long_addresses=200,
    long_not_refused=(),
    growth_mib=5,
    tracebacks=0,
)
SECRET = secret_values.Secret("4111111111111111", "collection.reference")
SECRETS = secret_values.Measured([SECRET], answered=1, places={"the log": "411111******1111"})

# A measurement that keeps all bounds, its judge, and a change that exceeds a bound.
CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    (hanging_receivers.judge, HANGING, {"called_after_s": None}),
    (hanging_receivers.judge, HANGING, {"called_after_s": 31.0}),
    (hanging_receivers.judge, HANGING, {"silence_s": 27.0}),
    (hanging_receivers.judge, HANGING, {"log_bytes": 60_000_000}),
    (hanging_receivers.judge, HANGING, {"tracebacks": 108_416}),
    (hanging_receivers.judge, HANGING, {"spent_on_shortage": ["Too many open files"]}),
    (hanging_receivers.judge, HANGING, {"descriptors": 1024}),
    (hanging_receivers.judge, HANGING, {"unanswered": 1}),
    (idle_clients.judge, IDLE, {"slowest_s": 1.2}),
    (idle_clients.judge, IDLE, {"tracebacks": 1}),
    (waits.judge, WAITING, {"with_ms": 216.0}),
    (callback_hosts.judge, HOSTS, {"past_the_rule": ["http://0.0.0.0/"]}),
    (callback_hosts.judge, HOSTS, {"without_it": ["x"]}),
    (callback_hosts.judge, HOSTS, {"tracebacks": 1}),
    (odd_addresses.judge, ODD, {"accepted": 0}),
    (odd_addresses.judge, ODD, {"faults": ["http://x: HTTP 500"]}),
    (odd_addresses.judge, ODD, {"unnamed": ["http://x"]}),
    (odd_addresses.judge, ODD, {"untried": ["http://[1:2:3]:9/"]}),
    (odd_addresses.judge, ODD, {"resend_faults": ["http://[1:2:3]:9/"]}),
    (odd_addresses.judge, ODD, {"tracebacks": 1}),
    (feed.judge, FEED, {"growth_mib": 779}),
    (feed.judge, FEED, {"taken": 399}),
    (feed.judge_origins, ORIGINS, {"let_in": ["Origin: null"]}),
    (feed.judge_origins, ORIGINS, {"kept_out": ["HTTP 403"]}),
    (database_files.judge, FILES, {"after": ["b"]}),
    (database_files.judge, FILES, {"before": ["a"] * 19 + ["b"]}),
    (database_files.judge, FILES, {"before": []}),
    (slow_requests.judge, SLOW, {"unauthorized_s": None}),
    (slow_requests.judge, SLOW, {"unauthorized_s": 1.5}),
    (slow_requests.judge, SLOW, {"half_closed_unanswered": ["a payment"]}),
    (slow_requests.judge, SLOW, {"beside_slow_s": 3.0}),
    (slow_requests.judge, SLOW, {"long_not_refused": ["HTTP 202"]}),
    (slow_requests.judge, SLOW, {"growth_mib": 1500}),
    (slow_requests.judge, SLOW, {"tracebacks": 1}),
    (secret_values.judge, SECRETS, {"answered": 0}),
    (secret_values.judge, SECRETS, {"places": {"the log": "paid by 4111 1111 1111 1111"}}),
]


def results(judge: Any, measured: Any) -> list[Result]:
    found = judge(measured)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize(
    ("judge", "good", "bad"), CASES, ids=[f"{c[0].__module__}-{next(iter(c[2]))}" for c in CASES]
)
def test_exactly_the_bound_that_is_exceeded_fails(judge: Any, good: Any, bad: Any) -> None:
    assert all(result.line.startswith("held: ") for result in results(judge, good))

    failed = [each for each in results(judge, replace(good, **bad)) if not each.holds]

    assert len(failed) == 1
    assert failed[0].line.startswith("FAIL  ")


def test_a_database_that_was_replaced_is_judged_by_what_came_after() -> None:
    found = database_files.judge(replace(FILES, touch="file removed", found=()))

    assert all(result.holds for result in found)


def test_many_receivers_are_sent_for_their_number_alone() -> None:
    measured = replace(HANGING, receivers=6000, good_one_waited_for=False, called_after_s=None)

    assert all(result.holds for result in hanging_receivers.judge(measured))


def test_the_evidence_is_printed_with_a_failure() -> None:
    (failed,) = [r for r in feed.judge_origins(replace(ORIGINS, let_in=["null"])) if not r.holds]

    assert [*failed.lines] == [
        "FAIL  deliveries that a foreign page sends and that are taken 1 (bound 0)",
        "        null",
    ]


class TestSecrets:
    @pytest.mark.parametrize("way", secret_values.WAYS)
    def test_one_is_found_however_it_is_written(self, way: str) -> None:
        written = secret_values.WAYS[way](SECRET.text)

        assert [*secret_values.found_in(f"x{written}y", [SECRET], "the log")]

    def test_one_is_found_behind_the_escapes_of_json(self) -> None:
        escaped = "".join(f"\\u{ord(digit):04x}" for digit in SECRET.text)

        assert [*secret_values.found_in(escaped, [SECRET], "the feed of events")]

    def test_an_address_may_stay_in_the_file_and_nowhere_else(self) -> None:
        secret = replace(SECRET, kept_in_file=True)

        assert [*secret_values.found_in(SECRET.text, [secret], "the SQLite file")] == []
        assert [*secret_values.found_in(SECRET.text, [secret], "the log")]

    def test_card_numbers_have_a_right_check_digit(self) -> None:
        for seed in range(200):
            digits = [int(digit) for digit in reversed(secret_values.card_number(Random(seed)))]
            doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
            assert (sum(digits[::2]) + sum(doubled)) % 10 == 0
