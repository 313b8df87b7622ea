"""Negative control of the proof: servers that fail without having been killed."""

from dataclasses import replace

from chaos.facts import EVERY_SERVER, Facts, Outage
from tests.chaos.evidence import ACROSS, CODES, CUT_OFF, ENDED, against, asked, delivery


def test_a_code_that_the_rules_do_not_allow(facts: Facts) -> None:
    facts.queries.append(asked(5.0, "400", "388", path="/sms/balance"))

    assert against(facts, CODES) == "/sms/balance was answered 400, not 388"


def test_an_answer_that_was_cut_off_without_a_kill(facts: Facts) -> None:
    facts.queries.append(asked(5.0, None, "388", path="/sms/balance"))

    assert "/sms/balance to server 0 had no answer: connection lost" in against(facts, CUT_OFF)


def test_a_fault_without_a_kill(facts: Facts) -> None:
    facts.queries.append(asked(5.0, "500", "388", path="/sms/balance"))

    assert "/sms/balance to server 0 was answered 500" in against(facts, CUT_OFF)


def test_a_kill_explains_only_what_its_own_server_failed_to_do(facts: Facts) -> None:
    facts.queries.append(replace(asked(2.1, None, "388"), server=1))

    assert "to server 1 had no answer" in against(facts, CUT_OFF)


def test_a_database_that_was_away_explains_every_server(facts: Facts) -> None:
    facts.queries.append(replace(asked(5.0, "500", "388"), server=1))
    facts.outages.append(Outage(EVERY_SERVER, 4.9, 5.5))

    assert against(facts) == ""


def test_a_callback_that_comes_again_without_a_kill(facts: Facts) -> None:
    facts.deliveries.append(delivery("card", 1.8))

    assert against(facts, ACROSS) == "callback of card was acknowledged and came again 200 ms later"


def test_a_server_that_ended_by_itself(facts: Facts) -> None:
    facts.complaints.append("server 0 ended by itself with exit code 1")

    assert against(facts, ENDED) == "server 0 ended by itself with exit code 1"
