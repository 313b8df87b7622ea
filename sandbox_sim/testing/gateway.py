"""`SandboxGateway`: a gateway for a test, which moves its clock."""

import base64
import http.client
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar
from urllib.parse import quote, urlsplit

from sandbox_sim import __version__
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.records.jobs import Job
from sandbox_sim.settings.loading import settings_from
from sandbox_sim.testing import report
from sandbox_sim.testing.expectations import Messages, Records
from sandbox_sim.testing.record_views import Callback, Delivery, Request, Transaction
from sandbox_sim.testing.server import Server
from sandbox_sim.testing.view import View
from sandbox_sim.values.timestamps import iso

if TYPE_CHECKING:
    from sandbox_sim.certify.cases import State
    from sandbox_sim.certify.fixture import CertifyOrder


def send(
    method: str,
    url: str,
    body: Mapping[str, object] | None,
    token: str | None,
    trusted: Path | None = None,
) -> dict[str, Any]:
    """Send a request and return the answer. Raises `ValueError` with the message of an error.

    trusted: the certificate of a gateway that speaks HTTPS; None where it speaks plain HTTP.
    """
    __tracebackhide__ = True
    parts = urlsplit(url)
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    host = parts.hostname or ""
    connection = http.client.HTTPConnection(host, parts.port)
    if trusted is not None:
        # Imported only here, as most gateways of tests speak plain HTTP.
        from sandbox_sim.adapters.tls import client_context  # noqa: PLC0415

        context = client_context(trusted)
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


R = TypeVar("R", bound=Records[Any])


_A_YEAR: Final = timedelta(days=366)


