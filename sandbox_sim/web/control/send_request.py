"""`POST /_sandbox/requests/send`: sends the gateway a request with configured credentials.

The dashboard uses it, so that pages need no secret key.
"""

import asyncio
import json
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Final, TypedDict

from aiohttp import EMPTY_PAYLOAD, HttpVersion11, hdrs, web
from multidict import CIMultiDict
from pydantic import Field

from sandbox_sim.values.clients import Client, ServiceMode, basic_credentials
from sandbox_sim.values.json_text import parse_json
from sandbox_sim.web.api.dispatcher import Dispatcher
from sandbox_sim.web.control.errors import NO_CREDENTIALS, RequestRefused
from sandbox_sim.web.control.input import Input
from sandbox_sim.web.routes import RouteGroup, route

_USER_AGENT: Final = "sandbox_sim dashboard"


class SendBody(Input):
    """The body of `send`: a path of the interface, and the body of the request to it."""

    path: str = Field(
        pattern=r"^/[\w/]+$", description="a path of the interface, such as /make_payment"
    )
    body: dict[str, Any] = Field(description="an object: the body of the request")


class SentRequest(TypedDict):
    """The answer of the gateway."""

    status: Annotated[int | None, "the HTTP status; null where a fault lost the answer"]
    headers: Annotated[dict[str, str], "of the answer"]
    body: Annotated[object, "the JSON of the answer; a string if it is not JSON"]


class SendRoutes(RouteGroup):
    """Sends requests of mode S. clients: the credential sets to choose from."""

    def __init__(self, dispatcher: Dispatcher, clients: Iterable[Client]) -> None:
        self._dispatcher = dispatcher
        self._clients = [client for client in clients if client.mode is ServiceMode.SANDBOX]

    group = "Requests"

    @route("POST /_sandbox/requests/send",
           "send the gateway a request with the first credentials that may use its service",
           errors=(NO_CREDENTIALS,))  # fmt: skip
    async def send(self, request: web.Request, body: SendBody) -> SentRequest:
        """Send the request within the process, and return the gateway's answer."""
        service_id = body.body.get("service_id")
        client = next((each for each in self._clients if _may_use(each, service_id)), None)
        if client is None:
            text = f"no credentials of mode S are for service_id {service_id}"
            raise RequestRefused(NO_CREDENTIALS, text)
        local_request = _LocalRequest(body.path, client, request)
        await self._dispatcher.handle(local_request, json.dumps(body.body).encode())
        return local_request.writer.as_view()


def _may_use(client: Client, service_id: object) -> bool:
    return not isinstance(service_id, int) or client.may_use(service_id)


class _StoredAnswer:
    """Stores the answer; replaces the writer of a connection."""

    def __init__(self) -> None:
        self._written = b""

    async def write_eof(self, chunk: bytes = b"") -> None:
        self._written += chunk

    def as_view(self) -> SentRequest:
        if not self._written:
            return {"status": None, "headers": {}, "body": "a fault lost the answer"}
        head, _, body = self._written.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        text = body.decode("utf-8", "replace")
        return {
            "status": int(first.split(" ")[1]),
            "headers": dict(line.split(": ", 1) for line in lines),
            "body": parse_json(text, text),
        }


class _LocalRequest:
    """A request that did not come over a connection.

    Its transport only has the address of the server, so a fault that breaks the connection does not
    affect a real one.
    """

    method: ClassVar = hdrs.METH_POST
    version: ClassVar = HttpVersion11
    keep_alive: ClassVar = True
    content: ClassVar = EMPTY_PAYLOAD

    def __init__(self, path: str, client: Client, original: web.Request) -> None:
        basic = basic_credentials(client.client_key, client.secret_key)
        self.path = path
        self.scheme = original.scheme
        self.client_max_size = original.client_max_size
        self.headers = CIMultiDict(
            {
                hdrs.HOST: original.headers[hdrs.HOST],
                hdrs.AUTHORIZATION: f"Basic {basic}",
                hdrs.USER_AGENT: _USER_AGENT,
            }
        )
        self.writer = _StoredAnswer()
        transport = original.transport
        name = None if transport is None else transport.get_extra_info("sockname")
        self.transport = None if name is None else asyncio.Transport({"sockname": name})
