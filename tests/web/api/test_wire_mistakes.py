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


class TestTls:
    async def test_a_client_that_speaks_tls_is_told_in_the_log_to_use_http(
        self, sandbox: Sandbox, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", "sandbox_sim")
        port = urlsplit(sandbox.url).port

        with pytest.raises(ssl.SSLError):
            await asyncio.open_connection("127.0.0.1", port, ssl=ssl.create_default_context())

        assert "use http://" in caplog.text

    async def test_its_answer_says_so_too(self, sandbox: Sandbox) -> None:
        answer = await exchange(sandbox, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")

        assert answer.status == 400
        assert "use http://" in answer.headers["x-sandbox-why"]
        assert "use http://" in answer.body["response_message"]


@pytest.mark.decision("D5")
async def test_http_2_without_tls(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    """Such a client expects no HTTP/1.1, so it cannot show the answer: the log has the reason."""
    caplog.set_level("INFO", "sandbox_sim")
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    for bytes_of_client in (preface, preface + bytes.fromhex("000000040000000000")):
        caplog.clear()
        answer = await exchange(sandbox, bytes_of_client)

        assert (answer.status, answer.code) == (400, "400")
        assert answer.body["response_message"] == f"Bad request: {SPEAKS_HTTP_2}"
        assert SPEAKS_HTTP_2 in caplog.text


@pytest.mark.decision("D5")
@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "Missing 'Host' header in request"),
        ([b"Host: gateway", b"Host: gateway"], "Duplicate 'Host' header found"),
        (
            [b"Host: gateway", b"Authorization: Basic c2Fu\nZGJ="],
            "Missing expected CR after header value",
        ),
        ([b"Host: gateway", b"Content Type: text/plain"], "Invalid header token"),
        ([b"Host: gateway", b"Content-Length: two"], "Invalid character in Content-Length"),
    ],
)
async def test_http_written_by_hand(sandbox: Sandbox, lines: list[bytes], reason: str) -> None:
    """As modems and sockets of PHP send it. The bytes of the client, perhaps keys, are left out."""
    request = b"\r\n".join([b"POST /make_payment HTTP/1.1", *lines, b"", b""])

    answer = await exchange(sandbox, request)

    why = f"the request is not valid HTTP: {reason}"
    assert answer.body["response_message"] == f"Bad request: {why}"
    assert answer.headers["x-sandbox-why"] == f"{why} (/_sandbox/rules#D5)"


@pytest.mark.decision("D5")
@pytest.mark.parametrize(
    "request_line", [b"hello 4111111111111111", b"GET /" + b"4" * 9000 + b" HTTP/1.1"]
)
async def test_what_the_client_sent_is_not_repeated(sandbox: Sandbox, request_line: bytes) -> None:
    answer = await exchange(sandbox, request_line + b"\r\n\r\n")

    assert answer.body["response_message"].startswith("Bad request: the request is not valid HTTP")
    assert "hello" not in str(answer.body)
    assert "4444" not in str(answer.body)


class TestBodies:
    async def test_a_form(self, sandbox: Sandbox) -> None:
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

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    async def test_a_byte_order_mark(self, sandbox: Sandbox, encoding: str) -> None:
        body = json.dumps(sandbox.payment()).encode(encoding)

        answer = await exchange(sandbox, request_bytes("/make_payment", body))

        assert (answer.status, answer.body["response_message"]) == (
            400,
            "Bad request: the body begins with a byte order mark; send JSON in UTF-8 without it",
        )

    @pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
    async def test_another_encoding(self, sandbox: Sandbox, encoding: str) -> None:
        body = json.dumps(sandbox.payment(nickname="Adjoé"), ensure_ascii=False).encode(encoding)

        answer = await exchange(sandbox, request_bytes("/make_payment", body))

        assert (answer.status, answer.body["response_message"]) == (
            400,
            "Bad request: the body is not in UTF-8; send JSON in UTF-8",
        )

    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            (b"[]", "an array"),
            (b'"{}"', "a string"),
            (b"4111111111111111", "a number"),
            (b"0.5", "a number"),
            (b"true", "true"),
            (b" null ", "null"),
        ],
    )
    async def test_no_object(self, sandbox: Sandbox, body: bytes, kind: str) -> None:
        """PHP encodes an empty array as []; a body that was encoded twice is a string."""
        answer = await exchange(sandbox, request_bytes("/make_payment", body))

        assert answer.body["response_message"] == "Bad request: the body must be a JSON object"
        why = f"the body must be a JSON object (it is {kind}) (/_sandbox/rules#D5)"
        assert answer.headers["x-sandbox-why"] == why

    async def test_an_empty_one(self, sandbox: Sandbox) -> None:
        answer = await exchange(sandbox, request_bytes("/sms/send", b""))

        assert answer.body["response_message"] == (
            "Bad request: the body is empty; send a JSON object"
        )

    @pytest.mark.parametrize(
        "content_type",
        ["application/x-www-form-urlencoded", "Multipart/Form-Data; boundary=b1"],
    )
    async def test_json_under_the_content_type_of_a_form_is_taken_with_a_warning(
        self, sandbox: Sandbox, content_type: str
    ) -> None:
        body = json.dumps(sandbox.payment()).encode()
        header = f"Content-Type: {content_type}".encode()

        answer = await exchange(sandbox, request_bytes("/make_payment", body, header))

        assert answer.code == "202"
        (warning,) = await warnings_of_last(sandbox)
        assert warning.endswith("send application/json")
        assert content_type.partition(";")[0].lower() in warning
        assert warning in answer.headers["x-sandbox-why"]