class SandboxGateway:
    """A gateway on a free port, in a thread of its own. Its clock stands still until it is moved.

    Use it in `with` or `async with`. Settings are keywords: `SandboxGateway(settle_delay_ms=0)`; a
    wrong one raises `ConfigError`. It reads neither the environment nor files, and keeps its state
    in memory. All its methods are about its own `service_id`, except the clock, which is one for
    all services, and `renew`, which forgets the state of all services.

    `aio` has the three calls that wait for the application under test, for tests in coroutines.
    """

    def __init__(self, **settings: Any) -> None:
        """Check the settings; the gateway starts in `with`."""
        chosen = {"store": "memory:", "port": 0, "quiet": True, **settings}
        self._settings = settings_from(chosen, "a keyword")
        credentials = self._settings.credentials[0]
        self._service_ids = _service_ids(credentials.service_ids)
        self._running: Server | None = None
        self._inboxes: set[str] = set()
        self.service_id = next(self._service_ids)
        self.auth = (credentials.client_key, credentials.secret_key.get_secret_value())
        self.aio = Awaitables(lambda: (self._server, self._view))

    def __enter__(self) -> Self:
        """Start the gateway."""
        if self.is_running:
            raise RuntimeError("the gateway runs already")
        self._running = Server(self._settings)
        self._begun = self._server.gateway.clock.state
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Stop the gateway; add the report as a note to an exception that leaves the `with`."""
        if isinstance(error, Exception):
            error.add_note(f"sandbox gateway: {self.report()}")
        self._server.stop()
        self._running = None

    async def __aenter__(self) -> Self:
        """Start the gateway. This blocks the event loop for a few milliseconds."""
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the gateway."""
        self.__exit__(kind, error, traceback)

    @property
    def is_running(self) -> bool:
        """Whether the gateway runs."""
        return self._running is not None

    @property
    def url(self) -> str:
        """The base URL, without a slash at the end."""
        return self._server.url

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request, for clients that do not take `auth`."""
        pair = base64.b64encode(":".join(self.auth).encode()).decode()
        return {
            "Authorization": f"Basic {pair}",
            "Content-Type": "application/json",
            "User-Agent": f"sandbox-sim-tests/{__version__}",
        }

    @property
    def now(self) -> datetime:
        """Gateway time, in UTC."""
        return self._server.gateway.clock.now()

    def inbox_url(self, name: str = "callbacks") -> str:
        """A `callback_url` that accepts every callback, for tests without an application."""
        return f"{self.url}/_sandbox/inbox/{quote(self._inbox(name), safe='')}"

    def inbox(self, name: str = "callbacks") -> Records[Delivery]:
        """The deliveries to `inbox_url(name)`, oldest first."""
        return self._server.run(self._view.inbox(self._inbox(name)))

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> Sequence[Job]:
        """Move the clock on. Returns the jobs that ran on the way, in order, when all are done.

        A callback is done when its receiver has answered, so the application must be able to answer
        during this call: in a coroutine write `await gateway.aio.advance(…)`.
        """
        __tracebackhide__ = True
        by = _duration(seconds, minutes, hours)
        work = self._server.gateway.clock_control.advance(by)
        return self._server.run(work, "await gateway.aio.advance(…)")

    def reset_clock(self) -> None:
        """Bring gateway time to the machine's, from where it runs on; `reset` puts it back.

        `ValueError` with a list where a payment, callback or SMS waits that was created later.
        """
        __tracebackhide__ = True
        self._server.run(self._server.gateway.clock_control.reset())

    def wait_callback(self, *, timeout_s: float = 5, **wanted: object) -> Callback:
        """Return the newest callback with these fields, as soon as its receiver was called.

        Moves the clock from one due time to the next until there is such a callback. If nothing
        else is due, it waits `timeout_s` of real time for a request of the application, and then
        raises `AssertionError`. `state="delivered"` waits until the receiver has acknowledged it.
        """
        __tracebackhide__ = True
        work = self._view.callback(timeout_s, wanted)
        return self._server.run(work, "await gateway.aio.wait_callback(…)")

    def retry_callbacks(self, any_id: str | None = None) -> Sequence[Callback]:
        """Make the next attempt at all retrying callbacks now, or at one; the clock stands still.

        any_id: the id of the one, or the id of its transaction. Returns the callbacks as they are
        after the attempt. `ValueError` where the one is not there, where several fit, or where it
        waits for no attempt because it was delivered or given up.
        """
        __tracebackhide__ = True
        work = self._view.retry_callbacks(any_id)
        return self._server.run(work, "await gateway.aio.retry_callbacks(…)")

    @property
    def callbacks(self) -> Records[Callback]:
        """Every callback, acknowledged or not."""
        return self._explained(self._server.run(self._view.callbacks()))

    @property
    def transactions(self) -> Records[Transaction]:
        """Every payment that a status query still finds."""
        return self._explained(self._server.run(self._view.transactions()))

    @property
    def sms(self) -> Messages:
        """Every message."""
        return self._explained(self._server.run(self._view.sms()))

    @property
    def requests(self) -> Records[Request]:
        """Every request to the gateway, with its answer and the reason."""
        return self._server.run(self._view.requests())

    def certify(
        self,
        case: str | None = None,
        *,
        place_order: Callable[["CertifyOrder"], object],
        state_of: Callable[[str], str],
        refund_order: Callable[[str], object] | None = None,
        restart_application: Callable[[], object] | None = None,
        receipts_of: Callable[[str], int] | Literal["sms"] | None = None,
        words: Mapping[str, "State"] | None = None,
        cards: bool = False,
        folders: Sequence[Path] = (),
        polls_every: str = "0s",
        gives_up_after: str = "2s",
        reacts_within: str = "300ms",
    ) -> None:
        """Try the bad days of a payment on the application: all cases, or the controls and one.

        place_order: places an order (phone, network, amount, pay_by, reference) and returns its
        number, or None where the application refuses it. state_of: returns the state of the order
        with a number: paid, pending, failed or cancelled, or a word of the application that `words`
        maps to one of these. refund_order, restart_application: None where it cannot. receipts_of:
        how many receipts were sent for an order, or "sms" to count the SMS sent to the payer.
        cards: whether `place_order` takes the pay_by "card". folders: cases of your own. The last
        three say how long the application takes in real time, as in certify.toml.

        Raises `AssertionError` with how to mend what failed, `unittest.SkipTest` where the one case
        is not applicable, and `ValueError` for a wrong argument.
        """
        __tracebackhide__ = True
        # Imported only here: certify is built on this class, and few tests use it.
        from sandbox_sim.certify.fixture import (  # noqa: PLC0415
            ApplicationFunctions,
            certify,
        )

        application = ApplicationFunctions(
            place_order,
            state_of,
            refund_order,
            restart_application,
            receipts_of,
            words or {},
            cards,
        )
        times = {
            "polls_every": polls_every,
            "gives_up_after": gives_up_after,
            "reacts_within": reacts_within,
        }
        certify(self, self._settings, application, case, folders, times)

    def report(self) -> str:
        """All that happened, in words: each request with the reason of its answer, each attempt."""
        head = f"{self.url}, service {self.service_id}, gateway time {iso(self.now)}"
        return "\n".join([head, *report.lines(self.requests, self.callbacks, self.sms)])

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
        `ValueError` for a wrong value.
        """
        __tracebackhide__ = True
        outcome = _given(status=status, response_code=response_code, code=code)
        rest = _given(outcome=outcome or None, delay_ms=delay_ms, callback=callback, times=times)
        return self._control("overrides", {"match": self._own(match), **rest})

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
        500, 502 or 503; retry_after_s goes with 429. The others are `True`; with processed=False
        the gateway does not process the request either. probability, every, times: how often it
        applies. The other keywords select the requests, as for `override`. Raises `ValueError` for
        a wrong value.
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
        return self._control("faults", {"match": self._own(match), "fault": fault, **rest})

    def clear_faults(self) -> None:
        """Remove all faults of this service."""
        __tracebackhide__ = True
        self._control(f"faults?service_id={self.service_id}", None, "DELETE")

    def reset(self) -> None:
        """Forget the state and the inboxes of this service, and put the clock back."""
        self._server.run(self._view.forget(self._inboxes, self._begun))
        self._inboxes = set()

    def renew(self) -> None:
        """Forget the state of all services, put the clock back, and take another `service_id`."""
        self._server.run(self._view.forget_everything(self._begun))
        self._inboxes = set()
        self.service_id = next(self._service_ids)

    def _explained(self, records: R) -> R:
        """The records, whose errors name the rejected requests while the gateway runs."""
        records.requests = lambda: self.requests if self.is_running else ()
        return records

    @property
    def _server(self) -> Server:
        if self._running is None:
            raise RuntimeError(
                "the gateway does not run: write `with SandboxGateway() as gateway:`"
            )
        return self._running

    @property
    def _view(self) -> View:
        return View(self._server.gateway, self.service_id)

    def _inbox(self, name: str) -> str:
        """The name of an inbox with the service in it, because inboxes belong to no service."""
        inbox = f"{name}-{self.service_id}"
        self._inboxes.add(inbox)
        return inbox

    def _own(self, match: Mapping[str, object]) -> dict[str, object]:
        return {"service_id": self.service_id, **match}

    def _control(
        self, path: str, body: Mapping[str, object] | None, method: str = "POST"
    ) -> dict[str, Any]:
        __tracebackhide__ = True
        token, trusted = self._settings.token, self._settings.trusted
        return send(method, f"{self.url}/_sandbox/{path}", body, token, trusted)


