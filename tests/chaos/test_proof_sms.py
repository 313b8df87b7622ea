"""Negative control of the proof: histories and balances that were changed."""

from dataclasses import replace

from chaos.facts import Facts, History
from chaos.proof import prove
from chaos.report import lines_of
from tests.chaos.evidence import (
    BAD,
    BALANCE,
    GOOD,
    IN_HISTORY,
    POOR,
    SEEN,
    SETTLED,
    SHOP,
    STRANGERS,
    UNKNOWN_SENDS,
    against,
    asked,
    history,
    keep_history,
    message,
)


def test_a_run_in_which_all_went_well_is_proven(facts: Facts) -> None:
    assert against(facts) == ""
    first, *_ = lines = list(lines_of(prove(facts)))
    assert first == "ok    2 acknowledged sends are in the history exactly once"
    assert all(line.startswith("ok    ") for line in lines)


def test_a_lost_message(facts: Facts) -> None:
    keep_history(facts, *history(facts)[1:])
    facts.histories.clear()

    assert "lost: send m1 of service 55 was acknowledged" in against(facts, IN_HISTORY)
    assert next(iter(lines_of(prove(facts)))).startswith("FAIL  2 acknowledged sends")


def test_a_lost_message_of_a_batch(facts: Facts) -> None:
    keep_history(facts, *(m for m in history(facts) if m.processing_id != "m3"))

    evidence = against(facts, IN_HISTORY)
    assert evidence == f"bulk b1 of service 55 has 0 of 1 messages to {BAD}: none"


def test_a_doubled_message(facts: Facts) -> None:
    keep_history(facts, *history(facts), message("m9", "one", GOOD))

    assert f"has 2 of 1 messages to {GOOD}: m1, m9" in against(facts, IN_HISTORY)


def test_a_message_told_twice(facts: Facts) -> None:
    keep_history(facts, *history(facts), history(facts)[0])

    assert "m1 is in the history 2 times" in against(facts, IN_HISTORY, STRANGERS)


def test_another_id_than_was_answered(facts: Facts) -> None:
    keep_history(facts, message("m9", "one", GOOD), *history(facts)[1:])
    facts.histories.clear()

    assert "and the history names it m9" in against(facts, IN_HISTORY)


def test_a_message_for_another_price(facts: Facts) -> None:
    first, *others = history(facts)
    keep_history(facts, replace(first, units=2), *others)

    assert against(facts, IN_HISTORY) == "m1 was charged 2 units, not 1"


def test_half_of_a_batch_that_was_never_answered(facts: Facts) -> None:
    keep_history(facts, *history(facts)[:-1])

    assert "has 1 of 2 messages" in against(facts, UNKNOWN_SENDS)


def test_a_batch_in_two_pieces(facts: Facts) -> None:
    keep_history(facts, *history(facts)[:-1], replace(history(facts)[-1], batch_id="b3"))

    assert "is in the history under the batches b2, b3" in against(facts, UNKNOWN_SENDS)


def test_a_message_of_a_rejected_send(facts: Facts) -> None:
    keep_history(facts, *history(facts), message("m9", "no units", GOOD))

    assert "send no units of service 55 got 237" in against(facts, STRANGERS)


def test_a_message_that_nobody_sent(facts: Facts) -> None:
    keep_history(facts, *history(facts), message("m9", "nobody's", GOOD))

    assert against(facts, STRANGERS) == "m9 of service 55 was never sent"


def test_a_message_of_another_service(facts: Facts) -> None:
    facts.final.histories[POOR] = ([message("m9", "no units", BAD)], 1)

    assert against(facts, STRANGERS) == "m9 of service 59 was never sent"


def test_a_page_that_is_missing(facts: Facts) -> None:
    facts.final.histories[SHOP] = (history(facts), 6)

    assert against(facts, STRANGERS) == "service 55: the pages have 5 messages and tell 6"


def test_a_message_that_never_settles(facts: Facts) -> None:
    first, *others = history(facts)
    keep_history(facts, replace(first, status="ACKNOWLEDGED"), *others)

    evidence = against(facts, SETTLED, SEEN)
    assert f"m1 to {GOOD} is ACKNOWLEDGED" in evidence
    assert "m1 was seen SENT and is ACKNOWLEDGED" in evidence


def test_a_message_that_was_there_before(facts: Facts) -> None:
    seen = (message("m8", "one", GOOD),)
    facts.histories.append(History(asked(3.0, "393"), SHOP, seen))

    assert against(facts, SEEN) == "m8 was seen in the history and is gone"


def test_a_wrong_balance(facts: Facts) -> None:
    facts.final.balances[SHOP] += 1

    assert against(facts, BALANCE) == "service 55 has 497 units, and 500 - 5 + 1 = 496"


def test_units_on_a_service_that_has_none(facts: Facts) -> None:
    facts.final.balances[POOR] = 500

    assert against(facts, BALANCE) == "service 59 has 500 units, and 0 - 0 + 0 = 0"
