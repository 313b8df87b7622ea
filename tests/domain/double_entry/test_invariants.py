"""The ledger is sound after any sequence of payments, and each rule names what breaks it."""

from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from sandbox_sim.domain.double_entry import accounts, movements
from sandbox_sim.domain.double_entry.accounts import Account
from sandbox_sim.domain.double_entry.entries import Entry, Leg, Overdrawn, post
from sandbox_sim.domain.double_entry.holds import Hold, HoldEnded, HoldState
from sandbox_sim.domain.double_entry.invariants import Violation, violations
from sandbox_sim.domain.ledger import Account as Wallet
from sandbox_sim.domain.networks.attempts import (
    MONEY_OUT,
    Attempt,
    Change,
    Terms,
    apply,
)
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.reports import Echo, Report, Source
from sandbox_sim.domain.vocabulary import Operation
from tests.domain.networks.samples import NOON, attempt

pytestmark = pytest.mark.decision("D39")

PAYMENTS = sorted(
    MONEY_OUT | {Operation.COLLECT, Operation.CARD, Operation.DEPOSIT}, key=lambda each: each.value
)
AMOUNTS = st.decimals("0.01", 50, places=2)
TERMS = Terms(failure_grace=timedelta(minutes=1))
# Most reports agree with what was saved; NaN never does.
ECHOES = st.sampled_from([Echo(), Echo(), Echo("R1"), Echo("R2"), Echo(amount=Decimal("sNaN"))])
REPORTS = st.builds(
    Report, st.sampled_from(Outcome), st.sampled_from(Source), ECHOES, found=st.booleans()
)


@dataclass
class Book:
    """A ledger as a store keeps it."""

    balances: dict[Account, Decimal] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    legs: list[Leg] = field(default_factory=list)

    def post(self, entry: Entry) -> None:
        found = post(self.balances, entry)
        self.balances |= found
        self.legs += entry.legs

    def end(self, subject: Attempt) -> None:
        """Do what a store does when an attempt becomes final."""
        hold = self.holds.get(subject.id)
        succeeded = subject.outcome is Outcome.SUCCEEDED
        if hold is not None:
            outside = movements.outside(hold.held.asset, subject.network)
            ended = hold.committed(outside, NOON) if succeeded else hold.voided(NOON)
            self.holds[subject.id] = ended[0]
            self.post(ended[1])
        elif succeeded:
            entry = movements.received(subject, NOON)
            assert entry is not None
            self.post(entry)

    @property
    def violations(self) -> tuple[Violation, ...]:
        return violations(self.balances, self.holds.values(), self.legs)


