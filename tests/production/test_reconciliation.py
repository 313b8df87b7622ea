"""A statement of a network against our attempts (D39)."""

from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.production.reconciliation import (
    Action,
    OurAttempt,
    StatementRow,
    about_difference,
    about_missing_there,
    reconcile,
)

pytestmark = pytest.mark.decision("D39")


def row(line: int = 2, reference: str = "R1", amount: str = "10.50", **fields: Any) -> StatementRow:
    plain = StatementRow(line, reference, "", Decimal(amount), "GHS")
    return plain._replace(**fields)


def ours(reference: str = "R1", amount: str = "10.5", **fields: Any) -> OurAttempt:
    at_network, transaction_id = f"N-{reference}", f"T-{reference}"
    plain = OurAttempt(
        f"A-{reference}",
        reference,
        at_network,
        Decimal(amount),
        "GHS",
        "succeeded",
        55,
        transaction_id,
    )
    return plain._replace(**fields)


def test_a_row_that_agrees_with_an_attempt_is_matched() -> None:
    rows = [row(), row(3, "R2", "-4", currency="")]
    attempts = [ours(), ours("R2", "4.00")]

    found = reconcile(rows, attempts)

    assert [(each.row.line, each.attempt.reference) for each in found.matched] == [
        (2, "R1"),
        (3, "R2"),
    ]
    assert found.agrees


@pytest.mark.parametrize("amount", ["0.50", "0"])
def test_a_payment_out_of_any_amount_is_not_a_reversal(amount: str) -> None:
    found = reconcile([row(amount=amount)], [ours(amount="0.50")])

    pairs = found.matched if amount == "0.50" else found.different
    assert [each.attempt.id for each in pairs] == ["A-R1"]


@pytest.mark.parametrize("reference", ["", "another"])
def test_a_row_may_name_the_identifier_of_the_network(reference: str) -> None:
    found = reconcile([row(reference=reference, network_id="N-R1")], [ours()])

    assert len(found.matched) == 1


@pytest.mark.parametrize(
    "fields", [{"amount": Decimal("10.51")}, {"amount": Decimal(0)}, {"currency": "USD"}]
)
def test_a_row_with_another_amount_or_currency_is_different(fields: dict[str, Any]) -> None:
    found = reconcile([row(**fields)], [ours(brings_money=True)])

    assert [each.attempt.id for each in found.different] == ["A-R1"]
    assert not found.agrees
    assert found.missing_there == []


@pytest.mark.parametrize(
    ("attempts", "here"),
    [
        ([], "no payment with this reference"),
        ([ours(outcome="failed")], "it is failed here"),
        ([ours(outcome="unknown")], "it is unknown here"),
    ],
)
def test_a_row_without_success_here_is_missing_here(attempts: list[OurAttempt], here: str) -> None:
    found = reconcile([row()], attempts)

    assert [each.here for each in found.missing_here] == [here]
    assert not found.agrees


def test_a_row_that_the_statement_repeats_is_matched_once() -> None:
    found = reconcile([row(2), row(3)], [ours()])

    assert len(found.matched) == 1
    assert [(each.row.line, each.here) for each in found.missing_here] == [
        (3, "the statement already has it in line 2")
    ]


def test_a_success_in_the_period_without_a_row_is_missing_there() -> None:
    attempts = [ours(), ours("R2", in_period=False), ours("R3", outcome="failed")]

    found = reconcile([], attempts)

    assert [each.reference for each in found.missing_there] == ["R1"]


def test_services_that_share_a_reference_are_distinguished_by_the_amount() -> None:
    attempts = [ours(amount="7", id="A1"), ours(amount="10.50", id="A2", service_id=56)]

    found = reconcile([row(2), row(3, amount="7")], attempts)

    assert [each.attempt.id for each in found.matched] == ["A2", "A1"]


