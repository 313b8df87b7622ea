"""Health, version and metrics under `/_sandbox/`. Source: docs/control-api.md.

The metrics, in the format of Prometheus, need the package prometheus-client, the extra `metrics`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class HealthRoutes(RouteGroup):
    """The routes for containers, scripts and Prometheus; only the metrics need the token."""

    store: Store
    clock: Clock
    metering: Metering

    group = "Health"
    access = Access.OPEN

    @route("GET /_sandbox/livez", "check that the process answers")
    async def livez(self, _request: web.Request) -> Alive:
        """Answer that the process runs."""
        return {"status": "ok"}

    @route("GET /_sandbox/readyz", "check that the store accepts writes")
    async def readyz(self, _request: web.Request) -> Ready:
        """Write to the store and remove it again: a store on a full disk can still be read."""
        probe = InboxMessage("", self.clock.now(), "", (), _PROBE_BODY, "missing")

        async def write_and_remove(unit: Unit) -> None:
            await unit.add_inbox_message(_PROBE_INBOX, probe)
            await unit.clear_inbox(_PROBE_INBOX)

        await self.store.run(write_and_remove)
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
        text = exposition.generate_latest(_Registry(await self.metering.measure()))
        headers = {"Content-Type": exposition.CONTENT_TYPE_LATEST}
        return web.Response(body=text, headers=headers)


@dataclass
class _Registry:
    """The metrics of these measurements, as prometheus-client collects them."""

    measured: Measurements

    def collect(self) -> "Iterable[Metric]":
        yield from self._gateway_metrics()
        yield from self._store_metrics()
        yield from self._network_metrics()

    def _gateway_metrics(self) -> "Iterator[Metric]":
        measured = self.measured
        requests = _counter("requests", "Requests answered.", "path", "code")
        for labels, count in sorted(measured.requests.items()):
            requests.add_metric(labels, count)
        yield requests
        attempts = _counter("callback_attempts", "Attempts at callbacks.", "state")
        for state, count in sorted(measured.callback_attempts.items()):
            attempts.add_metric((state.value,), count)
        yield attempts
        waiting = measured.callbacks_waiting
        yield _value_gauge("callbacks_waiting", "Callbacks that wait for their attempt.", waiting)

    def _store_metrics(self) -> "Iterator[Metric]":
        store = self.measured.store
        is_up = float(store is not None)
        yield _value_gauge("store_up", "1 if the store can be read, else 0.", is_up)
        if store is None:
            return
        yield _value_gauge(
            "store_seconds", "How long the store took to answer this.", store.duration_s
        )
        yield _value_gauge("jobs_late_seconds", "How long the next job is overdue.", store.late_s)
        yield _value_gauge("jobs_failing", "Jobs that failed three times or more.", store.failing)

    def _network_metrics(self) -> "Iterator[Metric]":
        label = "network"
        breaker = _gauge(
            "network_breaker_open", "1 while the circuit breaker holds submits back.", label
        )
        faults = _gauge("network_faults_in_a_row", "Consecutive network faults.", label)
        attempts = _gauge(
            "network_open_attempts", "Attempts whose outcome is not known yet.", label
        )
        submits = _counter("network_submits", "Submits of this process.", label, "outcome")
        stored = _gauge("network_notifications_kept", "Notifications in the store.", label, "state")
        text = "Unproven notifications that were not stored."
        dropped = _counter("network_notifications_dropped", text, label)
        for state in self.measured.networks:
            name = (state.name,)
            dropped.add_metric(name, state.dropped_notifications)
            breaker.add_metric(name, float(state.breaker.state is not BreakerState.CLOSED))
            faults.add_metric(name, state.breaker.faults)
            if self.measured.store is not None:
                attempts.add_metric(name, state.open_attempts)
                for kind in NotificationState:
                    count = state.kept_notifications.get(kind, 0)
                    stored.add_metric((*name, kind.value), count)
            for outcome, count in state.submits.items():
                submits.add_metric((*name, outcome.value), count)
        yield from (breaker, faults, attempts, submits, stored, dropped)


def _counter(name: str, documentation: str, *labels: str) -> Any:
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 -- an extra

    return CounterMetricFamily(f"sandbox_sim_{name}", documentation, labels=labels)


def _gauge(name: str, documentation: str, *labels: str) -> Any:
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 -- an extra

    return GaugeMetricFamily(f"sandbox_sim_{name}", documentation, labels=labels)


def _value_gauge(name: str, documentation: str, value: float) -> Any:
    """A gauge with one value."""
    gauge = _gauge(name, documentation)
    gauge.add_metric((), value)
    return gauge
