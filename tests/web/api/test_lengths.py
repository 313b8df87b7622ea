"""Too long a text is refused by name and limit, with every store alike (D43)."""

import json
from itertools import product
from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.kit.requests import OPERATIONS, collection
from tests.production.client import live
from tests.web.control_api import ask, assert_error, get, listed, post

pytestmark = pytest.mark.decision("D43")

LIMITS = {
    "transaction_id": 255,
    "account_number": 255,
    "sender_id": 255,
    "batch_id": 255,
    "customer_number": 255,
    "currency_val": 255,
    "reference": 1_000,
    "nickname": 1_000,
    "msg_body": 10_000,
}
FIELDS = [
    (name, field)
    for name, field in product(OPERATIONS, LIMITS)
    if field in OPERATIONS[name].body or (field, name) == ("nickname", "bill")
]


async def sent(sandbox: Sandbox, name: str, field: str, value: object) -> tuple[int, str, str]:
    operation = OPERATIONS[name]
    answer = await sandbox.post(operation.path, {**operation.body, field: value})
    return answer.status, answer.code, answer.message


async def test_a_too_long_text_is_refused_with_its_field_and_limit(sandbox: Sandbox) -> None:
    """Characters count, not bytes. `currency_val` may be a number (D5)."""
    for name, field in FIELDS:
        limit = LIMITS[field]
        status = 200 if OPERATIONS[name].path.startswith("/sms/") else 400
        says = f"Bad request: {field} must have at most {limit:,} characters"

        for character in ("x", "😀"):
            long = await sent(sandbox, name, field, character * (limit + 1))
            assert long == (status, "400", says)
            assert "at most" not in (await sent(sandbox, name, field, character * limit))[2]

    assert (await sent(sandbox, "card", "currency_val", 10**200))[1] == "000"
    assert (await sent(sandbox, "card", "currency_val", 10**255))[:2] == (400, "400")
    await sent(sandbox, "collection", "transaction_id", "x" * 3_000)
    entry, *_ = await listed(sandbox, "requests")
    assert (entry["service_id"], entry["transaction_id"]) == (55, None)


async def test_production_has_the_same_limits(start_sandbox: StartSandbox) -> None:
    sandbox = await live(start_sandbox, {"staging": {"adapter": "simulated"}})
    for field in ("transaction_id", "reference", "nickname"):
        body = {**collection(callback_url="https://shop.test/"), field: "x" * 1_001}
        answer = await sandbox.post("/make_payment", body)

        assert (answer.status, answer.code) == (400, "400")
        assert f"{field} must have at most {LIMITS[field]:,} characters" in answer.message


class TestControlApi:
    async def test_a_too_long_text_to_match_is_refused(self, sandbox: Sandbox) -> None:
        effects: dict[str, dict[str, Any]] = {
            "faults": {"fault": {"status": 500}}, "overrides": {"outcome": {"status": "001"}}
        }  # fmt: skip
        fields = ("transaction_id", "customer_number", "nw")
        for (path, effect), field in product(effects.items(), fields):
            assert (await post(sandbox, path, match={field: "x" * 255}, **effect)).status == 201
            long = await post(sandbox, path, match={field: "x" * 256}, **effect)
            assert_error(long, 400, f"match.{field} must be a string of at most 255 characters")

    async def test_a_too_long_name_of_an_inbox_is_refused(self, sandbox: Sandbox) -> None:
        ways = [("POST", ""), ("DELETE", ""), ("GET", "/messages"), ("POST", "/wait"), ("PUT", "")]
        for method, rest in ways:
            body = json.dumps({"count": 1, "timeout_s": 0}).encode() if rest == "/wait" else b""
            path = "/_sandbox/inbox/{}" + rest

            fits = await ask(sandbox, method, path.format("x" * 255), body)
            long = await ask(sandbox, method, path.format("x" * 256), body)

            assert fits.status in {200, 408}
            assert_error(long, 400, "the name of the inbox must have at most 255 characters")

    async def test_the_openapi_document_has_the_limits(self, sandbox: Sandbox) -> None:
        document = await get(sandbox, "openapi.json")
        schemas = document["components"]["schemas"]

        for model, fields in {
            "Collection": ("transaction_id", "customer_number", "reference", "nickname"),
            "Bill": ("account_number",),
            "SmsSend": ("msg_body", "sender_id", "customer_number"),
            "SmsHistory": ("batch_id",),
        }.items():
            for field in fields:
                assert _longest(schemas[model]["properties"][field]) == LIMITS[field], field
        (name,) = document["paths"]["/_sandbox/inbox/{name}/messages"]["get"]["parameters"][:1]
        assert name["schema"]["maxLength"] == 255


def _longest(schema: dict[str, Any]) -> object:
    options = schema.get("anyOf", [schema])
    return next(each["maxLength"] for each in options if "maxLength" in each)
