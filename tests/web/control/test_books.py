"""Corrections and periods under /_sandbox/ledger: what the control API takes and refuses (D44)."""

from itertools import product
from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.production.client import live, settled
from tests.web.control_api import post

SIGNED = {"by": "ama", "reason": "by letter"}

pytestmark = pytest.mark.decision("D44")


@pytest.fixture
async def production(start_sandbox: StartSandbox) -> Sandbox:
    """Collection T1 of 10.50, which succeeded at 09:01 on the first of January."""
    sandbox = await live(start_sandbox, {"mtn": {"adapter": "simulated", "notify": "never"}})
    await sandbox.collect()
    await settled(sandbox, minutes=1)
    await settled(sandbox, days=1)
    return sandbox


async def test_an_entry_without_by_and_reason_is_refused(production: Sandbox) -> None:
    entries: dict[str, dict[str, Any]] = {
        "topup": {"service_id": 55, "units": 5, "mode": "P"},
        "resolve": {"transaction": "T1", "to": "fees"},
        "adjust": {"service_id": 55, "amount": "1", "debit": "fees", "credit": "payout"},
        "reverse": {"entry": 1},
        "close": {"service_id": 55, "until": "2026-01-02"},
    }
    unsigned = (
        {"by": "ama"},
        {"by": "ama", "reason": " "},
        {"reason": "by letter"},
        {"by": " ", "reason": "by letter"},
    )
    for (name, body), signed in product(entries.items(), unsigned):
        answer = await post(production, f"ledger/{name}", **body, **signed)

        error = answer.body["error"]
        assert (answer.status, error["code"]) == (400, "bad_request")
        assert "reason and by must be set" in error["message"]


async def test_a_bad_entry_gets_400_and_an_impossible_entry_gets_409(production: Sandbox) -> None:
    rows: list[tuple[str, dict[str, Any], str]] = [
        ("adjust", {"amount": 1, "debit": "fees", "credit": "payout"}, "amount must be an amount"),
        ("adjust", {"amount": "1", "debit": "fees", "credit": "fees"}, "one is a wallet"),
        ("resolve", {"transaction": "T1", "to": "payout"}, "to must be service, clearing or fees"),
        ("close", {"until": "soon"}, "until must be a time such as 2026-01-31T00:00:00Z"),
        ("close", {"until": "0001-01-01T00:00:00+14:00"}, "until must be a time"),
        ("topup", {"units": 5, "mode": "S"}, "by, reason and reference are for mode P"),
    ]
    for name, body, says in rows:
        answer = await post(production, f"ledger/{name}", service_id=55, **body, **SIGNED)

        assert answer.status == 400
        assert says in answer.body["error"]["message"]

    refused = await post(production, "ledger/resolve", transaction="T1", to="fees", **SIGNED)
    message = "nothing is in suspense for payment T1"
    error = {"code": "entry_refused", "message": message, "field": "transaction"}
    assert (refused.status, refused.body) == (409, {"error": error})


async def test_the_end_of_a_period_is_shown_in_utc(production: Sandbox) -> None:
    until = "2026-01-01T23:30:00+05:30"

    answer = await post(production, "ledger/close", service_id=55, until=until, **SIGNED)

    closed = answer.body
    assert answer.status == 200
    assert (closed["period"], closed["until"], closed["total"]) == (
        1, "2026-01-01T18:00:00.000Z", "10.5"
    )  # fmt: skip
    (line,) = closed["lines"]
    assert (line["transaction_id"], line["amount"]) == ("T1", "10.5")
    assert closed["entry"]["manual"]["ends_at"] == closed["until"]
