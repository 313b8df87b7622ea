"""Each rule of the ledger names what breaks it."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

import pytest

from sandbox_sim.ledger.ledger_control import Audit, Violation
from sandbox_sim.records.ledger import Account, Balance, LedgerLine, ManualEntry, Reason, Transfer
from tests.live_records import CLEARING, COLLECTION, PAYOUT, paid_in, set_aside
from tests.sample_records import NOW, account_of, posting

pytestmark = pytest.mark.decision("D39")


PENDING = LedgerLine(2, set_aside("10"))

BEGUN = [paid_in("100", PAYOUT), PENDING.transfer]


def balance(available: int, pending: int = 0) -> Balance:
    return Balance(Decimal(available), Decimal(pending), NOW)


def found(
    transfers: Sequence[Transfer],
    wallets: Mapping[Account, Balance],
    sums: Mapping[Account, Decimal],
    *,
    at_once: int = 100,
) -> tuple[Violation, ...]:
    audit, lines = Audit(), [LedgerLine(number, each) for number, each in enumerate(transfers, 1)]
    for start in range(0, len(lines), at_once):
        audit.add(lines[::-1][start : start + at_once])
    assert audit.lines == len(transfers)
    return audit.violations(wallets, sums)


@pytest.mark.parametrize("at_once", [1, 2, 100])
@pytest.mark.parametrize(
    ("end", "has", "clearing"),
    [
        ([], balance(90, 10), -100),
        ([PENDING.voided(NOW)], balance(100), -100),
        ([PENDING.posted(NOW, CLEARING)], balance(90), -90),
        ([PENDING.posted(NOW, CLEARING, Decimal(4))], balance(96), -96),
    ],
)
def test_a_sound_ledger_breaks_no_rule(
    end: list[Transfer], has: Balance, clearing: int, at_once: int
) -> None:
    sums = {CLEARING: Decimal(clearing)}

    assert found([*BEGUN, *end], {PAYOUT: has}, sums, at_once=at_once) == ()


VOID = PENDING.voided(NOW)


@pytest.mark.parametrize(
    ("end", "has", "clearing", "rules"),
    [
        ([], balance(91, 10), -100, ["a balance is the sum of its transfers"]),
        ([], balance(91, 9), -100, ["what is pending is the sum of open transfers"]),
        ([], balance(90, 10), -99, ["a balance is the sum of its transfers"]),
        ([VOID, VOID], balance(100), -100, ["a pending transfer ends once"]),
        (
            [PENDING.posted(NOW, CLEARING, Decimal(11))],
            balance(89),
            -89,
            ["at most what was pending is posted"],
        ),
        (
            [VOID, VOID._replace(pending=1)],
            balance(100),
            -100,
            ["a transfer ends a pending transfer"],
        ),
        (
            [PENDING.transfer._replace(amount=Decimal(95))],
            balance(-5, 105),
            -100,
            ["no wallet is overdrawn"],
        ),
    ],
)
def test_each_rule_names_what_breaks_it(
    end: list[Transfer], has: Balance, clearing: int, rules: list[str]
) -> None:
    broken = found([*BEGUN, *end], {PAYOUT: has}, {CLEARING: Decimal(clearing)})

    assert [each.rule for each in broken] == rules


def test_a_wallet_that_has_what_was_never_moved_is_named() -> None:
    (broken,) = found([], {PAYOUT: balance(1)}, {})

    assert broken.detail == "service/55/payout/GHS of mode P has 1 and its transfers sum to 0"


def test_in_mode_s_a_wallet_is_kept_and_no_account_of_ours() -> None:
    wallet = account_of()

    assert found([posting(500)], {wallet: balance(500)}, {}) == ()
    (broken,) = found([posting(500)], {wallet: balance(499)}, {})
    assert broken.rule == "a balance is the sum of its transfers"


def test_a_wallet_may_be_empty() -> None:
    all_of_it = [paid_in("100", PAYOUT), set_aside("100")]

    assert found(all_of_it, {PAYOUT: balance(0, 100)}, {CLEARING: Decimal(-100)}) == ()


@pytest.mark.decision("D44")
@pytest.mark.parametrize("manual", [None, ManualEntry("", "why"), ManualEntry("ama", "")])
def test_a_correction_without_a_name_or_a_reason_is_named(manual: ManualEntry | None) -> None:
    correction = paid_in("100")._replace(reason=Reason.ADJUSTED)
    audit = Audit()
    audit.add([LedgerLine(7, correction, manual)])

    assert audit.violations({COLLECTION: balance(100)}, {CLEARING: Decimal(-100)}) == (
        Violation("a manual entry has a name and a reason", "transfer 7 has no name or no reason"),
    )
