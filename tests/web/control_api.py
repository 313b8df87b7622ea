"""Asking the control API: without the gateway's credentials, and with errors of its own."""

import json
from typing import Any

from tests.conftest import Sandbox, Seen
from tests.web.wire import Answer, strict_json

# A receiver that is not there.
DEAD = "http://127.0.0.1:9/nobody"


async def ask(sandbox: Sandbox, method: str, path: str, body: bytes = b"", **headers: str) -> Seen:
    """Ask without credentials: what is under /_sandbox takes none of the gateway's."""
    async with sandbox.session.request(
        method, sandbox.url + path, data=body or None, headers=headers
    ) as response:
        return Seen(response.status, dict(response.headers), strict_json(await response.read()))


def assert_error(answer: Seen | Answer, status: int, *named: str) -> None:
    """An error in the shape of the control API, whose message names all of these."""
    assert answer.status == status
    assert set(answer.body) == {"error"}
    assert set(answer.body["error"]) == {"code", "message"}
    assert answer.body["error"]["code"]
    assert answer.body["error"]["message"]
    for name in named:
        assert name in answer.body["error"]["message"]


async def get(sandbox: Sandbox, path: str) -> Any:
    """What a path below /_sandbox/ shows."""
    seen = await ask(sandbox, "GET", f"/_sandbox/{path}")
    assert seen.status == 200, seen
    return seen.body


async def post(sandbox: Sandbox, path: str, **body: Any) -> Seen:
    """The answer of a path below /_sandbox/ to a body of these fields."""
    return await ask(sandbox, "POST", f"/_sandbox/{path}", json.dumps(body).encode())


async def ids(sandbox: Sandbox, query: str = "") -> list[str]:
    """The ids of the transactions that a query finds."""
    page = await get(sandbox, f"transactions?{query}")
    return [each["transaction_id"] for each in page["transactions"]]
