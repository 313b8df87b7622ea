"""Asking the control API: without the gateway's credentials, and with errors of its own."""

from tests.conftest import Sandbox, Seen
from tests.web.wire import Answer, strict_json


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
