"""The gateway's own paths refuse pages of other sites and, on loopback, foreign names (D42)."""

import asyncio
import json
from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.kit.requests import PATHS
from tests.web.control_api import listed
from tests.web.raw_requests import PAYMENT, connections
from tests.web.wire import Answer, Wire, exchange, request_bytes

pytestmark = pytest.mark.decision("D42")

EVIL = b"evil.example"
FROM_EVIL = b"Origin: http://evil.example"


async def pay(
    sandbox: Sandbox,
    *headers: bytes,
    host: bytes | None = b"127.0.0.1",
    path: str = "/make_payment",
    **more: Any,
) -> Answer:
    return await exchange(sandbox, request_bytes(path, PAYMENT, *headers, host=host, **more))


@pytest.fixture(params=[True, False], ids=["fast", "aiohttp"])
async def sandbox(request: pytest.FixtureRequest, start_sandbox: StartSandbox) -> Sandbox:
    return await start_sandbox(fast_path=request.param)


async def test_a_foreign_host_or_origin_gets_403_on_every_path(sandbox: Sandbox) -> None:
    """The answer names the setting. The journal has the request, with secrets masked."""
    hint = "add evil.example to the setting allowed_hosts"
    origins = (b"http://evil.example", b"http://localhost:3000", b"null", b"")
    for path in (*PATHS, "/unknown"):
        answer = await pay(sandbox, host=b"evil.example:8233", path=path)
        assert hint in answer.body["response_message"]
        assert hint in answer.headers["x-sandbox-why"]
        others = [
            await pay(sandbox, b"Origin: " + each, host=b"localhost:8233", path=path)
            for each in origins
        ]

        for refused in (answer, *others):
            assert (refused.status, refused.code) == (403, "403"), path
            assert refused.headers["x-sandbox-rule"] == "D42"
    assert (await sandbox.status()).code == "027"

    answer = await pay(sandbox, host=b"4111111111111111")
    assert b"4111111111111111" not in answer.raw
    entry, *_ = await listed(sandbox, "requests")
    assert (entry["code"], entry["rule"]) == ("403", "D42")
    assert "4111111111111111" not in json.dumps(entry)


async def test_the_host_check_precedes_authentication_for_every_method(sandbox: Sandbox) -> None:
    """A foreign page does not learn whether credentials are right."""
    preflight = (FROM_EVIL, b"Access-Control-Request-Method: POST")
    for headers, host, method in (
        *(((), EVIL, "POST"), ((FROM_EVIL,), b"127.0.0.1", "POST")),
        *((preflight, b"127.0.0.1", each) for each in ("GET", "OPTIONS", "DELETE")),
    ):
        right = await pay(sandbox, *headers, host=host, method=method)
        wrong = await pay(
            sandbox, *headers, host=host, method=method, credentials=False, agent=False
        )

        assert (right.status, right.raw) == (wrong.status, wrong.raw) == (403, wrong.raw)
        assert not [name for name in right.headers if name.startswith("access-control-")]


async def test_settings_add_hosts_and_beyond_loopback_any_host_is_accepted(
    start_sandbox: StartSandbox,
) -> None:
    rows: list[tuple[dict[str, Any], bytes, bytes | None, str]] = [
        ({"allowed_hosts": ["gateway.example"]}, b"gateway.example", None, "202"),
        ({"allowed_hosts": ["shop.example"]}, b"localhost", b"https://shop.example", "202"),
        ({"allowed_hosts": ["*"]}, b"localhost", b"null", "403"),
        ({"public_url": "https://pay.example/v1"}, b"pay.example", b"https://pay.example", "202"),
        ({"host": "gateway.test"}, b"gateway.test:8233", None, "202"),
        ({"host": "0.0.0.0"}, b"anything.example", None, "202"),
        ({"host": "0.0.0.0"}, b"gateway", b"http://gateway", "202"),
        ({"host": "0.0.0.0"}, b"gateway", b"http://evil.example", "403"),
        ({"host": "0.0.0.0"}, b"gateway", b"null", "403"),
        ({"host": "::"}, b"gateway", None, "202"),
        ({"base_path": "/gateway/v1"}, b"127.0.0.1", None, "202"),
        ({"base_path": "/gateway/v1"}, EVIL, None, "403"),
    ]
    for settings, host, origin, code in rows:
        sandbox = await start_sandbox(control_token="s3cret", **settings)
        headers = () if origin is None else (b"Origin: " + origin,)
        path = settings.get("base_path", "") + "/make_payment"

        assert (await pay(sandbox, *headers, host=host, path=path)).code == code, settings


async def test_a_refused_request_leaves_the_connection_open(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(fast_path=True)
    wire = Wire(sandbox.url)

    for host, code in ((b"localhost", "202"), (EVIL, "403"), (b"localhost", "202")):
        request = request_bytes("/make_payment", PAYMENT, host=host)
        assert (await asyncio.to_thread(wire.send, request)).code == code

    assert len(connections(sandbox)) == 1
    wire.close()