class Payments(RuleBasedStateMachine):
    """Any payments of two services, and any reports of a network about them."""

    attempts: Bundle[Attempt] = Bundle("attempts")

    def __init__(self) -> None:
        super().__init__()
        self.book = Book()
        self.numbered = 0
        self.now = NOON
        # What each service should have, counted by the test itself.
        self.expected: dict[Account, Decimal] = {}
        # For each asset, the money that networks say they paid out, minus what they say they took.
        self.outside: dict[str, Decimal] = {}

    @rule(service_id=st.sampled_from([55, 56]), units=st.integers(1, 100))
    def topup(self, service_id: int, units: int) -> None:
        for wallet in (Wallet.SMS, Wallet.AIRTIME):
            self.book.post(movements.topup(service_id, wallet, "GHS", Decimal(units), "", NOON))
            self._expect(service_id, wallet, Decimal(units))
        self.outside["AIRTIME"] = self.outside.get("AIRTIME", Decimal(0)) - units

    @rule(
        target=attempts,
        operation=st.sampled_from(PAYMENTS),
        service_id=st.sampled_from([55, 56]),
        amount=AMOUNTS,
    )
    def accept(self, operation: Operation, service_id: int, amount: Decimal) -> Any:
        self.numbered += 1
        name = f"A{self.numbered}"
        subject = attempt(operation, id=name, service_id=service_id, amount=amount)
        hold = movements.hold_for(subject)
        if hold is not None:
            wanted = self.expected.get(hold.available, Decimal(0)) < amount
            try:
                self.book.post(hold.placed())
            except Overdrawn:
                assert wanted
                return multiple()
            assert not wanted
            self.book.holds[name] = hold
            self._expect(service_id, hold.wallet, -amount)
        return subject

    @rule(target=attempts, subject=consumes(attempts), told=REPORTS, minutes=st.integers(0, 2))
    def hear(self, subject: Attempt, told: Report, minutes: int) -> Attempt:
        self.now += timedelta(minutes=minutes)
        judged = apply(subject, told, TERMS, self.now)
        if judged.change is Change.ENDED:
            self.book.end(judged.attempt)
            self._expect_the_end_of(judged.attempt)
        elif judged.change is Change.CONTRADICTION:
            self._suspend(judged.attempt)
        return judged.attempt

    def _suspend(self, subject: Attempt) -> None:
        entry = movements.suspended(subject, self.now)
        if entry is None:
            return
        self.book.post(entry)
        # After a contradiction, the network has moved the money that it reported last.
        moved = subject.amount if subject.contradicted_by is Outcome.SUCCEEDED else -subject.amount
        sign = 1 if subject.operation in MONEY_OUT else -1
        self._moved_outside(subject, sign * moved)

    def _moved_outside(self, subject: Attempt, amount: Decimal) -> None:
        asset = "AIRTIME" if subject.operation is Operation.AIRTIME else "GHS"
        self.outside[asset] = self.outside.get(asset, Decimal(0)) + amount

    @rule(subject=attempts)
    def end_a_hold_again(self, subject: Attempt) -> None:
        hold = self.book.holds.get(subject.id)
        if hold is not None and hold.state is not HoldState.OPEN:
            with pytest.raises(HoldEnded):
                self.book.end(subject)

    @invariant()
    def the_ledger_is_sound(self) -> None:
        assert self.book.violations == ()

    @invariant()
    def each_service_has_what_it_should_have(self) -> None:
        for account, amount in self.expected.items():
            assert self.book.balances.get(account, Decimal(0)) == amount

    @invariant()
    def the_networks_have_what_they_say(self) -> None:
        for asset, amount in self.outside.items():
            assert self.book.balances.get(movements.outside(asset, "mtn"), Decimal(0)) == amount

    def _expect(self, service_id: int, wallet: Wallet, amount: Decimal) -> None:
        account = accounts.available(service_id, wallet, "GHS")
        self.expected[account] = self.expected.get(account, Decimal(0)) + amount

    def _expect_the_end_of(self, subject: Attempt) -> None:
        hold = self.book.holds.get(subject.id)
        if subject.outcome is Outcome.SUCCEEDED:
            comes_in = hold is None
            self._moved_outside(subject, -subject.amount if comes_in else subject.amount)
        if hold is None and subject.outcome is Outcome.SUCCEEDED:
            deposit = subject.operation is Operation.DEPOSIT
            wallet = Wallet.PAYOUT if deposit else Wallet.COLLECTION
            self._expect(subject.service_id, wallet, subject.amount)
        elif hold is not None and subject.outcome is not Outcome.SUCCEEDED:
            self._expect(subject.service_id, hold.wallet, subject.amount)


TestPayments = Payments.TestCase
# Each example is a whole sequence here, so there are fewer than the profile has.
TestPayments.settings = settings(
    deadline=None,
    max_examples=settings().max_examples // 2,
    stateful_step_count=20,
)

AVAILABLE = accounts.available(55, Wallet.PAYOUT, "GHS")
HELD = accounts.held(55, Wallet.PAYOUT, "GHS")
CLEARING = accounts.clearing("mtn", "GHS")
TEN = Decimal(10)
HOLD = Hold("H1", 55, Wallet.PAYOUT, "GHS", TEN, NOON)


@pytest.mark.parametrize(
    ("balances", "holds", "broken"),
    [
        ({AVAILABLE: TEN, CLEARING: -TEN}, [], []),
        ({HELD: TEN, CLEARING: -TEN}, [HOLD], []),
        ({AVAILABLE: TEN}, [], ["every asset sums to zero"]),
        ({AVAILABLE: -TEN, CLEARING: TEN}, [], ["no service owes us"]),
        ({HELD: TEN, CLEARING: -TEN}, [], ["held is the sum of open holds"]),
        ({AVAILABLE: TEN, CLEARING: -TEN}, [HOLD], ["held is the sum of open holds"]),
        ({HELD: TEN, CLEARING: -TEN}, [HOLD.voided(NOON)[0]], ["held is the sum of open holds"]),
    ],
)
def test_each_rule_names_what_breaks_it(
    balances: dict[Account, Decimal], holds: list[Hold], broken: list[str]
) -> None:
    legs = [Leg(account, amount) for account, amount in balances.items()]

    assert [each.rule for each in violations(balances, holds, legs)] == broken


def test_a_balance_that_was_not_posted_is_named() -> None:
    balances = {AVAILABLE: TEN, CLEARING: -TEN}

    found = violations(balances, [], [Leg(CLEARING, -TEN)])

    assert [each.rule for each in found] == ["a balance is the sum of its postings"]
    assert found[0].detail == ("service/55/payout/available/GHS has 10 and its postings sum to 0")
