"""The inbox (the built-in receiver of callbacks), health and version under /_sandbox."""

import asyncio
from itertools import product
from typing import Any

from sandbox_sim import __version__
from sandbox_sim.callbacks.bodies import sign
from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import ask, assert_error, get, post
from tests.web.wire import exchange, request_bytes

BODY = b'{"trans_ref": "T1"}'


async def messages(sandbox: Sandbox, name: str = "orders") -> list[dict[str, Any]]:
    return list((await get(sandbox, f"inbox/{name}/messages"))["messages"])


async def test_an_inbox_accepts_any_method_and_any_body(sandbox: Sandbox) -> None:
    for method in ["POST", "GET", "PUT", "PATCH", "OPTIONS"]:
        taken = await ask(sandbox, method, "/_sandbox/inbox/orders", BODY, **{"X-Shop": "1"})

        assert taken.status == 200
        (message, *_) = await messages(sandbox)
        assert (message["method"], message["at"]) == (method, "2026-01-01T09:00:00.000Z")
        assert (message["body"], message["json"]) == (BODY.decode(), {"trans_ref": "T1"})
        assert message["headers"]["x-shop"] == "1"
    for body in (
        *(b"", b"plain text", b"{", b"\xff\xfe", b"NaN", b"[Infinity]", b"1e999", b"[-1e999]"),
        *(b"[" * 50_000, b"9" * 5000, b'"\\ud800"'),
    ):
        assert (await ask(sandbox, "POST", "/_sandbox/inbox/orders", body)).status == 200

        message, *_ = await messages(sandbox)
        assert message["body"] == body.decode("utf-8", "replace")
        assert "json" in message


async def test_an_inbox_is_cleared_alone(sandbox: Sandbox) -> None:
    for name in ("orders", "refunds"):
        await ask(sandbox, "POST", f"/_sandbox/inbox/{name}", BODY)
    for _ in range(2):
        assert (await ask(sandbox, "DELETE", "/_sandbox/inbox/orders")).status == 200
    assert await messages(sandbox, "orders") == []
    assert len(await messages(sandbox, "refunds")) == 1


async def test_an_inbox_checks_the_signature(sandbox: Sandbox) -> None:
    rows = [
        (sign(BODY, "sandbox_secret").encode(), "valid"),
        (sign(BODY, "another_secret").encode(), "invalid"),
        (sign(BODY + b" ", "sandbox_secret").encode(), "invalid"),
        (sign(BODY, "sandbox_secret")[:-1].encode(), "invalid"),
        (b"nonsense", "invalid"),
        (b"\xc3\xa9\xff", "invalid"),
        (None, "missing"),
        (b"", "missing"),
    ]
    for signature, _ in rows:
        header = [] if signature is None else [b"X-Service-Signature: " + signature]
        delivery = request_bytes("/_sandbox/inbox/orders", BODY, *header)

        assert (await exchange(sandbox, delivery)).status == 200

    found = [message["signature"] for message in await messages(sandbox)]
    assert found[::-1] == [verdict for _, verdict in rows]


async def test_a_bad_query_of_an_inbox_is_named(sandbox: Sandbox) -> None:
    """The list of messages has the same pages as the other lists."""
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


async def test_health_and_version_need_no_credentials(sandbox: Sandbox) -> None:
    for path in ["livez", "readyz", "version"]:
        answer = await ask(sandbox, "GET", f"/_sandbox/{path}")

        assert answer.status == 200
        if path == "version":
            assert answer.body["version"] == __version__


async def test_an_unknown_path_gets_404_and_a_wrong_method_405(sandbox: Sandbox) -> None:
    """A name with a NUL is unknown, because not every store accepts a query with a NUL."""
    for path, method in product(
        ("unknown", "livez/x", "inbox", "inbox/", "inbox/orders/x", "%0A"), ("GET", "POST")
    ):
        request = request_bytes(f"/_sandbox/{path}", b"", method=method, credentials=False)
        assert_error(await exchange(sandbox, request), 404, "no path '/_sandbox/")
    with_nul = ("inbox/a%00b", "inbox/a%00b/messages", "pay/%00", "%00", "inbox/%00%00/x")
    for path, method in product(with_nul, ("GET", "POST", "DELETE")):
        assert_error(await ask(sandbox, method, f"/_sandbox/{path}", BODY), 404)

    for method, path in (
        *(("POST", "livez"), ("DELETE", "readyz"), ("PUT", "version")),
        ("POST", "inbox/orders/messages"),
    ):
        answer = await ask(sandbox, method, f"/_sandbox/{path}")

        assert_error(answer, 405, f"not {method}", answer.headers["Allow"])
        assert "GET" in answer.headers["Allow"]


async def test_only_the_control_token_opens_an_inbox(start_sandbox: StartSandbox) -> None:
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


async def test_a_wait_for_a_message_matches_fields_of_its_body(sandbox: Sandbox) -> None:
    """A message in an inbox has no service, and the fields of its body are in `json`."""
    for number in range(2):
        await sandbox.collect(transaction_id=f"T{number}")
    match = {"json.trans_ref": "T1", "signature": "valid"}
    waiting = asyncio.create_task(post(sandbox, "inbox/orders/wait", match=match, timeout_s=60))

    await sandbox.advance(seconds=1)

    (message,) = (await waiting).body["messages"]
    assert message["json"]["trans_ref"] == "T1"
    for field in ("service_id", "trans_ref"):
        answer = await post(sandbox, "inbox/orders/wait", match={field: 55}, timeout_s=0)
        assert_error(answer, 400, f"match: '{field}' is not a field", "json")
