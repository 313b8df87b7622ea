"""A hold is committed or voided once."""

from datetime import timedelta
from decimal import Decimal

import pytest

from sandbox_sim.domain.double_entry import accounts
from sandbox_sim.domain.double_entry.entries import Transfer
from sandbox_sim.domain.double_entry.holds import Hold, HoldEnded, HoldState
from sandbox_sim.domain.ledger import Account as Wallet
from tests.domain.samples import NOON

pytestmark = pytest.mark.decision("D39")

HOLD = Hold("12345678901", 55, Wallet.PAYOUT, "GHS", Decimal("10.50"), NOON)
CLEARING = accounts.clearing("mtn", "GHS")
LATER = NOON + timedelta(minutes=1)


def test_a_hold_sets_money_aside() -> None:
    assert HOLD.placed().transfers == (Transfer(HOLD.available, HOLD.held, Decimal("10.50")),)


def test_a_committed_hold_pays_the_other_end() -> None:
    hold, entry = HOLD.committed(CLEARING, LATER)

    assert (hold.state, hold.ended_at) == (HoldState.COMMITTED, LATER)
    assert entry.transfers == (Transfer(HOLD.held, CLEARING, Decimal("10.50")),)


def test_a_voided_hold_gives_the_money_back() -> None:
    hold, entry = HOLD.voided(LATER)

    assert (hold.state, hold.ended_at) == (HoldState.VOIDED, LATER)
    assert entry.transfers == (Transfer(HOLD.held, HOLD.available, Decimal("10.50")),)


@pytest.mark.parametrize("ended", [HOLD.committed(CLEARING, LATER)[0], HOLD.voided(LATER)[0]])
def test_a_hold_that_ended_does_not_end_again(ended: Hold) -> None:
    with pytest.raises(HoldEnded):
        ended.voided(LATER)
    with pytest.raises(HoldEnded):
        ended.committed(CLEARING, LATER)