class TestReversals:
    """A row of a reversal does not match a success (D45)."""

    @pytest.mark.parametrize(
        "taken",
        [
            row(3, word="reversed"),
            row(3, word="success reversal"),
            row(3, word="chargeback"),
            row(3, word="refund"),
            row(3, amount="-10.50"),
        ],
    )
    @pytest.mark.parametrize("comes_first", [True, False])
    def test_a_reversal_of_a_success_says_to_ask_the_network(
        self, taken: StatementRow, comes_first: bool
    ) -> None:
        rows = [taken, row(2)] if comes_first else [row(2), taken]

        found = reconcile(rows, [ours(brings_money=True)])

        assert [each.row.line for each in found.matched] == [2]
        (wrong,) = found.not_taken_back
        assert (wrong.row.line, wrong.here) == (3, "it is succeeded here")
        assert wrong.step.do is Action.ASK
        assert "sandbox-sim transactions ask 55 T-R1" in wrong.step.how
        assert not found.agrees

    def test_a_payout_that_came_back_has_the_opposite_sign(self) -> None:
        rows = [row(2, amount="10.50"), row(3, amount="-10.50")]

        found = reconcile(rows, [ours()])

        assert [each.row.line for each in found.matched] == [3]
        assert [each.row.line for each in found.not_taken_back] == [2]

    def test_a_refund_of_ours_is_a_payment_and_not_a_reversal(self) -> None:
        found = reconcile([row(word="success refund")], [ours()])

        assert len(found.matched) == 1

    @pytest.mark.parametrize("outcome", ["reversed", "failed", "refused"])
    def test_a_reversal_on_both_sides_agrees(self, outcome: str) -> None:
        taken = row(3, word="reversed")

        alone = reconcile([taken], [ours(outcome=outcome)])
        with_its_payment = reconcile([row(2), taken], [ours(outcome=outcome)])

        assert alone.agrees
        assert with_its_payment.agrees
        assert len(alone.taken_back) == 1

    def test_a_payment_row_matches_an_attempt_that_was_reversed_since(self) -> None:
        assert len(reconcile([row()], [ours(outcome="reversed")]).matched) == 1

    @pytest.mark.parametrize("outcome", ["pending", "unknown"])
    def test_a_reversal_of_an_open_attempt_says_to_ask_the_network(self, outcome: str) -> None:
        (wrong,) = reconcile([row(word="reversed")], [ours(outcome=outcome)]).not_taken_back

        assert (wrong.here, wrong.step.do) == (f"it is {outcome} here", Action.ASK)

    def test_a_refund_of_a_reference_that_any_collection_has_is_a_reversal(self) -> None:
        attempts = [ours(), ours(id="A2", service_id=56, brings_money=True)]

        assert reconcile([row(word="refund")], attempts).not_taken_back

    def test_a_reversal_that_the_statement_repeats_agrees_only_once(self) -> None:
        rows = [row(2, word="reversed"), row(3, word="reversed")]

        found = reconcile(rows, [ours(outcome="reversed")])

        assert [each.here for each in found.not_taken_back] == [
            "the statement already has it in line 2"
        ]


@pytest.mark.parametrize(
    ("attempts", "do", "how"),
    [
        ([], "ask", "ask the network what it is"),
        ([ours(outcome="unknown")], "settle", "sandbox-sim transactions settle 55 T-R1 000"),
        ([ours(outcome="pending")], "settle", '--reason "line 2 of the statement"'),
        ([ours(outcome="failed")], "resolve", "sandbox-sim ledger resolve 55 T-R1"),
    ],
)
def test_a_row_missing_here_says_what_to_do(attempts: list[OurAttempt], do: str, how: str) -> None:
    (missing,) = reconcile([row()], attempts).missing_here

    assert str(missing.step.do) == do
    assert how in missing.step.how


@pytest.mark.parametrize(("known", "named"), [("", True), ("N-R1", False)])
def test_the_settlement_names_the_identifier_of_the_network_unless_it_is_known(
    known: str, named: bool
) -> None:
    attempt = ours(outcome="unknown", network_id=known)
    (missing,) = reconcile([row(network_id="N-R1")], [attempt]).missing_here

    assert missing.step.how.endswith("--network-id N-R1") is named
    (bare,) = reconcile([row()], [attempt]).missing_here
    assert "--network-id" not in bare.step.how


def test_a_difference_and_a_missing_row_say_what_to_do() -> None:
    found = reconcile([row(amount="11")], [ours(), ours("R2")])

    assert about_difference(found.different[0]).do is Action.RESOLVE
    assert about_missing_there(found.missing_there[0]).do is Action.ASK


def test_a_row_may_name_the_transaction_of_the_client() -> None:
    assert len(reconcile([row(reference="", transaction_id="T-R1")], [ours()]).matched) == 1
