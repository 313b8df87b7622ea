"""Adding an override: errors name each bad field, and the list shows an override as given."""

import json
from typing import Any

from tests.conftest import Sandbox
from tests.web.control_api import ask, assert_error
from tests.web.overriding import listed, override

BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "outcome, delay_ms or callback"),
    ({"outcome": {}}, "must be set"),
    ({"delay_ms": 0, "callback": {"drop": False}}, "must be set"),
    ({"outcome": {"status": "004"}}, "outcome.status must be one of 000, 001, 002, 003"),
    ({"outcome": {"status": 3}}, "outcome.status"),
    ({"outcome": {"response_code": "999"}}, "outcome.response_code must be one of 000, 202"),
    ({"outcome": {"code": "ok"}}, "outcome.response_code must be one of 000, 202"),
    ({"outcome": {"code": "402", "response_code": "402"}}, "'outcome.code' is unknown"),
    (
        {"outcome": {"response_codes": "402"}},
        "'outcome.response_codes' is unknown: did you mean outcome.response_code?",
    ),
    ({"outcom": {"status": "003"}}, "'outcom' is unknown: did you mean outcome?"),
    ({"outcome": "003"}, "outcome must be an object"),
    ({"outcome": None}, "outcome"),
    ({"delay_ms": -1}, "delay_ms must be an integer of milliseconds from 0 to 86400000"),
    ({"delay_ms": 86_400_001}, "delay_ms"),
    ({"delay_ms": 1.5}, "delay_ms"),
    ({"delay_ms": "5"}, "delay_ms"),
    ({"callback": True}, "callback must be an object"),
    ({"callback": {"drop": 1}}, "callback.drop must be true or false"),
    ({"callback": {"duplicate": 1}}, "callback.duplicate must be an integer from 2 to 10"),
    ({"callback": {"duplicate": 11}}, "callback.duplicate"),
    ({"callback": {"duplicate": True}}, "callback.duplicate"),
    ({"callback": {"delay_ms": 10**30}}, "callback.delay_ms"),
    ({"callback": {"profile": "xml"}}, "callback.profile must be one of trans, trans_bare"),
    ({"callback": {"slow": True}}, "'callback.slow' is unknown: the fields are drop, duplicate"),
    ({"outcome": {"status": "003"}, "times": 0}, "times"),
    ({"outcome": {"status": "003"}, "match": {"operation": "pay"}}, "match.operation"),
    ({"outcome": {"status": "003"}, "match": {"service": 55}}, "'match.service'"),
    ({"outcome": {"status": "003"}, "match": {"operation": "sms"}}, "match.operation is sms"),
    ({"outcome": {"status": "003"}, "match": {"amount": -1}}, "match.amount must be a nu"),
    ({"outcome": {"status": "003"}, "match": {"amount": float("nan")}}, "match.amount"),
    ({"outcome": {"status": "003"}, "match": {"amount": {"min": 0}}}, "match.amount"),
    (
        {"delay_ms": 5, "match": {"amount": {"min": 2, "max": 1}}},
        "match.amount.min is greater than",
    ),
    (
        {"outcome": {"status": "003"}, "match": {"amount": {"most": 5}}},
        "match.amount must be a number above 0, or an object with min and max",
    ),
    ({"outcome": {"status": "003"}, "often": 2}, "'often' is unknown"),
]


async def test_bad_input_names_the_field_and_what_to_send(sandbox: Sandbox) -> None:
    bodies = [(json.dumps(body).encode(), named) for body, named in BAD]
    bodies += [(body, "the body") for body in (b"[]", b"null", b"{", b'"003"', b"\xff")]
    bodies.append((b"", "the body must be a JSON object with match, times, outcome"))
    for body, named in bodies:
        assert_error(await ask(sandbox, "POST", "/_sandbox/overrides", body), 400, named)
    assert await listed(sandbox) == []


async def test_overrides_are_listed_as_given_and_deleted_alone_or_all(sandbox: Sandbox) -> None:
    given = {
        "match": {"service_id": 55, "operation": "collect", "amount": {"min": 1.0, "max": 2.5}},
        "outcome": {"status": "003"},
        "delay_ms": 500,
        "callback": {"duplicate": 2, "bad_signature": True, "profile": "flat"},
        "times": 3,
    }
    made = await override(sandbox, **given)
    assert {name: made[name] for name in given} == given
    assert (made["seen"], made["used"]) == (0, 0)
    assert made["created_at"] == "2026-01-01T09:00:00.000Z"
    assert await listed(sandbox) == [made]

    more = [(await override(sandbox, outcome={"status": "003"}))["id"] for _ in range(2)]
    assert [each["id"] for each in await listed(sandbox)] == [*more[::-1], made["id"]]
    path = "/_sandbox/overrides"
    one, gone = [await ask(sandbox, "DELETE", f"{path}/{made['id']}") for _ in range(2)]
    rest = await ask(sandbox, "DELETE", path)
    assert_error(gone, 404, made["id"])
    assert (one.body, rest.body) == ({"deleted": 1}, {"deleted": 2})
    assert (await sandbox.collect()).rule == "sandbox.3"