class Awaitables:
    """The calls that wait for the application under test, without blocking its event loop."""

    def __init__(self, parts: Callable[[], tuple[Server, View]]) -> None:
        self._parts = parts

    async def advance(
        self, *, seconds: float = 0, minutes: float = 0, hours: float = 0
    ) -> Sequence[Job]:
        """`SandboxGateway.advance`."""
        __tracebackhide__ = True
        server, _ = self._parts()
        by = _duration(seconds, minutes, hours)
        return await server.awaited(server.gateway.clock_control.advance(by))

    async def retry_callbacks(self, any_id: str | None = None) -> Sequence[Callback]:
        """`SandboxGateway.retry_callbacks`."""
        __tracebackhide__ = True
        server, view = self._parts()
        return await server.awaited(view.retry_callbacks(any_id))

    async def wait_callback(self, *, timeout_s: float = 5, **wanted: object) -> Callback:
        """`SandboxGateway.wait_callback`."""
        __tracebackhide__ = True
        server, view = self._parts()
        return await server.awaited(view.callback(timeout_s, wanted))


def _service_ids(allowed: Sequence[int]) -> Iterator[int]:
    """The services of the credentials, else random ones that do not end in 9."""
    if allowed:
        return itertools.cycle(allowed)
    first = 10**8 + int(RandomIds().record_id()[:7], 16)
    return (number for number in itertools.count(first) if number % 10 != 9)


def _duration(seconds: float, minutes: float, hours: float) -> timedelta:
    __tracebackhide__ = True
    by = timedelta(seconds=seconds, minutes=minutes, hours=hours)
    if not timedelta() <= by <= _A_YEAR:
        raise ValueError(f"the clock moves by 0 seconds to {_A_YEAR.days} days, not by {by}")
    return by


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}
