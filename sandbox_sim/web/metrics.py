"""`GET /_sandbox/metrics`: the numbers of the gateway in the format of Prometheus.

It needs the package prometheus-client, the extra `metrics`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from sandbox_sim.domain.networks.circuit_breaker import BreakerState
from sandbox_sim.gateway.control.measurements import Measurements, Metering
from sandbox_sim.web.control.errors import NO_METRICS, error_response
from sandbox_sim.web.routes import Answer, Route

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_PREFIX: Final = "sandbox_sim"
_NETWORK: Final = f"{_PREFIX}_network"
_PLAIN_TEXT: Final = "text/plain"
_INSTALL: Final = (
    "The package prometheus-client is not installed: install the extra metrics of sandbox-sim"
)


class MetricRoutes:
    """What a Prometheus server reads."""

    def __init__(self, metering: Metering) -> None:
        self._metering = metering

    def routes(self) -> Sequence[Route]:
        """The route of the metrics."""
        return [
            Route(
                "GET", "/_sandbox/metrics", self.metrics,
                "show the numbers of the gateway in the format of Prometheus", "Health",
                answers=(Answer(None, media_type=_PLAIN_TEXT),), errors=(NO_METRICS,),
            )
        ]  # fmt: skip

    async def metrics(self, _request: web.Request) -> web.Response:
        """Show requests, callbacks, jobs, the store and the networks."""
        try:
            from prometheus_client import exposition  # noqa: PLC0415 -- an extra
        except ImportError:
            return error_response(NO_METRICS, _INSTALL)
        text = exposition.generate_latest(_Registry(await self._metering.measure()))
        headers = {"Content-Type": exposition.CONTENT_TYPE_LATEST}
        return web.Response(body=text, headers=headers)


class _Registry:
    """The metrics of these measurements, as prometheus-client asks for them."""

    def __init__(self, measured: Measurements) -> None:
        self._measured = measured

    def collect(self) -> "Iterable[Metric]":
        yield from self._of_the_gateway()
        yield from self._of_the_store()
        yield from self._of_networks()

    def _of_the_gateway(self) -> "Iterator[Metric]":
        measured = self._measured
        requests = _counter(f"{_PREFIX}_requests", "Requests answered.", "path", "code")
        for labels, count in sorted(measured.requests.items()):
            requests.add_metric(labels, count)
        yield requests
        attempts = _counter(f"{_PREFIX}_callback_attempts", "Attempts at callbacks.", "state")
        for state, count in sorted(measured.callback_attempts.items()):
            attempts.add_metric((state.value,), count)
        yield attempts
        waiting = _gauge(f"{_PREFIX}_callbacks_waiting", "Callbacks that wait for their attempt.")
        waiting.add_metric((), measured.callbacks_waiting)
        yield waiting

    def _of_the_store(self) -> "Iterator[Metric]":
        store = self._measured.store
        up = _gauge(f"{_PREFIX}_store_up", "1 if the store can be read, else 0.")
        up.add_metric((), float(store is not None))
        yield up
        if store is None:
            return
        seconds = _gauge(f"{_PREFIX}_store_seconds", "How long the store took to answer this.")
        seconds.add_metric((), store.duration_s)
        yield seconds
        late = _gauge(f"{_PREFIX}_jobs_late_seconds", "How long the next job is overdue.")
        late.add_metric((), store.late_s)
        yield late

    def _of_networks(self) -> "Iterator[Metric]":
        label = "network"
        breaker = _gauge(
            f"{_NETWORK}_breaker_open", "1 while the circuit breaker holds submits back.", label
        )
        faults = _gauge(f"{_NETWORK}_faults_in_a_row", "Faults of transport in a row.", label)
        attempts = _gauge(
            f"{_NETWORK}_open_attempts", "Attempts whose outcome is not known yet.", label
        )
        submits = _counter(f"{_NETWORK}_submits", "Submits of this process.", label, "outcome")
        for state in self._measured.networks:
            name = (state.name,)
            breaker.add_metric(name, float(state.breaker.state is not BreakerState.CLOSED))
            faults.add_metric(name, state.breaker.faults)
            if self._measured.store is not None:
                attempts.add_metric(name, state.open_attempts)
            for outcome, count in state.submits.items():
                submits.add_metric((*name, outcome.value), count)
        yield from (breaker, faults, attempts, submits)


def _counter(name: str, documentation: str, *labels: str) -> Any:
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 -- an extra

    return CounterMetricFamily(name, documentation, labels=labels)


def _gauge(name: str, documentation: str, *labels: str) -> Any:
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 -- an extra

    return GaugeMetricFamily(name, documentation, labels=labels)
