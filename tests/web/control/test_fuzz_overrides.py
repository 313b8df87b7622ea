"""Random overrides: each is accepted or refused, and no request fails because of one."""

import json
from typing import Any

from hypothesis import given, strategies as st

from tests.kit.requests import CODES, OPERATIONS
from tests.web.control_api import assert_error
from tests.web.fuzzing import documents, dumped, examples, numbers, phones, texts, url, wire
from tests.web.wire import Wire, request_bytes

__all__ = ["url", "wire"]

LIKELY: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "match": {
        "service_id": st.just(55),
        "operation": st.sampled_from(["collect", "card", "status", "sms", "bulk-sms", "balance"]),
        "transaction_id": texts,
        "customer_number": phones,
        "nw": st.sampled_from(["MTN", "VIS", "ECG"]),
        "amount": st.one_of(numbers, st.fixed_dictionaries({}, optional={"min": numbers})),
    },
    "outcome": {
        "status": st.sampled_from(["000", "001", "002", "003"]),
        "response_code": st.sampled_from(sorted(CODES)),
    },
    "callback": {
        **dict.fromkeys(["drop", "reorder", "bad_signature"], st.booleans()),
        "duplicate": st.integers(0, 11),
        "delay_ms": st.integers(-1, 10**9),
        "profile": st.sampled_from(["trans", "flat", "event"]),
    },
}


@st.composite
def overrides(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a body that is valid, or nearly valid."""
    body: dict[str, Any] = {}
    for part, fields in LIKELY.items():
        if draw(st.booleans()):
            chosen = draw(st.sets(st.sampled_from(sorted(fields)), max_size=2))
            body[part] = {name: draw(fields[name]) for name in chosen}
    if draw(st.integers(0, 4)) == 0:
        inside = draw(st.sampled_from([body, *body.values()]))
        inside[draw(st.sampled_from(["status", "amount", "delay_ms", "times", "match"]))] = draw(
            documents
        )
    return body


@examples(10)
@given(body=overrides(), operation=st.sampled_from(sorted(OPERATIONS)))
def test_any_override_is_taken_or_refused(wire: Wire, body: dict[str, Any], operation: str) -> None:
    made = wire.send(request_bytes("/_sandbox/overrides", dumped(body)))
    try:
        if made.status != 201:
            assert_error(made, 400)
        request = OPERATIONS[operation]
        answer = wire.send(request_bytes(request.path, json.dumps(request.body).encode()))
        assert answer.body["response_code"] in CODES | {"401"}
        assert answer.status < 500 or answer.headers["x-sandbox-rule"] == "override"
    finally:
        wire.send(request_bytes("/_sandbox/overrides", b"", method="DELETE"))
