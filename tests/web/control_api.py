"""Requests to the control API, which need no client credentials, and a check of its errors."""

import json
from typing import Any

from tests.conftest import Sandbox, Seen
from tests.kit.requests import strict_json
from tests.web.wire import Answer

# An address without a receiver.
DEAD = "http://127.0.0.1:9/closed"


async def ask(sandbox: Sandbox, method: str, path: str, body: bytes = b"", **headers: str) -> Seen:
    """Send a request without client credentials, because /_sandbox needs none."""
    async with sandbox.session.request(
        method, sandbox.url + path, data=body or None, headers=headers
    ) as response:
        return Seen(response.status, dict(response.headers), strict_json(await response.read()))


def assert_error(answer: Seen | Answer, status: int, *named: str) -> None:
    """Assert an error in the shape of the control API, whose message has each text of `named`."""
    assert answer.status == status
    assert set(answer.body) == {"error"}
    assert set(answer.body["error"]) == {"code", "message"}
    assert answer.body["error"]["code"]
    assert answer.body["error"]["message"]
    for name in named:
        assert name in answer.body["error"]["message"]


def assert_unknown(answer: Seen, after: str) -> None:
    """Assert the error of a list that has no record with this id."""
    text = f"after {after!r} is not the id of a record of this list, or the record was deleted"
    message = f"{text}: read the list from its beginning"
    error = {"code": "not_found", "message": message, "field": "after"}
    assert (answer.status, answer.body) == (404, {"error": error})


async def get(sandbox: Sandbox, path: str) -> Any:
    """GET a path below /_sandbox/, and return the JSON of the answer."""
    seen = await ask(sandbox, "GET", f"/_sandbox/{path}")
    assert seen.status == 200, seen
    return seen.body


async def listed(sandbox: Sandbox, plural: str, query: str = "") -> list[dict[str, Any]]:
    """The first page of a list, such as of requests or callbacks, newest first."""
    return list((await get(sandbox, f"{plural}?{query}"))[plural])


async def only(sandbox: Sandbox, plural: str, query: str = "") -> dict[str, Any]:
    """The only record of a list."""
    (found,) = await listed(sandbox, plural, query)
    return found


async def post(sandbox: Sandbox, path: str, /, **body: Any) -> Seen:
    """POST a JSON object of these fields to a path below /_sandbox/."""
    return await ask(sandbox, "POST", f"/_sandbox/{path}", json.dumps(body).encode())


async def ids(sandbox: Sandbox, query: str = "") -> list[str]:
    """The ids of the transactions that a query finds."""
    return [each["transaction_id"] for each in await listed(sandbox, "transactions", query)]
