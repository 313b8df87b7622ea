"""Which code answers a request that is wrong in several ways (D9)."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.conftest import StartSandbox, basic


@dataclass(frozen=True)
class Fault:
    """Something wrong with a request, and the HTTP status and code that it gets."""

    status: int
    code: str
    fields: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    exhausted: bool = False  # the rate limit has been reached before


STRANGER = Fault(401, "100", headers={"Authorization": basic("nobody", "nothing")})
NAMELESS = Fault(403, "403", headers={"User-Agent": ""})
TOO_FAST = Fault(429, "429", exhausted=True)
BAD_FIELD = Fault(400, "400", {"request_time": "yesterday"})
OTHER_SERVICE = Fault(403, "403", {"service_id": 56})
BAD_NUMBER = Fault(200, "019", {"customer_number": "0540010009"})
OVER_CAP = Fault(200, "016", {"amount": 10001})
OVER_BALANCE = Fault(402, "402", {"amount": 10001})
DUPLICATE = Fault(200, "219", {"transaction_id": "used before"})
LAST_DIGIT = Fault(200, "015", {"customer_number": "0244000009"})

COLLECTION = [
    *(STRANGER, NAMELESS, TOO_FAST, BAD_FIELD, OTHER_SERVICE),
    *(BAD_NUMBER, OVER_CAP, DUPLICATE, LAST_DIGIT),
]
PAYOUT = [OVER_BALANCE if fault is OVER_CAP else fault for fault in COLLECTION]


@pytest.mark.spec("auth.4", "codes")
@pytest.mark.decision("D2", "D3", "D4", "D7", "D9", "D10", "D12", "D13", "D14")
@pytest.mark.parametrize(
    ("trans_type", "faults"),
    [
        pytest.param(trans_type, faults[first:], id=f"{trans_type}-{faults[first].code}-{first}")
        for trans_type, faults in [("CTM", COLLECTION), ("MTC", PAYOUT)]
        for first in range(len(faults))
    ],
)
async def test_the_first_fault_in_the_order_answers_whatever_else_is_wrong(
    start_sandbox: StartSandbox, trans_type: str, faults: list[Fault]
) -> None:
    sandbox = await start_sandbox(
        credentials=[
            {"client_key": "sandbox_key", "secret_key": "sandbox_secret", "service_ids": [55]}
        ],
        duplicates="reject",
        rate_limit_per_minute=0.01,
        rate_limit_burst=2,
    )
    assert (await sandbox.collect(transaction_id="used before")).code == "202"
    if any(fault.exhausted for fault in faults):
        await sandbox.status("used before")
    fields: dict[str, Any] = {"trans_type": trans_type, "transaction_id": "new"}
    headers: dict[str, str] = {}
    for fault in reversed(faults):
        fields |= fault.fields
        headers |= fault.headers

    answer = await sandbox.post("/make_payment", sandbox.payment(**fields), **headers)

    assert (answer.status, answer.code) == (faults[0].status, faults[0].code)
    if faults[0] is NAMELESS:
        assert "User-Agent" in answer.message
