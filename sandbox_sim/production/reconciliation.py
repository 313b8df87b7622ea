"""Compares the statement of a network with the attempts that succeeded here. Source: D39."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple


class StatementRow(NamedTuple):
    """What a network says that it carried out.

    line: of the file, counted from 1. reference, network_id: one of them may be empty.
    amount: a statement may show money that goes out as a number below zero.
    currency: empty where the statement does not say.
    """

    line: int
    reference: str
    network_id: str
    amount: Decimal
    currency: str = ""


class OurAttempt(NamedTuple):
    """An attempt as we have it.

    in_period: whether the statement must have it if it succeeded.
    """

    id: str
    reference: str
    network_id: str
    amount: Decimal
    currency: str
    outcome: str
    service_id: int
    transaction_id: str
    in_period: bool = True


class Unmatched(NamedTuple):
    """A row that no attempt of ours stands for, and what we have instead, in words."""

    row: StatementRow
    here: str


class Pair(NamedTuple):
    """A row and our attempt."""

    row: StatementRow
    attempt: OurAttempt


class Reconciliation(NamedTuple):
    """What came of it; each row is in one of the first three, in the order of the file."""

    matched: Sequence[Pair]
    different: Sequence[Pair]
    missing_here: Sequence[Unmatched]
    missing_there: Sequence[OurAttempt]

    @property
    def agrees(self) -> bool:
        """Whether every row is matched and none is missing."""
        return not (self.different or self.missing_here or self.missing_there)


def reconcile(rows: Iterable[StatementRow], attempts: Sequence[OurAttempt]) -> Reconciliation:
    """Compare rows with attempts. Only an attempt that succeeded matches, and only once."""
    named: dict[str, list[OurAttempt]] = defaultdict(list)
    for attempt in attempts:
        for name in {attempt.reference, attempt.network_id} - {""}:
            named[name].append(attempt)
    matched: list[Pair] = []
    different: list[Pair] = []
    missing_here: list[Unmatched] = []
    used: dict[str, int] = {}
    for row in rows:
        found = _candidates(row, named)
        free = [each for each in found if each.outcome == "succeeded" and each.id not in used]
        if not free:
            missing_here.append(Unmatched(row, _here(found, used)))
            continue
        same = [each for each in free if _agrees(row, each)]
        attempt = (same or free)[0]
        used[attempt.id] = row.line
        (matched if same else different).append(Pair(row, attempt))
    missing_there = [
        each
        for each in attempts
        if each.in_period and each.outcome == "succeeded" and each.id not in used
    ]
    return Reconciliation(matched, different, missing_here, missing_there)


def _candidates(row: StatementRow, named: dict[str, list[OurAttempt]]) -> list[OurAttempt]:
    for name in (row.reference, row.network_id):
        if name and name in named:
            return named[name]
    return []


def _agrees(row: StatementRow, attempt: OurAttempt) -> bool:
    return abs(row.amount) == attempt.amount and row.currency in {"", attempt.currency}


def _here(found: Sequence[OurAttempt], used: dict[str, int]) -> str:
    if not found:
        return "nothing with this reference"
    attempt = found[-1]
    if attempt.id in used:
        return f"the statement has it before, in line {used[attempt.id]}"
    return f"it is {attempt.outcome} here"
