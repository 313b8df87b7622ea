"""A bad body gets HTTP 400 (200 on the SMS paths), code 400, and the name of each wrong field."""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.conftest import Sandbox, Seen
from tests.kit.requests import OPERATIONS, PATHS, Operation
from tests.web.wire import Answer, exchange, request_bytes

MISTYPED_TEXT: list[object] = [None, 5, 1.5, True, [], ["MTN"], {}]
BLANK: list[object] = ["", " ", "\t\n"]
TEXT = [*MISTYPED_TEXT, *BLANK]
WRONG: dict[str, list[object]] = {
    "service_id": [None, "55", "", 55.5, 55.0, True, [], [55], {}],
    "amount": [None, "10", "", True, False, 0, 0.0, -1, -0.01, [], {}],
    "request_time": [*TEXT, "now", 1767258000],
    "callback_url": [*TEXT, "shop"],
    "landing_page": [*TEXT, "shop"],
    "trans_type": [*TEXT, "XXX", "ctm", " CTM"],
    "nw": [*TEXT, "ZZZ", "mtn", "MTN "],
    "payment_option": [*TEXT, "XXX", "mom"],
    "currency_code": [*TEXT, "XXX", "ghs"],
    "currency_val": [None, True, [], {}, *BLANK],
    "recipients": [],
    "msg_body": MISTYPED_TEXT,
    "sender_id": MISTYPED_TEXT[1:],
}
CURRENCY_VAL = {"collection", "card", "deposit", "payout"}
OPTIONAL = {"nickname", "sender_id", "recipients"}


def wrong_values(operation: Operation) -> Iterator[tuple[str, object]]:
    for field in operation.body:
        values = WRONG.get(field, TEXT)
        for value in values[1:] if field == "nickname" else values:
            yield field, value


def assert_bad(answer: Seen | Answer, path: str, *fields: str) -> None:
    assert answer.status == (200 if path.startswith("/sms/") else 400)
    assert answer.code == "400"
    assert set(answer.body) == {"response_code", "response_message"}
    for field in fields:
        assert field in answer.body["response_message"]


@pytest.mark.spec("codes")
@pytest.mark.decision("D5", "D6")
async def test_a_blank_or_mistyped_field_is_named(sandbox: Sandbox) -> None:
    """`history` is not here: test_sms_history tests its fields, most of which are filters."""
    numbers = ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "0e5", "-0")
    for operation in [each for name, each in OPERATIONS.items() if name != "history"]:
        for field, value in wrong_values(operation):
            answer = await sandbox.post(operation.path, {**operation.body, field: value})

            assert_bad(answer, operation.path, field)
        for number in numbers if "amount" in operation.body else ():
            body = json.dumps(operation.body).replace(" 10.5,", f" {number},").encode()

            read = await exchange(sandbox, request_bytes(operation.path, body))

            assert_bad(read, operation.path)


@pytest.mark.spec("codes", "errors")
@pytest.mark.decision("D5", "D6")
async def test_a_missing_field_is_named(sandbox: Sandbox) -> None:
    for name, operation in OPERATIONS.items():
        required = set(operation.body) - OPTIONAL if name != "history" else {"service_id"}
        for field in required:
            body = {key: value for key, value in operation.body.items() if key != field}

            assert_bad(await sandbox.post(operation.path, body), operation.path, field)


LISTED = {
    ("CTM", "MOM", "MTN"),
    ("CTM", "CRD", "VIS"),
    ("CTM", "CRM", "VIS"),
    ("DTTW", "MOM", "MTN"),
    ("MTC", "MOM", "MTN"),
    ("MTC", "BNK", "ECO"),
    ("MTC", "CRD", "VIS"),
}


@pytest.mark.spec("endpoint.1", "endpoint.2", "endpoint.3", "endpoint.4", "sandbox.6")
@pytest.mark.decision("D5", "D20")
async def test_make_payment_takes_only_the_listed_combinations(sandbox: Sandbox) -> None:
    async def is_taken(trans_type: str, option: str, nw: str) -> bool:
        body = {"trans_type": trans_type, "payment_option": option, "nw": nw}
        answer = await sandbox.post("/make_payment", {**OPERATIONS["card"].body, **body})
        assert (answer.status == 400) == (answer.code == "400")
        return answer.status != 400

    taken = {
        combination
        for combination in product(
            ["CTM", "DTTW", "MTC", "BLP", "ATP"],
            ["MOM", "CRD", "CRM", "BNK", "BLP", "ATP"],
            ["MTN", "VIS", "CRD", "ECO", "ECG", "ZZZ"],
        )
        if await is_taken(*combination)
    }

    assert taken == LISTED


