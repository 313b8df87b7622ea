"""The gateway recognises common mistakes: the answer or the log says what to send instead."""

import asyncio
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import listed
from tests.web.wire import exchange, request_bytes

pytestmark = pytest.mark.decision("D36")

SPEAKS_HTTP_2 = (
    "the client speaks HTTP/2, and this port speaks HTTP/1.1: turn prior knowledge of HTTP/2 off"
)

FORM = b"Content-Type: application/x-www-form-urlencoded"


async def warnings_of_last(sandbox: Sandbox) -> list[str]:
    newest, *_ = await listed(sandbox, "requests")
    return list(newest["warnings"])


async def test_a_client_that_speaks_tls_gets_the_advice_to_use_http(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "sandbox_sim")
    port = urlsplit(sandbox.url).port

    with pytest.raises(ssl.SSLError):
        await asyncio.open_connection("127.0.0.1", port, ssl=ssl.create_default_context())
    answer = await exchange(sandbox, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")

    assert answer.status == 400
    for text in (caplog.text, answer.headers["x-sandbox-why"], answer.body["response_message"]):
        assert "use http://" in text


@pytest.mark.decision("D5")
async def test_http_2_is_refused_and_the_reason_is_logged(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    """The client cannot show the answer, which is in HTTP/1.1."""
    caplog.set_level("INFO", "sandbox_sim")
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    for bytes_of_client in (preface, preface + bytes.fromhex("000000040000000000")):
        caplog.clear()
        answer = await exchange(sandbox, bytes_of_client)

        assert (answer.status, answer.code) == (400, "400")
        assert answer.body["response_message"] == f"Bad request: {SPEAKS_HTTP_2}"
        assert SPEAKS_HTTP_2 in caplog.text


@pytest.mark.decision("D5")
async def test_invalid_http_is_refused_with_the_reason(sandbox: Sandbox) -> None:
    """Modems and PHP sockets send it. The answer does not quote its bytes, which may be keys."""
    host = b"Host: gateway"
    rows = [
        ([], "Missing 'Host' header in request"),
        ([host, host], "Duplicate 'Host' header found"),
        ([host, b"Authorization: Basic c2Fu\nZGJ="], "Missing expected CR after header value"),
        ([host, b"Content Type: text/plain"], "Invalid header token"),
        ([host, b"Content-Length: two"], "Invalid character in Content-Length"),
    ]
    for lines, reason in rows:
        request = b"\r\n".join([b"POST /make_payment HTTP/1.1", *lines, b"", b""])

        answer = await exchange(sandbox, request)

        why = f"the request is not valid HTTP: {reason}"
        assert answer.body["response_message"] == f"Bad request: {why}"
        assert answer.headers["x-sandbox-why"] == f"{why} (/_sandbox/rules#D5)"

    for request_line in (b"hello 4111111111111111", b"GET /" + b"4" * 9000 + b" HTTP/1.1"):
        answer = await exchange(sandbox, request_line + b"\r\n\r\n")

        says = answer.body["response_message"]
        assert says.startswith("Bad request: the request is not valid HTTP")
        assert "hello" not in str(answer.body)
        assert "4444" not in str(answer.body)


class TestBodies:
    async def test_a_form_gets_the_advice_to_send_json(self, sandbox: Sandbox) -> None:
        rows = [
            b"service_id=55&reference=Order+1&amount=10",
            b"amount=10",
            b"%7B%22service_id%22%3A55%7D",
            b'--b1\r\nContent-Disposition: form-data; name="service_id"\r\n\r\n55\r\n--b1--\r\n',
        ]
        for body in rows:
            answer = await exchange(sandbox, request_bytes("/make_payment", body, FORM))

            assert (answer.status, answer.code) == (400, "400")
            message = "the body is a form; send JSON, with Content-Type: application/json"
            assert answer.body["response_message"] == f"Bad request: {message}"
            assert answer.headers["x-sandbox-why"] == f"{message} (/_sandbox/rules#D5)"

    async def test_another_encoding_or_an_empty_body_is_named(self, sandbox: Sandbox) -> None:
        payment = json.dumps(sandbox.payment(nickname="Adjoé"), ensure_ascii=False)
        mark = "the body begins with a byte order mark; send JSON in UTF-8 without it"
        rows = [
            *((payment.encode(encoding), mark) for encoding in ("utf-8-sig", "utf-16")),
            *(
                (payment.encode(encoding), "the body is not in UTF-8; send JSON in UTF-8")
                for encoding in ("latin-1", "cp1252")
            ),
            (b"", "the body is empty; send a JSON object"),
        ]
        for body, says in rows:
            answer = await exchange(sandbox, request_bytes("/make_payment", body))

            assert answer.status == 400
            assert answer.body["response_message"] == f"Bad request: {says}"

    async def test_the_type_of_json_that_is_not_an_object_is_named(self, sandbox: Sandbox) -> None:
        """PHP encodes an empty array as []; a body that was encoded twice is a string."""
        rows = [
            *((b"[]", "an array"), (b'"{}"', "a string"), (b"4111111111111111", "a number")),
            *((b"0.5", "a number"), (b"true", "true"), (b" null ", "null")),
        ]
        for body, kind in rows:
            answer = await exchange(sandbox, request_bytes("/make_payment", body))

            assert answer.body["response_message"] == "Bad request: the body must be a JSON object"
            why = f"the body must be a JSON object (it is {kind}) (/_sandbox/rules#D5)"
            assert answer.headers["x-sandbox-why"] == why

    async def test_json_sent_as_a_form_is_accepted_with_a_warning(self, sandbox: Sandbox) -> None:
        for form in ("application/x-www-form-urlencoded", "Multipart/Form-Data; boundary=b1"):
            body = json.dumps(sandbox.payment(transaction_id=form)).encode()
            header = f"Content-Type: {form}".encode()

            answer = await exchange(sandbox, request_bytes("/make_payment", body, header))

            assert answer.code == "202"
            (warning,) = await warnings_of_last(sandbox)
            assert warning.endswith("send application/json")
            assert form.partition(";")[0].lower() in warning
            assert warning in answer.headers["x-sandbox-why"]


async def test_only_a_misspelt_path_gets_a_suggestion(start_sandbox: StartSandbox) -> None:
    rows = [
        *(("/make_payment/", "/make_payment"), ("/make-payment", "/make_payment")),
        *(("/makepayment", "/make_payment"), ("/Make_Payment", "/make_payment")),
        *(("//make_payment", "/make_payment"), ("/api/v1/make_payment", "/make_payment")),
        *(("/paybill", "/pay_bill"), ("/sms/sent", "/sms/send")),
        ("/get_transaction_satus", "/get_transaction_status"),
    ]
    sandbox = await start_sandbox()
    for path, meant in rows:
        answer = await exchange(sandbox, request_bytes(path))

        assert (answer.status, answer.code) == (404, "404")
        message = f"Not found: the interface has no such path; did you mean {meant}?"
        assert answer.body["response_message"] == message
        why = f"there is no path '{path}'; did you mean {meant}? (/_sandbox/rules#D5)"
        assert answer.headers["x-sandbox-why"] == why
    for path in ["/", "/health", "/x" * 2000]:
        answer = await exchange(sandbox, request_bytes(path))

        assert answer.body["response_message"] == "Not found: the interface has no such path"

    below = await start_sandbox(base_path="/gateway/v1")
    answer = await exchange(below, request_bytes("/gateway/v1/make_payment/"))
    assert "did you mean /gateway/v1/make_payment?" in answer.headers["x-sandbox-why"]


class TestFields:
    async def test_a_misspelt_required_field_is_named(self, sandbox: Sandbox) -> None:
        rows = [
            ("customer_numer", "customer_number"),
            ("customerNumber", "customer_number"),
            ("callback", "callback_url"),
            ("Amount", "amount"),
            ("trans_id", "transaction_id"),
            ("transType", "trans_type"),
        ]
        for wrong, right in rows:
            body = sandbox.payment()

            answer = await sandbox.collect(**{right: None, wrong: body[right]})

            hint = f"{wrong} is unknown: did you mean {right}?"
            assert (answer.status, answer.code) == (400, "400")
            assert f"{right} is required" in answer.message
            assert hint in answer.message
            assert answer.headers["X-Sandbox-Why"].startswith(hint)

    async def test_a_misspelt_optional_field_gives_a_warning(self, sandbox: Sandbox) -> None:
        misspelt: tuple[dict[str, Any], ...] = (
            {"customer_numbr": "0244000001"},
            {"callbackUrl": "http://127.0.0.1:9/callback"},
            {"nickname": None, "nick_name": "Ama"},
            {"currency": "GHS"},
        )
        others: tuple[dict[str, Any], ...] = (
            {"metadata": {"a": 1}, "client_version": "1.2", "channel": "web"},
            {"reference_id": "R1"},
            {"landing_page": "http://127.0.0.1:9/thanks"},
            {"x" * 5000: 1},
        )
        for number, fields in enumerate((*misspelt, *others)):
            answer = await sandbox.collect(transaction_id=f"T{number}", **fields)

            assert answer.code == "202"
            warnings = await warnings_of_last(sandbox)
            assert len(warnings) == (1 if fields in misspelt else 0)
            for warning in warnings:
                assert warning.startswith(f"{[*fields][-1]} is unknown: did you mean ")

        await sandbox.collect(transaction_id="T", **{f"customer_numbe{k}": 1 for k in range(1000)})
        assert len(await warnings_of_last(sandbox)) == 5

    async def test_a_misspelt_sender_id_is_named_and_gets_code_216(self, sandbox: Sandbox) -> None:
        answer = await sandbox.sms(sender_id=None, sender="Shop", senderid="Shop")

        assert answer.code == "216"
        assert "senderid is unknown: did you mean sender_id?" in answer.headers["X-Sandbox-Why"]


async def test_more_than_two_decimals_are_accepted_with_a_warning(
    start_sandbox: StartSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    """The line of the log is a warning, under `quiet` too."""
    caplog.set_level("INFO", "sandbox_sim")
    sandbox = await start_sandbox(quiet=True)
    for operation in ("collect", "payout", "airtime", "bill", "card", "deposit"):
        caplog.clear()
        for amount in (10.555, 10.5):
            name = f"{operation} {amount}"
            answer = await getattr(sandbox, operation)(amount=amount, transaction_id=name)

            assert answer.code in {"202", "000"}
            warnings = await warnings_of_last(sandbox)
            assert ("more than two decimals" in "".join(warnings)) is (amount == 10.555)
        (line,) = [each for each in caplog.records if each.name == "sandbox_sim.requests"]
        assert line.levelname == "WARNING"
        assert "more than two decimals" in line.message
