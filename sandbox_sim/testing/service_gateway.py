"""The base class for gateways in tests, each with its own service; needs the standard library only.

`SandboxGateway` runs in the process of the tests; `RemoteGateway` is a client of a running gateway.
"""

import http.client
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

from sandbox_sim import __version__
from sandbox_sim.adapters.clock_and_ids import RandomIds
from sandbox_sim.testing.expectations import Messages, Records
from sandbox_sim.testing.record_views import Callback, Request, Sms
from sandbox_sim.values.clients import basic_credentials
from sandbox_sim.values.timestamps import VALID_WAIT, is_valid_wait, iso

R = TypeVar("R", bound=Records[Any])


def send(
    method: str,
    url: str,
    body: Mapping[str, object] | None,
    token: str | None,
    trusted: Path | None = None,
) -> dict[str, Any]:
    """Send a request and return the answer. Raises `ValueError` with the message of an error.

    trusted: the CA file for a gateway with HTTPS; by default the CAs of Python.
    """
    __tracebackhide__ = True
    parts = urlsplit(url)
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    host = parts.hostname or ""
    connection = http.client.HTTPConnection(host, parts.port)
    if parts.scheme == "https":
        # Imported here, because most gateways of tests use plain HTTP.
        from sandbox_sim.adapters.tls import client_context  # noqa: PLC0415

        context = None if trusted is None else client_context(trusted)
        connection = http.client.HTTPSConnection(host, parts.port, context=context)
    try:
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    finally:
        connection.close()
    if response.status >= 400:
        raise ValueError(answer["error"]["message"])
    return answer


class ServiceGateway(ABC):
    """The base class. Its records, overrides and faults are those of its `service_id`.

    service_ids: the services that it uses, one after another.
    """

    def __init__(self, auth: tuple[str, str], service_ids: Iterator[int]) -> None:
        self.auth = auth
        self._service_ids = service_ids
        self.service_id = next(service_ids)
        self._inboxes: set[str] = set()

    def __deepcopy__(self, _memo: object) -> Self:
        """Return the gateway itself, because there is one server.

        Django copies what `setUpTestData` stores on the class, for each test that reads it.
        """
        return self

    @property
    @abstractmethod
    def url(self) -> str:
        """The base URL, without a slash at the end."""

    @property
    def is_running(self) -> bool:
        """Whether the gateway runs; one elsewhere answered at the start."""
        return True

    @property
    @abstractmethod
    def now(self) -> datetime:
        """Gateway time, in UTC."""

    @property
    @abstractmethod
    def callbacks(self) -> Records[Callback]:
        """All callbacks, acknowledged or not."""

    @property
    @abstractmethod
    def sms(self) -> Messages:
        """All SMS."""

    @property
    @abstractmethod
    def requests(self) -> Records[Request]:
        """All requests to the gateway, each with its answer and the reason."""

    @abstractmethod
    def _control(
        self, path: str, body: Mapping[str, object] | None, method: str = "POST"
    ) -> dict[str, Any]:
        """Send a request to the control API. Raises `ValueError` with the message of an error."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request, for clients without a parameter for `auth`."""
        return {
            "Authorization": f"Basic {basic_credentials(*self.auth)}",
            "Content-Type": "application/json",
            "User-Agent": f"sandbox-sim-tests/{__version__}",
        }

    def inbox_url(self, name: str = "callbacks") -> str:
        """A `callback_url` that accepts every callback, for tests without an application."""
        return f"{self.url}/_sandbox/inbox/{quote(self._inbox_name(name), safe='')}"

    def report(self) -> str:
        """A text with all requests, the reasons of their answers, all callbacks and all SMS."""
        head = f"{self.url}, service {self.service_id}, gateway time {iso(self.now)}"
        return "\n".join([head, *_report_lines(self.requests, self.callbacks, self.sms)])

    def override(
        self,
        *,
        status: str | None = None,
        response_code: str | None = None,
        code: str | None = None,
        delay_ms: int | None = None,
        callback: Mapping[str, object] | None = None,
        times: int | None = None,
        **match: object,
    ) -> dict[str, Any]:
        """Force the outcome of requests, or change their callbacks. Returns the override.

        status: the final status of the payment, 000, 001, 002 or 003. response_code: the code of
        the answer, such as 402; `code` is the same. callback: such as `{"duplicate": 2}` or
        `{"drop": True}`. times: how many requests it applies to. The other keywords select the
        requests: `transaction_id`, `operation`, `customer_number`, `nw`, `amount`. Raises
        `ValueError` for an invalid value.
        """
        __tracebackhide__ = True
        outcome = _given(status=status, response_code=response_code, code=code)
        rest = _given(outcome=outcome or None, delay_ms=delay_ms, callback=callback, times=times)
        return self._control("overrides", {"match": self._scoped(match), **rest})

    def fault(
        self,
        *,
        latency: Mapping[str, object] | None = None,
        status: int | None = None,
        connection_reset: bool | None = None,
        empty_response: bool | None = None,
        malformed_json: bool | None = None,
        timeout: bool | None = None,
        retry_after_s: int | None = None,
        processed: bool | None = None,
        probability: float | None = None,
        every: int | None = None,
        times: int | None = None,
        **match: object,
    ) -> dict[str, Any]:
        """Delay requests, refuse them, or lose their answers. Returns the fault.

        latency: `{"fixed_ms": 200}`, `{"uniform_ms": [50, 300]}` or
        `{"lognormal_ms": {"median": 90, "sigma": 0.4}}`, in real time. status: the HTTP status 429,
        500, 502 or 503; retry_after_s is for 429. The other faults are `True`; with processed=False
        the request is not processed. probability, every, times: how often the fault applies. The
        other keywords select the requests, as for `override`. Raises `ValueError` for an invalid
        value.
        """
        __tracebackhide__ = True
        fault = _given(
            latency=latency,
            status=status,
            connection_reset=connection_reset,
            empty_response=empty_response,
            malformed_json=malformed_json,
            timeout=timeout,
        )
        rest = _given(
            retry_after_s=retry_after_s,
            processed=processed,
            probability=probability,
            every=every,
            times=times,
        )
        return self._control("faults", {"match": self._scoped(match), "fault": fault, **rest})

    def clear_faults(self) -> None:
        """Delete all faults of this service."""
        __tracebackhide__ = True
        self._control(f"faults?service_id={self.service_id}", None, "DELETE")

    def _with_requests(self, records: R) -> R:
        """The records; their errors name the rejected requests if the gateway is running."""
        records.requests = lambda: self.requests if self.is_running else ()
        return records

    def _inbox_name(self, name: str) -> str:
        """The name of an inbox with the service_id, because inboxes are shared by all services."""
        inbox = f"{name}-{self.service_id}"
        self._inboxes.add(inbox)
        return inbox

    def _scoped(self, match: Mapping[str, object]) -> dict[str, object]:
        return {"service_id": self.service_id, **match}


