"""Requests to every operation, for tests of overrides, and the list of overrides."""

from typing import Any

from tests.conftest import Sandbox, Seen
from tests.web.control_api import get, post

PAYMENTS = ["collect", "card", "deposit", "payout", "bill", "airtime"]
# A field of each payment with a value that the sandbox rules refuse.
REFUSED: dict[str, dict[str, Any]] = {
    "collect": {"customer_number": "0540010000"},
    "card": {"customer_number": "4000000000000002"},
    "deposit": {"customer_number": "0244000009"},
    "payout": {"amount": 20000},
    "bill": {"account_number": "0244000001"},
    "airtime": {"amount": 10000.01},
}
OTHERS = ["status", "balance", "sms", "bulk-sms", "sms-history", "sms-balance"]


async def pay(sandbox: Sandbox, operation: str = "collect", **fields: Any) -> Seen:
    answer: Seen = await getattr(sandbox, operation)(**fields)
    return answer


async def query(sandbox: Sandbox, operation: str) -> Seen:
    """Send a valid request to one of OTHERS."""
    match operation:
        case "status" | "balance" | "sms":
            answer: Seen = await getattr(sandbox, operation)()
            return answer
        case "bulk-sms":
            return await sandbox.bulk("0244000001")
        case "sms-history":
            return await sandbox.history()
        case _:
            return await sandbox.post("/sms/balance", {"service_id": 55})


async def listed(sandbox: Sandbox, query: str = "") -> list[dict[str, Any]]:
    return list((await get(sandbox, f"overrides{query}"))["overrides"])


async def counts(sandbox: Sandbox) -> list[tuple[int, int]]:
    return [(each["seen"], each["used"]) for each in await listed(sandbox)]


async def override(sandbox: Sandbox, **body: Any) -> dict[str, Any]:
    """Add an override for service 55, unless `match` says otherwise."""
    answer = await post(sandbox, "overrides", **{"match": {"service_id": 55}, **body})
    assert answer.status == 201, answer.body
    return answer.body
