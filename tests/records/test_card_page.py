"""The hosted card page: three choices, and the status that each gives the payment."""

import pytest

from sandbox_sim.records.transactions import STATUS_OF, Choice
from tests.records.samples import SETTLED, transaction


@pytest.mark.spec("states.transactions")
@pytest.mark.decision("D20")
@pytest.mark.parametrize(("choice", "status"), [("pay", "000"), ("fail", "001"), ("cancel", "003")])
def test_the_person_pays_fails_or_cancels_a_pending_payment(choice: str, status: str) -> None:
    decided = transaction().moved(STATUS_OF[Choice(choice)], SETTLED)

    assert decided.status.value == status