def service_ids(allowed: Sequence[int]) -> Iterator[int]:
    """The services of the credentials; if there are none, random ids that do not end in 9."""
    if allowed:
        return itertools.cycle(allowed)
    first = 10**8 + int(RandomIds().record_id()[:7], 16)
    return (number for number in itertools.count(first) if number % 10 != 9)


def check_timeout(timeout_s: object) -> None:
    """Raise `ValueError` if a test cannot wait that long."""
    __tracebackhide__ = True
    if not is_valid_wait(timeout_s):
        raise ValueError(f"timeout_s must be {VALID_WAIT}, not {timeout_s!r}")


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _report_lines(
    requests: Records[Request], callbacks: Records[Callback], messages: Records[Sms]
) -> Iterator[str]:
    """The lines of a report: requests, callbacks and SMS, oldest first, in gateway time."""
    yield "requests:" if requests else "no requests"
    for request in requests:
        yield from _request_lines(request)
    if requests.note:
        yield requests.note
    yield "callbacks:" if callbacks else "no callbacks"
    for callback in callbacks:
        yield from _callback_lines(callback)
    if messages:
        yield "messages:"
        yield from messages.table()
    if callbacks.note:
        yield callbacks.note


def _request_lines(request: Request) -> Iterator[str]:
    what = " ".join(filter(None, (request.operation or request.path, request.transaction_id)))
    answer = f"{request.response_code}, {request.why} [{request.rule}]"
    yield f"  {_time_of_day(request.at)}  {what}: {answer}"
    for warning in request.warnings:
        yield f"                warning: {warning}"


def _callback_lines(callback: Callback) -> Iterator[str]:
    status = f"{callback.transaction_id} status {callback.status}"
    yield f"  {_time_of_day(callback.created_at)}  {status} to {callback.url}: {callback.state}"
    for attempt in callback.attempts:
        again = attempt.next_attempt_at
        result = attempt.verdict + (f"; next attempt at {_time_of_day(again)}" if again else "")
        yield f"  {_time_of_day(attempt.at)}    attempt {attempt.number}: {result}"
        if attempt.response_body and not attempt.verdict.startswith("acknowledged"):
            yield f"                  it said: {attempt.response_body[:200]}"


def _time_of_day(moment: datetime) -> str:
    return moment.strftime("%H:%M:%S.%f")[:-3]
