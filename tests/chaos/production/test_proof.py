"""Negative control of the proof of production: each fault is found, and named by its claim."""

from decimal import Decimal

import pytest

from chaos.facts import Delivery
from chaos.production.observations import Books, Charges, Observations, Purchase, Renewal
from chaos.production.proof import prove

SERVICE = 55

ENDED = "payments ended as the network says"
THERE = "that were answered 202 are there"
PERSON = "waited for a person"
KEPT = "nothing is kept of"
TWICE = "no payment was accepted twice"
BETWEEN = "killed between submit and record"
ONCE = "were charged at the network once each"
AGAIN = "no payment that the network charged was sent to it again"
BY_CLIENT = "refused were sent to it again by their client"
UNSENT = "charged for nothing that no client sent"
ARRIVED = "callbacks arrived and were acknowledged"
SIGNED = "deliveries are signed"
ACROSS = "came again did so across a kill"
ZERO = "every asset sums to zero"
HELD = "nothing is held any more"
BALANCES = "balances are what the network carried out"
RENEWED = "one new token for each server and product"
NOTIFIED = "callbacks of the network were acknowledged"
SERVERS = "the servers ended only when they were killed"


def purchase(
    name: str, operation: str, amount: str, *codes: str | None, status: str | None = None
) -> Purchase:
    return Purchase(SERVICE, name, operation, Decimal(amount), list(codes), status)


def delivery(ref: str, status: str, *, genuine: bool = True, answered: int = 200) -> Delivery:
    return Delivery(1.0, ref, f"id-{ref}", f"{status}/WORD", genuine, answered)


@pytest.fixture
def seen() -> Observations:
    """A run without a fault, which each test changes."""
    cut = purchase("cut", "payout", "1", None, "219", status="000")
    seen = Observations(
        purchases=[
            purchase("deposit", "deposit", "100", "202", status="000"),
            purchase("collect", "collect", "2.5", "500", "202", status="000"),
            purchase("failed", "payout", "7", "202", "219", status="001"),
            purchase("declined", "collect", "3", "015"),
            purchase("away", "collect", "4", "500"),
            purchase("never", "collect", "5", None, "500"),
            cut,
        ],
        charges={
            (SERVICE, "deposit"): Charges(["202"], "000"),
            (SERVICE, "collect"): Charges(["202"], "000"),
            (SERVICE, "failed"): Charges(["202"], "001"),
            (SERVICE, "declined"): Charges(["015"], "001"),
            (SERVICE, "cut"): Charges(["202"], "000"),
        },
        books=Books(
            assets={"GHS": Decimal(0)},
            held={SERVICE: Decimal(0)},
            available={(SERVICE, "payout"): Decimal(99), (SERVICE, "collection"): Decimal("2.5")},
        ),
        between=[cut],
    )
    seen.facts.deliveries += [
        delivery("deposit", "000", answered=500),
        delivery("deposit", "000"),
        delivery("collect", "000"),
        delivery("failed", "001"),
        delivery("cut", "000"),
    ]
    return seen


def broken(seen: Observations) -> dict[str, str]:
    """The claims that do not hold, each with its first piece of evidence."""
    return {each.sentence: each.violations[0] for each in prove(seen) if not each.holds}


def against(seen: Observations, claim: str) -> str:
    """The evidence against this claim."""
    (evidence,) = (text for sentence, text in broken(seen).items() if claim in sentence)
    return evidence


def named(seen: Observations, name: str) -> Purchase:
    (found,) = (each for each in seen.purchases if each.transaction_id == name)
    return found


def test_a_run_without_a_fault_is_proven(seen: Observations) -> None:
    assert broken(seen) == {}


def test_another_end_than_the_network_says(seen: Observations) -> None:
    named(seen, "failed").status = "000"

    assert "failed of service 55 (202, 219) has status 000; the network says 001" in against(
        seen, ENDED
    )


def test_a_payment_that_stays_pending(seen: Observations) -> None:
    named(seen, "cut").status = "002"

    assert "is still pending; the network says 000" in against(seen, ENDED)
    assert "payout cut" in against(seen, BETWEEN)


def test_a_payment_that_was_charged_and_forgotten(seen: Observations) -> None:
    seen.charges[SERVICE, "never"] = Charges(["202"], "000")

    assert "is not found, and the network has charged it" in against(seen, ENDED)


def test_an_acknowledged_payment_that_is_lost(seen: Observations) -> None:
    named(seen, "collect").status = None

    assert "collect collect" in against(seen, THERE)


@pytest.mark.parametrize("name", ["declined", "away"])
def test_a_refused_payment_that_is_kept(seen: Observations, name: str) -> None:
    named(seen, name).status = "002"

    assert f"collect {name} of service 55" in against(seen, KEPT)


def test_a_refusal_of_a_repeat_waits_for_a_person(seen: Observations) -> None:
    waited = purchase("waited", "payout", "8", None, "219", status="001")
    seen.purchases.append(waited)
    seen.charges[SERVICE, "waited"] = Charges(["019", "019"])
    seen.facts.deliveries.append(delivery("waited", "001"))
    assert "status 001; the network says None" in against(seen, ENDED)

    waited.settled = True
    assert broken(seen) == {}

    seen.charges[SERVICE, "waited"].codes.append("202")
    assert "was settled, and the network did not refuse it" in against(seen, PERSON)


