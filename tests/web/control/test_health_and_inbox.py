"""The inbox (the built-in receiver of callbacks), health and version under /_sandbox."""

import asyncio
from itertools import product
from typing import Any

import pytest

from sandbox_sim import __version__
from sandbox_sim.callbacks.bodies import sign
from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import ask, assert_error, post
from tests.web.wire import exchange, request_bytes

BODY = b'{"trans_ref": "T1"}'


async def messages(sandbox: Sandbox, name: str = "orders") -> list[dict[str, Any]]:
    seen = await ask(sandbox, "GET", f"/_sandbox/inbox/{name}/messages")
    assert seen.status == 200
    found: list[dict[str, Any]] = seen.body["messages"]
    return found


async def test_an_inbox_takes_any_method(sandbox: Sandbox) -> None:
    for method in ["POST", "GET", "PUT", "PATCH", "OPTIONS"]:
        taken = await ask(sandbox, method, "/_sandbox/inbox/orders", BODY, **{"X-Shop": "1"})

        assert taken.status == 200
        (message, *_) = await messages(sandbox)
        assert (message["method"], message["at"]) == (method, "2026-01-01T09:00:00.000Z")
        assert (message["body"], message["json"]) == (BODY.decode(), {"trans_ref": "T1"})
        assert message["headers"]["x-shop"] == "1"


async def test_an_inbox_checks_the_signature(sandbox: Sandbox) -> None:
    rows = [
        (sign(BODY, "sandbox_secret"), "valid"),
        (sign(BODY, "another_secret"), "invalid"),
        (sign(BODY + b" ", "sandbox_secret"), "invalid"),
        (sign(BODY, "sandbox_secret")[:-1], "invalid"),
        ("nonsense", "invalid"),
        (None, "missing"),
        ("", "missing"),
    ]
    for signature, _ in rows:
        headers = {} if signature is None else {"X-Service-Signature": signature}

        assert (await ask(sandbox, "POST", "/_sandbox/inbox/orders", BODY, **headers)).status == 200

    found = [message["signature"] for message in await messages(sandbox)]
    assert found[::-1] == [verdict for _, verdict in rows]


async def test_a_signature_that_is_not_ascii_is_invalid(sandbox: Sandbox) -> None:
    answer = await exchange(
        sandbox,
        request_bytes("/_sandbox/inbox/orders", BODY, b"X-Service-Signature: \xc3\xa9\xff"),
    )

    assert answer.status == 200
    assert (await messages(sandbox))[0]["signature"] == "invalid"


class TestPages:
    """The list of messages has the same pages as the other lists."""

    async def test_a_bad_query_is_named(self, sandbox: Sandbox) -> None:
        rows = [
            ("limit=0", "limit must be an integer above 0"),
            ("limit=many", "limit must be an integer above 0"),
            ("after=a&after=b", "after must be given once"),
            ("page=2", "'page' is unknown: the fields are limit, after, id, at, method"),
            ("service_id=55", "'service_id' is unknown"),
        ]
        for query, named in rows:
            answer = await ask(sandbox, "GET", f"/_sandbox/inbox/orders/messages?{query}")

            assert_error(answer, 400, named)


async def test_delete_clears_one_inbox(sandbox: Sandbox) -> None:
    for name in ("orders", "orders", "refunds"):
        await ask(sandbox, "POST", f"/_sandbox/inbox/{name}", BODY)

    assert (await ask(sandbox, "DELETE", "/_sandbox/inbox/orders")).status == 200

    assert await messages(sandbox, "orders") == []
    assert len(await messages(sandbox, "refunds")) == 1
    assert (await ask(sandbox, "DELETE", "/_sandbox/inbox/orders")).status == 200


async def test_an_inbox_takes_any_body_and_shows_it_as_json(sandbox: Sandbox) -> None:
    for body in (
        *(b"", b"plain text", b"{", b"\xff\xfe", b"NaN", b"[Infinity]", b"1e999", b"[-1e999]"),
        *(b"[" * 50_000, b"9" * 5000, b'"\\ud800"'),
    ):
        assert (await ask(sandbox, "POST", "/_sandbox/inbox/orders", body)).status == 200

        message, *_ = await messages(sandbox)
        assert message["body"] == body.decode("utf-8", "replace")
        assert "json" in message


