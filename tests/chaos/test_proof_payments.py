"""Negative control of the proof: callbacks and statuses that were changed."""

from dataclasses import replace

import pytest

from chaos.facts import Facts
from tests.chaos.evidence import (
    ARRIVED,
    BACK,
    SIGNED,
    STATUSES,
    TRANS_ID,
    UNCALLED,
    UNKNOWN,
    against,
    delivery,
    status,
)

MINUTE = 60.0


def without(facts: Facts, ref: str) -> None:
    """Remove the callbacks of a payment."""
    facts.deliveries = [one for one in facts.deliveries if one.trans_ref != ref]


class TestCallbacks:
    def test_one_is_missing(self, facts: Facts) -> None:
        without(facts, "card")

        evidence = against(facts, ARRIVED)
        assert evidence == (
            "payment card of service 55 was accepted and its callback never arrived"
        )

    def test_one_was_refused_and_did_not_come_again(self, facts: Facts) -> None:
        without(facts, "card")
        facts.deliveries.append(delivery("card", 1.6, answered=500))

        assert "1 deliveries were refused and no other came" in against(facts, ARRIVED)

    def test_that_of_an_unanswered_payment_is_missing(self, facts: Facts) -> None:
        without(facts, "cut-there")

        assert "cut-there of service 55 has status 000 and its" in against(facts, UNKNOWN)

    def test_one_came_for_a_payment_without_a_record(self, facts: Facts) -> None:
        facts.final.statuses["cut-there"] = status("cut-there", 10.0, None)

        assert "is not found and its callback arrived" in against(facts, UNKNOWN, BACK)

    @pytest.mark.parametrize(
        ("ref", "code"), [("declined", "015"), ("stranger", "019"), ("over", "016")]
    )
    def test_one_came_for_a_rejected_payment(self, facts: Facts, ref: str, code: str) -> None:
        facts.deliveries.append(delivery(ref, 1.2))

        found = f"a callback came for payment {ref} of service 55, which was answered {code}"
        evidence = against(facts, UNCALLED, BACK) if code != "015" else against(facts, UNCALLED)
        assert found in evidence

    def test_one_came_for_an_unanswered_payment_that_is_declined(self, facts: Facts) -> None:
        facts.deliveries.append(delivery("cut-declined", 3.0))

        assert "cut-declined of service 55, which the rules reject" in against(facts, UNCALLED)

    def test_one_came_out_of_the_blue(self, facts: Facts) -> None:
        facts.deliveries.append(delivery("nobody's", 3.0))

        assert "a callback came for nobody's" in against(facts, UNCALLED)

    def test_one_is_not_signed(self, facts: Facts) -> None:
        facts.deliveries[-1] = replace(facts.deliveries[-1], genuine=False)

        assert "cut-there: 000/SUCCESS, not genuine" in against(facts, SIGNED)

    def test_one_tells_a_failure(self, facts: Facts) -> None:
        facts.deliveries[-1] = replace(facts.deliveries[-1], trans_status="001/FAILED")

        assert against(facts, SIGNED) == "callback of cut-there: 001/FAILED"


class TestIdentifiers:
    def test_a_repetition_has_another(self, facts: Facts) -> None:
        facts.deliveries[2] = delivery("paid", 2.6, trans_id="another")

        evidence = against(facts, TRANS_ID)
        assert evidence == "callbacks of paid came with the trans_ids id-paid, another"

    def test_two_payments_share_one(self, facts: Facts) -> None:
        facts.deliveries[3] = delivery("card", 1.6, trans_id="id-paid")
        card = facts.final.statuses["card"]
        facts.final.statuses["card"] = replace(card, network_id="id-paid")

        assert against(facts, TRANS_ID) == "trans_id id-paid stands for paid and for card"

    def test_the_status_has_another(self, facts: Facts) -> None:
        card = facts.final.statuses["card"]
        facts.final.statuses["card"] = replace(card, network_id="another")

        assert "has network_transaction_id another" in against(facts, TRANS_ID)


class TestStatuses:
    def test_an_accepted_payment_is_lost(self, facts: Facts) -> None:
        facts.final.statuses["card"] = status("card", 10.0, None)

        evidence = against(facts, STATUSES, BACK)
        assert "payment card of service 55 has status not found, not 000" in evidence
        assert "card was not found when asked 8990 ms after it was answered 000" in evidence

    def test_an_accepted_payment_stays_pending(self, facts: Facts) -> None:
        facts.final.statuses["card"] = status("card", 10.0, "002")

        assert "has status 002, not 000" in against(facts, STATUSES, BACK)

    def test_a_rejected_payment_has_a_record(self, facts: Facts) -> None:
        facts.final.statuses["over"] = status("over", 10.0, "000")

        assert "over of service 55 has status 000, not not found" in against(facts, STATUSES)

    def test_a_payment_is_not_found_for_a_while(self, facts: Facts) -> None:
        facts.statuses.append(status("paid", 1.2, None))

        assert "paid was not found when asked 190 ms after" in against(facts, BACK)

    def test_a_payment_falls_back(self, facts: Facts) -> None:
        facts.statuses.append(status("paid", 4.0, "002"))

        assert "paid was 002 when asked" in against(facts, BACK)

    def test_a_callback_comes_before_the_status(self, facts: Facts) -> None:
        facts.statuses.append(status("card", 1.7, "002"))

        assert "card was 002 when asked 100 ms after its callback arrived" in against(facts, BACK)

    def test_an_old_payment_may_be_forgotten(self, facts: Facts) -> None:
        facts.final.statuses["card"] = status("card", 15 * MINUTE, None)

        assert against(facts) == ""

    def test_a_payment_too_old_to_be_known(self, facts: Facts) -> None:
        facts.final.statuses["card"] = status("card", 16 * MINUTE, "000")

        assert "card of service 55 has status 000, not not found" in against(facts, STATUSES)