class TestPaths:
    async def test_a_near_miss_names_the_path(self, sandbox: Sandbox) -> None:
        rows = [
            ("/make_payment/", "/make_payment"),
            ("/make-payment", "/make_payment"),
            ("/makepayment", "/make_payment"),
            ("/Make_Payment", "/make_payment"),
            ("//make_payment", "/make_payment"),
            ("/api/v1/make_payment", "/make_payment"),
            ("/paybill", "/pay_bill"),
            ("/sms/sent", "/sms/send"),
            ("/get_transaction_satus", "/get_transaction_status"),
        ]
        for path, meant in rows:
            answer = await exchange(sandbox, request_bytes(path))

            assert (answer.status, answer.code) == (404, "404")
            assert answer.body["response_message"] == (
                f"Not found: the interface has no such path; did you mean {meant}?"
            )
            assert answer.headers["x-sandbox-why"] == (
                f"there is no path '{path}'; did you mean {meant}? (/_sandbox/rules#D5)"
            )

    async def test_a_far_one_names_none(self, sandbox: Sandbox) -> None:
        for path in ["/", "/health", "/x" * 2000]:
            answer = await exchange(sandbox, request_bytes(path))

            assert answer.body["response_message"] == "Not found: the interface has no such path"

    async def test_with_a_base_path(self, start_sandbox: StartSandbox) -> None:
        sandbox = await start_sandbox(base_path="/gateway/v1")

        answer = await exchange(sandbox, request_bytes("/gateway/v1/make_payment/"))

        assert "did you mean /gateway/v1/make_payment?" in answer.headers["x-sandbox-why"]


class TestFields:
    async def test_a_misspelt_field_is_named_where_the_right_one_is_missing(
        self, sandbox: Sandbox
    ) -> None:
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

    @pytest.mark.parametrize(
        "fields",
        [
            {"customer_numbr": "0244000001"},
            {"callbackUrl": "http://127.0.0.1:9/callback"},
            {"nickname": None, "nick_name": "Ama"},
            {"currency": "GHS"},
        ],
    )
    async def test_where_all_are_there_it_is_a_warning(
        self, sandbox: Sandbox, fields: dict[str, Any]
    ) -> None:
        answer = await sandbox.collect(**fields)

        assert answer.code == "202"
        (warning,) = await warnings_of_last(sandbox)
        assert warning.startswith(f"{[*fields][-1]} is unknown: did you mean ")

    @pytest.mark.parametrize(
        "fields",
        [
            {"metadata": {"a": 1}, "client_version": "1.2", "channel": "web"},
            {"reference_id": "R1"},
            {"landing_page": "http://127.0.0.1:9/thanks"},
            {"x" * 5000: 1},
        ],
    )
    async def test_other_fields_are_ignored_without_a_word(
        self, sandbox: Sandbox, fields: dict[str, Any]
    ) -> None:
        answer = await sandbox.collect(**fields)

        assert answer.code == "202"
        assert await warnings_of_last(sandbox) == []

    async def test_many_unknown_fields_cost_no_more_than_a_few(self, sandbox: Sandbox) -> None:
        await sandbox.collect(**{f"customer_numbe{k}": 1 for k in range(1000)})

        assert len(await warnings_of_last(sandbox)) == 5

    async def test_a_misspelt_sender_is_named_with_its_code(self, sandbox: Sandbox) -> None:
        answer = await sandbox.sms(sender_id=None, sender="Shop", senderid="Shop")

        assert answer.code == "216"
        assert "senderid is unknown: did you mean sender_id?" in answer.headers["X-Sandbox-Why"]


class TestAmounts:
    @pytest.mark.parametrize("operation", ["collect", "payout", "airtime", "bill", "card"])
    async def test_more_than_two_decimals_are_taken_with_a_warning(
        self, sandbox: Sandbox, operation: str
    ) -> None:
        answer = await getattr(sandbox, operation)(amount=10.555)

        assert answer.code in {"202", "000"}
        assert "more than two decimals" in (await warnings_of_last(sandbox))[0]

    async def test_the_line_of_the_log_is_a_warning_under_quiet_too(
        self, start_sandbox: StartSandbox, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", "sandbox_sim")
        sandbox = await start_sandbox(quiet=True)

        await sandbox.deposit(amount=10.555)
        await sandbox.deposit(amount=10.5, transaction_id="T2")

        (line,) = [each for each in caplog.records if each.name == "sandbox_sim.requests"]
        assert line.levelname == "WARNING"
        assert "more than two decimals" in line.message