async def test_health_and_version_need_no_credentials(sandbox: Sandbox) -> None:
    for path in ["livez", "readyz", "version"]:
        answer = await ask(sandbox, "GET", f"/_sandbox/{path}")

        assert answer.status == 200
        if path == "version":
            assert answer.body["version"] == __version__


async def test_an_unknown_path_is_an_error_of_our_own(sandbox: Sandbox) -> None:
    for path in ("nobody", "livez/x", "inbox", "inbox/", "inbox/orders/x", "%0A"):
        for method in ("GET", "POST"):
            request = request_bytes(f"/_sandbox/{path}", b"", method=method, credentials=False)

            assert_error(await exchange(sandbox, request), 404, "no path '/_sandbox/")


async def test_another_method_is_an_error_of_our_own(sandbox: Sandbox) -> None:
    rows = [
        ("POST", "livez"),
        ("DELETE", "readyz"),
        ("PUT", "version"),
        ("POST", "inbox/orders/messages"),
    ]
    for method, path in rows:
        answer = await ask(sandbox, method, f"/_sandbox/{path}")

        assert_error(answer, 405, f"not {method}", answer.headers["Allow"])
        assert "GET" in answer.headers["Allow"]


class TestTheControlToken:
    """With a control token, reading and clearing an inbox needs it; a delivery does not."""

    async def test_only_its_holder_looks_in(self, start_sandbox: StartSandbox) -> None:
        sandbox = await start_sandbox(control_token="s3cret")
        right = [b"Bearer s3cret", b"bearer s3cret", b"BEARER s3cret"]
        wrong = [b"", b"Bearer wrong", b"Bearer \xff", b"s3cret", b"Bearer", b"Basic s3cret"]
        asked = [("GET", "inbox/orders/messages"), ("DELETE", "inbox/orders")]

        for authorization, (method, path) in product((*right, *wrong), asked):
            header, target = b"Authorization: " + authorization, f"/_sandbox/{path}"
            request = request_bytes(target, b"", header, method=method, credentials=False)

            answer = await exchange(sandbox, request)

            assert answer.status == (200 if authorization in right else 401), authorization
            asks_for = answer.headers.get("www-authenticate")
            assert asks_for == (None if answer.status == 200 else 'Bearer realm="sandbox_sim"')


class TestWaiting:
    async def test_a_test_waits_for_its_callback(self, sandbox: Sandbox) -> None:
        for number in range(2):
            await sandbox.collect(transaction_id=f"T{number}")
        match = {"json.trans_ref": "T1", "signature": "valid"}
        waiting = asyncio.create_task(post(sandbox, "inbox/orders/wait", match=match, timeout_s=60))

        await sandbox.advance(seconds=1)

        (message,) = (await waiting).body["messages"]
        assert message["json"]["trans_ref"] == "T1"

    @pytest.mark.parametrize("field", ["service_id", "trans_ref"])
    async def test_what_a_message_does_not_have_is_not_waited_for(
        self, sandbox: Sandbox, field: str
    ) -> None:
        """A message in an inbox has no service, and the fields of its body are in `json`."""
        await ask(sandbox, "POST", "/_sandbox/inbox/orders", BODY)
        answer = await post(sandbox, "inbox/orders/wait", match={field: 55}, timeout_s=0)

        assert_error(answer, 400, f"match: '{field}' is not a field", "json")


async def test_nothing_has_a_name_with_a_nul(sandbox: Sandbox) -> None:
    """Not every store accepts a query with a NUL."""
    paths = ("inbox/a%00b", "inbox/a%00b/messages", "pay/%00", "%00", "inbox/%00%00/x")
    for method, path in product(("GET", "POST", "DELETE"), paths):
        assert_error(await ask(sandbox, method, f"/_sandbox/{path}", BODY), 404)
