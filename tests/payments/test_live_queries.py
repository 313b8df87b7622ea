"""The queries of clients in mode P (D32, D39)."""

from typing import Any, cast

import pytest

from sandbox_sim.payments.queries import LiveQueries
from sandbox_sim.ports.network import SubmitResult
from sandbox_sim.records.reports import Outcome
from sandbox_sim.web.api.responses import render
from tests.production.desk import Desk
from tests.sample_records import SERVICE

pytestmark = [pytest.mark.decision("D39"), pytest.mark.spec("service.6")]

FAILED, MISSING = "Transaction Failed", "PAYER_NOT_FOUND: the payer has no MoMo account"


@pytest.mark.parametrize(
    ("outcome", "reason", "description"),
    [
        (Outcome.FAILED, MISSING, f"{FAILED}: {MISSING}"),
        (Outcome.FAILED, "", FAILED),
        (Outcome.FAILED, FAILED, FAILED),
        (Outcome.FAILED, f"{FAILED}: EXPIRED", f"{FAILED}: EXPIRED"),
        (Outcome.PENDING, "HTTP 409", "Transaction Pending"),
    ],
)
async def test_only_a_failure_is_described_with_the_reason_of_its_network(
    outcome: Outcome, reason: str, description: str
) -> None:
    desk = Desk()
    await desk.pay(SubmitResult(outcome, reason=reason))

    reply = await LiveQueries(desk.store).transaction_status(SERVICE, "T1")

    assert reply.fields is not None
    record = cast("dict[str, Any]", reply.fields["response_data"])
    shown = ("001", "FAILED") if outcome is Outcome.FAILED else ("002", "PENDING")
    assert (record["status"], record["message"]) == shown
    assert record["status_desc"] == description


async def test_a_balance_has_all_its_digits() -> None:
    desk = Desk()
    await desk.fund("99999999999999999.99")

    reply = await LiveQueries(desk.store).account_balance(SERVICE)

    assert '"payout_balance":99999999999999999.99,' in render(reply, "R1").body.decode()


async def test_each_answer_names_its_rule() -> None:
    desk = Desk()
    queries = LiveQueries(desk.store)

    unknown = await queries.transaction_status(SERVICE, "T1")
    await desk.pay()
    known = await queries.transaction_status(SERVICE, "T1")
    balance = await queries.account_balance(SERVICE)

    assert (unknown.code, unknown.rule, unknown.message) == ("404", "D32", "Transaction not found")
    assert [known.rule, balance.rule] == ["D39", "D39"]
    assert balance.fields is not None
    assert set(balance.fields) == {"response_data"}