def test_a_fault_says_nothing_where_the_database_was_away(seen: Observations) -> None:
    seen.database_away = True
    named(seen, "away").status = "000"
    seen.charges[SERVICE, "away"] = Charges(["202"], "000")

    assert not [sentence for sentence in broken(seen) if KEPT in sentence or ENDED in sentence]


def test_a_payment_that_two_servers_accepted(seen: Observations) -> None:
    named(seen, "deposit").codes.append("202")

    assert "deposit deposit" in against(seen, TWICE)


def test_a_second_charge(seen: Observations) -> None:
    seen.charges[SERVICE, "cut"].codes.append("202")

    assert against(seen, ONCE) == "(55, 'cut') was charged 2 times"


def test_a_repeat_of_what_the_network_charged(seen: Observations) -> None:
    seen.charges[SERVICE, "cut"].codes.append("219")

    assert against(seen, AGAIN) == "(55, 'cut') was answered 219 there"


def test_a_client_may_send_a_refused_payment_again(seen: Observations) -> None:
    """A kill cut off the refusal, of which our gateway keeps nothing: the repeat is a new one."""
    declined = named(seen, "declined")
    declined.codes[:] = [None, "219"]
    seen.charges[SERVICE, "declined"].codes.append("219")
    assert broken(seen) == {}
    assert any("1 payments that the network refused" in each.sentence for each in prove(seen))

    declined.codes[:] = [None]
    assert against(seen, BY_CLIENT) == "(55, 'declined') was answered 219 there"


@pytest.mark.parametrize("name", ["never", "stranger"])
def test_a_repeat_of_what_the_network_did_not_refuse(seen: Observations, name: str) -> None:
    seen.charges[SERVICE, name] = Charges(["219"])

    assert against(seen, BY_CLIENT) == f"(55, '{name}') was answered 219 there"


def test_a_charge_that_no_client_asked_for(seen: Observations) -> None:
    seen.charges[SERVICE, "stranger"] = Charges(["202"], "000")

    assert against(seen, UNSENT) == "(55, 'stranger') was charged"


def test_a_callback_that_never_arrived(seen: Observations) -> None:
    del seen.facts.deliveries[-1]

    assert "payout cut of service 55 (no answer, 219): none was" in against(seen, ARRIVED)


@pytest.mark.parametrize(
    ("wrong", "evidence"),
    [
        (delivery("cut", "001"), "says 001/WORD"),
        (delivery("cut", "000", genuine=False), "is not genuine"),
        (delivery("away", "000"), "a callback came for away, which is not there"),
    ],
    ids=["another end", "forged", "not kept"],
)
def test_a_callback_that_is_wrong(seen: Observations, wrong: Delivery, evidence: str) -> None:
    seen.facts.deliveries.append(wrong)

    assert evidence in against(seen, SIGNED)


def test_a_callback_that_comes_again_without_a_kill(seen: Observations) -> None:
    seen.facts.deliveries.append(delivery("collect", "000"))

    assert "callback of collect was acknowledged and came again" in against(seen, ACROSS)


def test_books_that_do_not_agree(seen: Observations) -> None:
    seen.books.assets["GHS"] = Decimal("0.01")
    assert against(seen, ZERO) == "GHS sums to 0.01"

    seen.books.assets["GHS"] = Decimal(0)
    seen.books.wrong.append("service/55/payout/available/GHS")
    assert "is not the sum of its postings" in against(seen, ZERO)


def test_money_that_is_still_held(seen: Observations) -> None:
    seen.books.open_holds.append("H1")
    assert against(seen, HELD) == "hold H1 is open"

    seen.books.open_holds.clear()
    seen.books.held[SERVICE] = Decimal(7)
    assert against(seen, HELD) == "service 55 has 7 held"


def test_a_balance_that_the_network_does_not_explain(seen: Observations) -> None:
    seen.books.available[SERVICE, "payout"] = Decimal(100)

    assert against(seen, BALANCES) == "service 55 has 100 in payout, not 99"


def test_a_token_that_is_asked_for_by_each_payment(seen: Observations) -> None:
    seen.renewals.append(Renewal(50, 2, {"collection": 2, "disbursement": 1}))
    assert broken(seen) == {}

    seen.renewals.append(Renewal(49, 1, {"collection": 3}))
    assert against(seen, RENEWED) == "3 tokens of collection were given to 1 servers"
    assert against(seen, "50 and 49 payments waited")


def test_a_callback_of_the_network_that_is_not_acknowledged(seen: Observations) -> None:
    seen.notified["forged", 200] = 3
    assert broken(seen) == {}

    seen.notified["forged", 500] = 2
    assert against(seen, NOTIFIED) == "2 that came forged were answered HTTP 500"
    assert against(seen, "(5 forged)")

    seen.database_away = True
    assert broken(seen) == {}


def test_a_server_that_ended_by_itself(seen: Observations) -> None:
    seen.facts.complaints.append("server 0 ended by itself")

    assert against(seen, SERVERS) == "server 0 ended by itself"
