"""Which code answers a request that is wrong in several ways (D9)."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.conftest import StartSandbox, basic


@dataclass(frozen=True)
class Mistake:
    """Something wrong with a request, and the HTTP status and code that it gets."""

    status: int
    code: str
    fields: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    exhausted: bool = False  # the rate limit has been reached before


WRONG_CREDENTIALS = Mistake(401, "100", headers={"Authorization": basic("unknown", "wrong")})
NO_USER_AGENT = Mistake(403, "403", headers={"User-Agent": ""})
TOO_FAST = Mistake(429, "429", exhausted=True)
BAD_FIELD = Mistake(400, "400", {"request_time": "yesterday"})
OTHER_SERVICE = Mistake(403, "403", {"service_id": 56})
BAD_NUMBER = Mistake(200, "019", {"customer_number": "0540010009"})
OVER_CAP = Mistake(200, "016", {"amount": 10001})
OVER_BALANCE = Mistake(402, "402", {"amount": 10001})
DUPLICATE = Mistake(200, "219", {"transaction_id": "used before"})
LAST_DIGIT = Mistake(200, "015", {"customer_number": "0244000009"})

COLLECTION = [
    *(WRONG_CREDENTIALS, NO_USER_AGENT, TOO_FAST, BAD_FIELD, OTHER_SERVICE),
    *(BAD_NUMBER, OVER_CAP, DUPLICATE, LAST_DIGIT),
]
PAYOUT = [OVER_BALANCE if mistake is OVER_CAP else mistake for mistake in COLLECTION]


@pytest.mark.spec("auth.4", "codes")
@pytest.mark.decision("D2", "D3", "D4", "D7", "D9", "D10", "D12", "D13", "D14")
@pytest.mark.parametrize(
    ("trans_type", "mistakes"),
    [
        pytest.param(
            trans_type, mistakes[first:], id=f"{trans_type}-{mistakes[first].code}-{first}"
        )
        for trans_type, mistakes in [("CTM", COLLECTION), ("MTC", PAYOUT)]
        for first in range(len(mistakes))
    ],
)
async def test_the_first_mistake_in_the_order_of_checks_decides_the_answer(
    start_sandbox: StartSandbox, trans_type: str, mistakes: list[Mistake]
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
    if any(mistake.exhausted for mistake in mistakes):
        await sandbox.status("used before")
    fields: dict[str, Any] = {"trans_type": trans_type, "transaction_id": "new"}
    headers: dict[str, str] = {}
    for mistake in reversed(mistakes):
        fields |= mistake.fields
        headers |= mistake.headers

    answer = await sandbox.post("/make_payment", sandbox.payment(**fields), **headers)

    assert (answer.status, answer.code) == (mistakes[0].status, mistakes[0].code)
    if mistakes[0] is NO_USER_AGENT:
        assert "User-Agent" in answer.message
