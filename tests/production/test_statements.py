"""Statements of networks: their columns, and the rows that count as carried out (D39, D45)."""

import re
from datetime import date
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from sandbox_sim.production.reconciliation import (
    COLUMNS,
    BadStatement,
    NetworkStatement,
    StatementRow,
    read_statement,
)

pytestmark = pytest.mark.decision("D39")


def statement(
    text: str, named: dict[str, str] | None = None, *, minor: bool = False, dated: bool = True
) -> NetworkStatement:
    return read_statement(
        StringIO(text, newline=""), named or {}, in_minor_units=minor, needs_days=dated
    )


def only(text: str, **options: Any) -> StatementRow:
    (row,) = statement(text, **options).rows
    return row


def test_a_statement_with_our_own_column_names_is_read() -> None:
    read = statement("reference,network_id,amount,currency,at\nR1,7,10.50,GHS,2026-01-31\n")

    assert read == NetworkStatement(
        [StatementRow(2, "R1", "7", Decimal("10.50"), "GHS")], [date(2026, 1, 31)], 0
    )


def test_an_export_of_paystack_is_read() -> None:
    read = statement(
        "ID,Reference,Amount,Currency,Status,Paid At\n"
        '59214,R1,"1,010.50",GHS,success,2026-01-31T09:00:00.000Z\n'
        "59215,R2,4,GHS,reversed,2026-01-31T10:00:00.000Z\n"
        "59216,R3,5,GHS,abandoned,\n"
        "59217,R4,5,GHS,failed,\n"
    )

    assert read.rows == [
        StatementRow(2, "R1", "59214", Decimal("1010.50"), "GHS", word="success"),
        StatementRow(3, "R2", "59215", Decimal(4), "GHS", word="reversed"),
    ]
    assert read.left_out == 2


def test_a_report_of_mtn_is_read() -> None:
    row = only(
        "Financial Transaction Id;External Id;Date;Type;Status;Amount;Currency\n"
        "1000000;T1;2026-01-31 09:00:00;PAYMENT;SUCCESSFUL;10.50;GHS\n"
    )

    assert (row.network_id, row.transaction_id, row.reference) == ("1000000", "T1", "")
    assert (row.amount, row.word) == (Decimal("10.50"), "successful payment")


NAMES = [
    (field, name)
    for field, others in re.findall(
        r"^\| `(\w+)` \| (.*?) ?\|", Path("docs/books.md").read_text("utf-8"), re.MULTILINE
    )
    for name in (field, *re.findall("`(.+?)`", others))
    if field in COLUMNS
]


@pytest.mark.parametrize(("field", "name"), NAMES)
def test_a_column_has_any_of_the_names_in_the_docs(field: str, name: str) -> None:
    cells = {
        "reference": "R1", "network_id": "7", "transaction_id": "T1", "amount": "5",
        "currency": "GHS", "at": "2026-01-31", "status": "Paid", "type": "Refund",
    }  # fmt: skip
    header = [name.upper() if each == field else each for each in cells]

    read = statement(f"{','.join(header)}\n{','.join(cells.values())}\n")

    row = StatementRow(2, "R1", "7", Decimal(5), "GHS", "T1", "paid refund")
    assert read == NetworkStatement([row], [date(2026, 1, 31)], 0)


@pytest.mark.parametrize(
    "status",
    [
        *("failed", "failure", "abandoned", "cancelled", "canceled", "declined", "rejected"),
        *("pending", "ongoing", "processing", "queued", "expired", "timeout"),
    ],
)
def test_a_row_that_was_not_carried_out_is_left_out(status: str) -> None:
    read = statement(f"reference,amount,status\nR1,5,{status.upper()}\n")

    assert (read.rows, read.left_out) == ([], 1)


def test_a_column_of_another_name_is_named_by_the_user() -> None:
    row = only("Ref,Paid\nR1,5\n", named={"reference": "ref", "amount": "Paid"})

    assert row == StatementRow(2, "R1", "", Decimal(5))


@pytest.mark.parametrize("field", ["reference", "network_id", "transaction_id"])
def test_a_row_needs_one_identifier_and_may_end_before_its_last_columns(field: str) -> None:
    row = only(f"{field},amount,status,type\nX1,5\n")

    named: dict[str, Any] = {field: "X1"}
    assert row == StatementRow(2, "", "", Decimal(5))._replace(**named)
    assert row.name == "X1"


def test_amounts_may_be_in_pesewas_or_the_smallest_unit_of_their_currency() -> None:
    assert only("reference,amount\nR1,1050\n", minor=True).amount == Decimal("10.50")
    row = only("reference,amount,currency\nR1,1050,XOF\n", minor=True)
    assert row.amount == Decimal(1050)


def test_dates_that_are_not_needed_are_not_read() -> None:
    assert only("reference,amount,at\nR1,5,31/01/2026\n", dated=False).line == 2


@pytest.mark.parametrize(
    ("text", "named", "problem"),
    [
        ("", {}, "must name its columns"),
        ("reference,sum\n", {}, "--column amount="),
        ("reference,amount\n", {"amount": "Paid"}, "no column 'Paid'; .* reference, amount"),
        ("reference,amount\nR1,five\n", {}, "line 2: 'five' is not an amount"),
        ("reference,amount\nR1,\n", {}, "line 2: '' is not an amount"),
        ("reference,amount\nR1,NaN\n", {}, "line 2: 'NaN' is not an amount"),
        ("reference;amount\nR1;10,50\n", {}, "line 2: '10,50' is not an amount"),
        ("reference,amount\nR1,0e-1000000000\n", {}, "line 2: '0e-1000000000' is not an amount"),
        ("reference,amount\nR1,1e1000000000\n", {}, "line 2: '1e1000000000' is not an amount"),
        (f"reference,amount\nR1,{'9' * 5_000}\n", {}, "line 2: '9{499}…' is not an amount"),
        ("reference,amount\n,5\n", {}, "line 2: reference, network_id"),
        ("reference,amount,at\nR1,5,soon\n", {}, "line 2: at 'soon'.*--since and --until"),
    ],
)
def test_an_invalid_statement_is_refused_with_advice(
    text: str, named: dict[str, str], problem: str
) -> None:
    with pytest.raises(BadStatement, match=problem):
        statement(text, named)
