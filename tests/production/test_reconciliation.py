"""A statement of a network against our attempts (D39)."""

from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.production.reconciliation import OurAttempt, StatementRow, reconcile

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


def test_what_agrees_is_matched() -> None:
    rows = [row(), row(3, "R2", "-4", currency="")]
    attempts = [ours(), ours("R2", "4.00")]

    found = reconcile(rows, attempts)

    assert [(each.row.line, each.attempt.reference) for each in found.matched] == [
        (2, "R1"),
        (3, "R2"),
    ]
    assert found.agrees


def test_a_row_may_name_the_identifier_of_the_network() -> None:
    found = reconcile([row(reference="", network_id="N-R1")], [ours()])

    assert len(found.matched) == 1


@pytest.mark.parametrize("fields", [{"amount": Decimal("10.51")}, {"currency": "USD"}])
def test_another_amount_or_currency_is_different(fields: dict[str, Any]) -> None:
    found = reconcile([row(**fields)], [ours()])

    assert [each.attempt.id for each in found.different] == ["A-R1"]
    assert not found.agrees
    assert found.missing_there == []


@pytest.mark.parametrize(
    ("attempts", "here"),
    [
        ([], "nothing with this reference"),
        ([ours(outcome="failed")], "it is failed here"),
        ([ours(outcome="unknown")], "it is unknown here"),
    ],
)
def test_what_did_not_succeed_here_is_missing_here(attempts: list[OurAttempt], here: str) -> None:
    found = reconcile([row()], attempts)

    assert [each.here for each in found.missing_here] == [here]
    assert not found.agrees


def test_what_the_statement_has_twice_is_matched_once() -> None:
    found = reconcile([row(2), row(3)], [ours()])

    assert len(found.matched) == 1
    assert [(each.row.line, each.here) for each in found.missing_here] == [
        (3, "the statement has it before, in line 2")
    ]


def test_what_succeeded_in_the_period_and_is_in_no_row_is_missing_there() -> None:
    attempts = [
        ours(),
        ours("R2", in_period=False),
        ours("R3", outcome="failed"),
    ]

    found = reconcile([], attempts)

    assert [each.reference for each in found.missing_there] == ["R1"]


def test_services_that_share_a_reference_are_told_apart_by_the_amount() -> None:
    attempts = [ours(amount="7", id="A1"), ours(amount="10.50", id="A2", service_id=56)]

    found = reconcile([row(2), row(3, amount="7")], attempts)

    assert [each.attempt.id for each in found.matched] == ["A2", "A1"]