@pytest.mark.spec("endpoint.5", "endpoint.6")
@pytest.mark.decision("D5")
async def test_bills_and_airtime_refuse_the_codes_of_other_payments(sandbox: Sandbox) -> None:
    words = {
        "bill": (
            *(("trans_type", "CTM"), ("trans_type", "ATP"), ("nw", "MTN"), ("nw", "ECO")),
            ("payment_option", "XXX"),
        ),
        "airtime": (("trans_type", "CTM"), ("trans_type", "BLP"), ("nw", "VIS"), ("nw", "ECG")),
    }
    for name, rows in words.items():
        operation = OPERATIONS[name]
        for field, word in rows:
            answer = await sandbox.post(operation.path, {**operation.body, field: word})

            assert_bad(answer, operation.path, field)


@pytest.mark.decision("D5")
async def test_every_wrong_field_is_named(sandbox: Sandbox) -> None:
    rows: list[tuple[str, dict[str, object]]] = [
        ("collection", {"amount": "10", "nw": "ZZZ", "callback_url": "shop"}),
        ("collection", {"trans_type": "XXX", "amount": 0, "reference": " "}),
        ("collection", {"payment_option": "XXX", "service_id": "55"}),
        ("collection", {"trans_type": "XXX", "nw": None}),
        ("payout", {"payment_option": "XXX", "nw": None}),
        ("payout", {"payment_option": "XXX", "customer_number": " "}),
        ("card", {"nw": "MTN", "landing_page": "thanks", "currency_code": "XXX"}),
        ("bill", {"account_number": 5, "request_time": "now", "nw": "MTN"}),
        ("airtime", {"customer_number": None, "amount": True}),
        ("balance", {"service_id": True, "request_time": ""}),
        ("sms", {"service_id": "55", "customer_number": 5, "msg_body": []}),
        ("history", {"page": 0, "limit": "x", "status": "X", "start_date": "1", "end_date": "2"}),
    ]
    for name, fields in rows:
        operation = OPERATIONS[name]

        answer = await sandbox.post(operation.path, {**operation.body, **fields})

        assert_bad(answer, operation.path, *fields)
        right = set(operation.body) - set(fields) - {"trans_type", "nw", "payment_option"}
        assert not [field for field in right if field in answer.message]


NOT_OBJECTS = [
    *(b"", b" ", b"{", b"{}}", b"{} {}", b"{'service_id': 55}", b'{"service_id": 55,}'),
    *(b"null", b"true", b"55", b'"text"', b"[]", b"[{}]", b"service_id=55", b"<xml/>"),
    *(b"\xff\xfe", b'{"service_id": "\xff"}', '{"service_id": 55}'.encode("utf-16")),
    *(b'{"service_id": "\\ud800"}', b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000),
    b'{"service_id": ' + b"9" * 10_000 + b"}",
]


@pytest.mark.decision("D5")
async def test_a_body_must_be_a_json_object(sandbox: Sandbox) -> None:
    for path in PATHS:
        for body in NOT_OBJECTS:
            assert_bad(await exchange(sandbox, request_bytes(path, body)), path)


@pytest.mark.spec("endpoint.1", "endpoint.2", "endpoint.3", "endpoint.4", "endpoint.5")
@pytest.mark.spec("endpoint.6", "endpoint.7", "endpoint.8", "endpoint.9", "endpoint.10")
@pytest.mark.spec("endpoint.11", "endpoint.12")
@pytest.mark.decision("D5")
@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_well_formed_body_is_accepted(sandbox: Sandbox, name: str) -> None:
    """Unknown fields are ignored, and `currency_val` may be a number."""
    operation = OPERATIONS[name]
    unknown: dict[str, Any] = {"service": 1, "Amount": "x", "": None, "nested": {"amount": [{}]}}
    values = ("10.50", "GHS 10.50", 10, 10.5, 0)
    others = [{"currency_val": each} for each in values] if name in CURRENCY_VAL else []

    bodies: list[dict[str, Any]] = [{}, unknown, *others]
    for more in bodies:
        answer = await sandbox.post(operation.path, {**more, **operation.body, **more})

        assert answer.code == operation.code, more
