"""`sandbox-sim listen`: forwards the callbacks of a remote gateway to this machine."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final

import aiohttp
import click
from aiohttp.http_exceptions import BadHttpMessage
from pydantic import BaseModel, Field

from sandbox_sim.adapters.callback_sender import HttpCallbackSender
from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.adapters.tls import authority_file, client_context
from sandbox_sim.cli.client import CommandFailed, RunningGateway, reporting_misread
from sandbox_sim.cli.options import check_address
from sandbox_sim.ports import RunningTasks
from sandbox_sim.records.callbacks import verdict
from sandbox_sim.settings.schema import A_DAY_S, authority_folder
from sandbox_sim.values.redaction import printable, redact_text

# Seconds of real time: the pause before a lost connection is opened again, and the silence after
# which a connection counts as lost. The gateway sends something every 15 s.
_RECONNECT_S: Final = 1.0
_SILENT_S: Final = 45.0
# One event is one line.
_MAX_LINE_BYTES: Final = 16 * 1024 * 1024
# Of the body of a refusal; the message of an error is short.
_MAX_ERROR_BYTES: Final = 64 * 1024

# An event, as `--json` prints it.
ForwardingEvent = Mapping[str, Any]


class _Callback(BaseModel):
    """A callback as the gateway sends it: `ForwardedCallback`."""

    number: int
    url: str
    headers: dict[str, str]
    body: str
    timeout_s: float = Field(gt=0, le=A_DAY_S)


@click.command()
@click.option("--from", "from_url", metavar="URL", help="The gateway; the same as --endpoint-url.")
@click.option(
    "--forward-to",
    required=True,
    metavar="URL",
    callback=check_address,
    help="Where callbacks go, such as http://127.0.0.1:5000/callback.",
)
@click.option("--service-id", type=int, help="Only callbacks of this service; without it, all.")
@click.pass_obj
def listen(
    obj: Mapping[str, Any], from_url: str | None, forward_to: str, service_id: int | None
) -> None:
    """Forward the callbacks of a remote gateway to this machine.

    They are posted to the address of --forward-to. The gateway records the answer from there as
    the answer of the receiver. When this command ends, callbacks go to their receivers again.
    """
    token = obj["token"] or None
    if from_url is None:
        gateway = RunningGateway(obj["endpoint_url"], token)
    else:
        gateway = RunningGateway(from_url, token, "--from")
    gateway.control("GET", "clock")  # a wrong address or token gets a clear message here

    def notify(event: ForwardingEvent) -> None:
        lines = [json.dumps(event)] if obj["as_json"] else _describe(event, redact_text(forward_to))
        for line in lines:
            click.echo(printable(line))

    forwarding = Forwarding(gateway.address, obj["token"], forward_to, service_id, notify)
    with reporting_misread(gateway.address):
        asyncio.run(forwarding.run_forever())


@dataclass(eq=False, repr=False)
class Forwarding:
    """Gets the callbacks of a gateway and posts them to one address.

    token: the control token of the gateway. service_id: None for all services.
    notify: called with each event, as `listen --json` prints it.
    """

    gateway: str
    token: str | None
    forward_to: str
    service_id: int | None
    notify: Callable[[ForwardingEvent], None]

    def __post_init__(self) -> None:
        self._url = f"{self.gateway}/_sandbox/listen"
        self._clock = SystemClock()

    async def run_forever(self) -> None:
        """Listen, and connect again after every lost connection.

        Raises `CommandFailed` if the gateway refuses the listener, and one of `MISREAD_ERRORS` for
        an event that this version does not know.
        """
        while True:
            try:
                await self.run_once()
                why = "the gateway closed it"
            except (aiohttp.ClientError, OSError) as error:
                why = str(error) or type(error).__name__
            self.notify({"event": "disconnected", "why": why})
            await self._clock.pause(_RECONNECT_S)

    async def run_once(self) -> None:
        """Listen on one connection until it ends."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        of_service = {} if self.service_id is None else {"service_id": str(self.service_id)}
        context = client_context(authority_file(authority_folder()))
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_read=_SILENT_S)
        async with (
            HttpCallbackSender(self._clock) as sender,
            aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as session,
            session.get(
                self._url,
                params={"forward_to": self.forward_to, **of_service},
                read_bufsize=_MAX_LINE_BYTES,
                allow_redirects=False,  # as every command
            ) as stream,
        ):
            if stream.status != HTTPStatus.OK:
                raise CommandFailed(await _error_message(stream))
            forwards = RunningTasks()
            answers = self._url
            try:
                async for name, data in _events(stream):
                    if name == "listening":
                        greeting = json.loads(data)
                        answers = f"{self._url}/{greeting['listener']}/answers"
                        self.notify({"event": name, "shared": greeting["shared"]})
                        continue
                    callback = _Callback.model_validate_json(data)
                    forwards.start(self._forward(session, sender, answers, callback))
            finally:
                await forwards.cancel()

    async def _forward(
        self,
        session: aiohttp.ClientSession,
        sender: HttpCallbackSender,
        answers: str,
        callback: _Callback,
    ) -> None:
        """Post one callback, and send the answer to the gateway."""
        response = await sender.send(
            self.forward_to,
            callback.headers,
            callback.body.encode(),
            timedelta(seconds=callback.timeout_s),
        )
        kind = response.failure_kind
        answer = {
            "number": callback.number,
            "status_code": response.status_code,
            "response_body": response.body,
            "problem": response.problem,
            "failure": None if kind is None else kind.name.lower(),
        }
        self.notify(
            {
                "event": "callback",
                "url": callback.url,
                "forwarded_to": redact_text(self.forward_to),
                "verdict": verdict(response),
                "duration_ms": response.duration_ms,
            }
        )
        with suppress(aiohttp.ClientError, OSError):  # a lost connection ends the stream too
            async with session.post(answers, json=answer, allow_redirects=False):
                pass


async def _events(stream: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str]]:
    """The Server-Sent Events of a stream: name and data. Raises `ValueError` for a long line."""
    name = ""
    try:
        async for line in stream.content:
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                yield name, value
    except BadHttpMessage:  # `LineTooLong`
        raise ValueError("a line is too long") from None


async def _error_message(answer: aiohttp.ClientResponse) -> str:
    """The message of an error of the control API."""
    try:
        body = await answer.content.readexactly(_MAX_ERROR_BYTES)
    except asyncio.IncompleteReadError as incomplete:
        body = incomplete.partial
    try:
        return str(json.loads(body)["error"]["message"])
    except (LookupError, TypeError, ValueError, RecursionError):
        return f"{answer.url.origin()} answers HTTP {answer.status}: it is not a gateway"


def _describe(event: ForwardingEvent, forward_to: str) -> Iterator[str]:
    """The lines that the terminal shows for an event."""
    match event["event"]:
        case "callback":
            yield f"{event['url']} -> {forward_to}: {event['verdict']} ({event['duration_ms']} ms)"
        case "listening":
            yield f"callbacks go to {forward_to}; Ctrl-C ends it"
            if event["shared"]:
                yield "other servers of this gateway may send callbacks that are not forwarded"
        case _:
            yield f"not connected ({event['why']}): callbacks go to their receivers; trying again"
