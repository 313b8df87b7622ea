"""`SandboxGateway`: a gateway for tests, with a clock that the test moves."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from sandbox_sim.records.jobs import Job
from sandbox_sim.settings.loading import settings_from
from sandbox_sim.settings.schema import Settings
from sandbox_sim.testing.expectations import Messages, Records
from sandbox_sim.testing.record_views import Callback, Delivery, Request, Transaction
from sandbox_sim.testing.server import Server
from sandbox_sim.testing.service_gateway import ServiceGateway, check_timeout, send, service_ids
from sandbox_sim.testing.view import View

if TYPE_CHECKING:
    from sandbox_sim.certify.cases import State
    from sandbox_sim.certify.fixture import CertifyOrder

_A_YEAR: Final = timedelta(days=366)


class SandboxGateway(ServiceGateway):
    """A gateway on a free port, in its own thread. Its clock is frozen; the test moves it.

    Use it in `with` or `async with`. Settings are keywords: `SandboxGateway(settle_delay_ms=0)`; a
    wrong one raises `ConfigError`. It reads neither the environment nor files, and keeps its state
    in memory. All its methods are about its own `service_id`, except those of the clock, which all
    services share, and `renew`, which deletes the state of all services.

    `aio` has the three calls that wait for the application under test, for tests in coroutines.
    """

    def __init__(
        self,
        checked: Settings | None = None,
        front: "SandboxGateway | None" = None,
        /,
        **settings: Any,
    ) -> None:
        """Check the settings; the gateway starts in `with`.

        checked: settings that are already checked, instead of keywords. front: a running gateway;
        its port also accepts the requests for the services of these credentials, and this gateway
        answers them.
        """
        values = {"store": "memory:", "port": 0, "quiet": True, **settings}
        self.settings = checked or settings_from(values, "a keyword")
        credentials = self.settings.credentials[0]
        auth = (credentials.client_key, credentials.secret_key.get_secret_value())
        super().__init__(auth, service_ids(credentials.service_ids))
        self._running: Server | None = None
        self._front = None if front is None else front._server  # noqa: SLF001 -- of its own class
        self.aio = Awaitables(lambda: (self._server, self._view))

    def __enter__(self) -> Self:
        """Start the gateway."""
        if self.is_running:
            raise RuntimeError("the gateway is already running")
        self._running = Server(self.settings, self._front)
        self._first_clock_state = self._server.gateway.clock.state
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
    def now(self) -> datetime:
        """Gateway time, in UTC."""
        return self._server.gateway.clock.now()

    def inbox(self, name: str = "callbacks") -> Records[Delivery]:
        """The deliveries to `inbox_url(name)`, oldest first."""
        return self._server.run(self._view.inbox(self._inbox_name(name)))

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> Sequence[Job]:
        """Move the clock forward and run the jobs that become due; return them when they are done.

        A callback is done when its receiver has answered, so the application must be able to answer
        during this call: in a coroutine write `await gateway.aio.advance(…)`.
        """
        __tracebackhide__ = True
        by = _duration(seconds, minutes, hours)
        work = self._server.gateway.clock_control.advance(by)
        return self._server.run(work, "await gateway.aio.advance(…)")

    def reset_clock(self) -> None:
        """Set gateway time to the machine's time and let it run; `reset` sets it back.

        Raises `ValueError` with a list if a payment, callback or SMS that was created after that
        time is still waiting.
        """
        __tracebackhide__ = True
        self._server.run(self._server.gateway.clock_control.reset())

    def wait_callback(self, *, timeout_s: float = 5, **wanted: object) -> Callback:
        """Return the newest callback with these fields, after an attempt at its receiver.

        Moves the clock from job to job until there is such a callback. If no job is due, it waits
        up to `timeout_s` of real time, at most 600 seconds, for a request of the application, and
        then raises `AssertionError`. With `state="delivered"` it waits until the receiver has
        acknowledged the callback.
        """
        __tracebackhide__ = True
        check_timeout(timeout_s)
        work = self._view.callback(timeout_s, wanted)
        return self._server.run(work, "await gateway.aio.wait_callback(…)")

    def retry_callbacks(self, any_id: str | None = None) -> Sequence[Callback]:
        """Make the next attempt at all retrying callbacks now, or at one, without moving the clock.

        any_id: the id of a callback or of its transaction. Returns the callbacks as they are after
        the attempt. Raises `ValueError` if there is no such callback or more than one, or if it is
        not waiting for an attempt.
        """
        __tracebackhide__ = True
        work = self._view.retry_callbacks(any_id)
        return self._server.run(work, "await gateway.aio.retry_callbacks(…)")

    @property
    def callbacks(self) -> Records[Callback]:
        """All callbacks, acknowledged or not."""
        return self._with_requests(self._server.run(self._view.callbacks()))

    @property
    def transactions(self) -> Records[Transaction]:
        """All payments that status queries find."""
        return self._with_requests(self._server.run(self._view.transactions()))

    @property
    def sms(self) -> Messages:
        """All SMS."""
        return self._with_requests(self._server.run(self._view.sms()))

    @property
    def requests(self) -> Records[Request]:
        """All requests to the gateway, each with its answer and the reason."""
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
        """Run the certification cases against the application: all, or the controls and one case.

        place_order: places an order (phone, network, amount, pay_by, reference) and returns its
        number, or None if the application refuses it. state_of: returns the state of the order
        with this number: paid, pending, failed or cancelled, or a word that `words` maps to one of
        these. refund_order, restart_application: None if the application cannot do it.
        receipts_of: returns how many receipts were sent for an order; "sms" counts the SMS to the
        payer. cards: whether `place_order` accepts the pay_by "card". folders: your own cases. The
        last three are real times of the application, as in certify.toml.

        Raises `AssertionError` with how to fix the failures, `unittest.SkipTest` if the case is not
        applicable, and `ValueError` for a wrong argument.
        """
        __tracebackhide__ = True
        # Imported here, because few tests need it.
        from sandbox_sim.certify import fixture  # noqa: PLC0415

        application = fixture.ApplicationFunctions(
            *(place_order, state_of, refund_order, restart_application, receipts_of),
            words=words or {},
            cards=cards,
        )
        times = {
            "polls_every": polls_every,
            "gives_up_after": gives_up_after,
            "reacts_within": reacts_within,
        }
        fixture.certify(self, application, case, folders, times)

    def reset(self) -> None:
        """Delete the state and the inboxes of this service, and set the clock back."""
        self._server.run(self._view.reset_service(self._inboxes, self._first_clock_state))
        self._inboxes = set()

    def renew(self) -> None:
        """Delete the state of all services, set the clock back, and take another `service_id`."""
        self._server.run(self._view.reset_all(self._first_clock_state))
        self._inboxes = set()
        self.service_id = next(self._service_ids)

    @property
    def _server(self) -> Server:
        if self._running is None:
            raise RuntimeError(
                "the gateway is not running: write `with SandboxGateway() as gateway:`"
            )
        return self._running

    @property
    def _view(self) -> View:
        return View(self._server.gateway, self.service_id)

    def _control(
        self, path: str, body: Mapping[str, object] | None, method: str = "POST"
    ) -> dict[str, Any]:
        __tracebackhide__ = True
        token, trusted = self.settings.token, self.settings.trusted
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
        return await server.run_async(server.gateway.clock_control.advance(by))

    async def retry_callbacks(self, any_id: str | None = None) -> Sequence[Callback]:
        """`SandboxGateway.retry_callbacks`."""
        __tracebackhide__ = True
        server, view = self._parts()
        return await server.run_async(view.retry_callbacks(any_id))

    async def wait_callback(self, *, timeout_s: float = 5, **wanted: object) -> Callback:
        """`SandboxGateway.wait_callback`."""
        __tracebackhide__ = True
        check_timeout(timeout_s)
        server, view = self._parts()
        return await server.run_async(view.callback(timeout_s, wanted))


def _duration(seconds: float, minutes: float, hours: float) -> timedelta:
    __tracebackhide__ = True
    total = seconds + 60 * minutes + 3600 * hours
    if not 0 <= total <= _A_YEAR.total_seconds():  # nan is neither
        range_ = f"0 seconds to {_A_YEAR.days} days"
        raise ValueError(f"the clock can move by {range_}, not by {total} seconds")
    return timedelta(seconds=seconds, minutes=minutes, hours=hours)
