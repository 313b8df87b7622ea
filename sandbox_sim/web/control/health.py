"""Health, version and metrics under `/_sandbox/`. Source: docs/control-api.md.

The metrics, in the format of Prometheus, need the package prometheus-client, the extra `metrics`.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypedDict

from aiohttp import web

from sandbox_sim import __version__
from sandbox_sim.control.measurements import Measurements, Metering
from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.production.circuit_breaker import BreakerState
from sandbox_sim.records.exchanges import NotificationState
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.web.control.errors import NO_METRICS, RequestRefused
from sandbox_sim.web.routes import Access, Answer, RouteGroup, route

if TYPE_CHECKING:  # serve starts faster without what only production needs
    from prometheus_client.core import Metric

# An inbox that no path can name, and a body larger than a request may be.
_PROBE_INBOX: Final = ""
_PROBE_BODY: Final = "." * 32_768
_METRIC_PREFIX: Final = "sandbox_sim"
_NETWORK_PREFIX: Final = f"{_METRIC_PREFIX}_network"
_PLAIN_TEXT: Final = "text/plain"
_INSTALL: Final = (
    "The package prometheus-client is not installed: install the extra metrics of sandbox-sim"
)


class Alive(TypedDict):
    """The process answers."""

    status: Annotated[Literal["ok"], "the process answers"]


class Ready(TypedDict):
    """The store takes writes."""

    status: Annotated[Literal["ready"], "the store takes writes"]


class Version(TypedDict):
    """The program and its version."""

    name: Annotated[Literal["sandbox_sim"], "of the program"]
    version: Annotated[str, "such as 0.1.0"]


class HealthRoutes(RouteGroup):
    """The routes for containers, scripts and Prometheus; only the metrics need the token."""

    def __init__(self, store: Store, clock: Clock, metering: Metering) -> None:
        self._store = store
        self._clock = clock
        self._metering = metering

    group = "Health"
    access = Access.OPEN

    @route("GET /_sandbox/livez", "check that the process answers")
    async def livez(self, _request: web.Request) -> Alive:
        """Answer that the process runs."""
        return {"status": "ok"}

    @route("GET /_sandbox/readyz", "check that the store accepts writes")
    async def readyz(self, _request: web.Request) -> Ready:
        """Write to the store and take it back: a store on a full disk can still be read."""
        probe = InboxMessage("", self._clock.now(), "", (), _PROBE_BODY, "missing")

        async def write_and_remove(unit: Unit) -> None:
            await unit.add_inbox_message(_PROBE_INBOX, probe)
            await unit.clear_inbox(_PROBE_INBOX)

        await self._store.run(write_and_remove)
        return {"status": "ready"}

    @route("GET /_sandbox/version", "show the version")
    async def version(self, _request: web.Request) -> Version:
        """Show the version."""
        return {"name": "sandbox_sim", "version": __version__}

    @route("GET /_sandbox/metrics", "show the metrics in the format of Prometheus",
           answers=(Answer(None, media_type=_PLAIN_TEXT),), errors=(NO_METRICS,),
           access=Access.CONTROL)  # fmt: skip
    async def metrics(self, _request: web.Request) -> web.Response:
        """Show requests, callbacks, jobs, the store and the networks."""
        try:
            from prometheus_client import exposition  # noqa: PLC0415 -- an extra
        except ImportError:
            raise RequestRefused(NO_METRICS, _INSTALL) from None
        text = exposition.generate_latest(_Registry(await self._metering.measure()))
        headers = {"Content-Type": exposition.CONTENT_TYPE_LATEST}
        return web.Response(body=text, headers=headers)


class _Registry:
    """The metrics of these measurements, as prometheus-client asks for them."""

    def __init__(self, measured: Measurements) -> None:
        self._measured = measured

    def collect(self) -> "Iterable[Metric]":
        yield from self._gateway_metrics()
        yield from self._store_metrics()
        yield from self._network_metrics()

    def _gateway_metrics(self) -> "Iterator[Metric]":
        measured = self._measured
        requests = _counter(f"{_METRIC_PREFIX}_requests", "Requests answered.", "path", "code")
        for labels, count in sorted(measured.requests.items()):
            requests.add_metric(labels, count)
        yield requests
        attempts = _counter(
            f"{_METRIC_PREFIX}_callback_attempts", "Attempts at callbacks.", "state"
        )
        for state, count in sorted(measured.callback_attempts.items()):
            attempts.add_metric((state.value,), count)
        yield attempts
        yield _single_gauge(
            "callbacks_waiting",
            "Callbacks that wait for their attempt.",
            measured.callbacks_waiting,
        )

    def _store_metrics(self) -> "Iterator[Metric]":
        store = self._measured.store
        yield _single_gauge(
            "store_up", "1 if the store can be read, else 0.", float(store is not None)
        )
        if store is None:
            return
        yield _single_gauge(
            "store_seconds", "How long the store took to answer this.", store.duration_s
        )
        yield _single_gauge("jobs_late_seconds", "How long the next job is overdue.", store.late_s)
        yield _single_gauge("jobs_failing", "Jobs that failed three times or more.", store.failing)

    def _network_metrics(self) -> "Iterator[Metric]":
        label = "network"
        breaker = _gauge(
            f"{_NETWORK_PREFIX}_breaker_open",
            "1 while the circuit breaker holds submits back.",
            label,
        )
        faults = _gauge(f"{_NETWORK_PREFIX}_faults_in_a_row", "Consecutive network faults.", label)
        attempts = _gauge(
            f"{_NETWORK_PREFIX}_open_attempts", "Attempts whose outcome is not known yet.", label
        )
        submits = _counter(
            f"{_NETWORK_PREFIX}_submits", "Submits of this process.", label, "outcome"
        )
        kept = _gauge(
            f"{_NETWORK_PREFIX}_notifications_kept", "Notifications in the store.", label, "state"
        )
        dropped = _counter(
            f"{_NETWORK_PREFIX}_notifications_dropped",
            "Unproven notifications that were not stored.",
            label,
        )
        for state in self._measured.networks:
            name = (state.name,)
            dropped.add_metric(name, state.dropped_notifications)
            breaker.add_metric(name, float(state.breaker.state is not BreakerState.CLOSED))
            faults.add_metric(name, state.breaker.faults)
            if self._measured.store is not None:
                attempts.add_metric(name, state.open_attempts)
                for what in NotificationState:
                    count = state.kept_notifications.get(what, 0)
                    kept.add_metric((*name, what.value), count)
            for outcome, count in state.submits.items():
                submits.add_metric((*name, outcome.value), count)
        yield from (breaker, faults, attempts, submits, kept, dropped)


def _counter(name: str, documentation: str, *labels: str) -> Any:
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 -- an extra

    return CounterMetricFamily(name, documentation, labels=labels)


def _gauge(name: str, documentation: str, *labels: str) -> Any:
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 -- an extra

    return GaugeMetricFamily(name, documentation, labels=labels)


def _single_gauge(name: str, documentation: str, value: float) -> Any:
    """A gauge with one value."""
    gauge = _gauge(f"{_METRIC_PREFIX}_{name}", documentation)
    gauge.add_metric((), value)
    return gauge
