"""`GET /_sandbox/metrics`: the networks of production, in the format of Prometheus.

It needs the package prometheus-client, the extra `metrics`.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from sandbox_sim.domain.networks.circuit_breaker import BreakerState
from sandbox_sim.gateway.networks.network_overview import NetworkOverview, NetworkState
from sandbox_sim.web.control.errors import NO_METRICS, error_response
from sandbox_sim.web.routes import Answer, Route

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_PREFIX: Final = "sandbox_sim_network"
_PLAIN_TEXT: Final = "text/plain"
_INSTALL: Final = (
    "The package prometheus-client is not installed: install the extra metrics of sandbox-sim"
)


class MetricRoutes:
    """What a Prometheus server reads."""

    def __init__(self, overview: NetworkOverview) -> None:
        self._overview = overview

    def routes(self) -> Sequence[Route]:
        """The route of the metrics."""
        return [
            Route(
                "GET", "/_sandbox/metrics", self.metrics,
                "show the networks of production in the format of Prometheus", "Networks",
                answers=(Answer(None, media_type=_PLAIN_TEXT),), errors=(NO_METRICS,),
            )
        ]  # fmt: skip

    async def metrics(self, _request: web.Request) -> web.Response:
        """Show breakers, open attempts and submits of each network."""
        try:
            from prometheus_client import exposition  # noqa: PLC0415 -- an extra
        except ImportError:
            return error_response(NO_METRICS, _INSTALL)
        text = exposition.generate_latest(_Registry(await self._overview.states()))
        headers = {"Content-Type": exposition.CONTENT_TYPE_LATEST}
        return web.Response(body=text, headers=headers)


class _Registry:
    """The metrics of these states, as prometheus-client asks for them."""

    def __init__(self, states: Sequence[NetworkState]) -> None:
        self._states = states

    def collect(self) -> "Iterable[Metric]":
        from prometheus_client.core import (  # noqa: PLC0415
            CounterMetricFamily,
            GaugeMetricFamily,
        )

        label = ("network",)
        breaker: Any = GaugeMetricFamily(
            f"{_PREFIX}_breaker_open",
            "1 while the circuit breaker holds submits back.",
            labels=label,
        )
        faults: Any = GaugeMetricFamily(
            f"{_PREFIX}_faults_in_a_row", "Faults of transport in a row.", labels=label
        )
        attempts: Any = GaugeMetricFamily(
            f"{_PREFIX}_open_attempts", "Attempts whose outcome is not known yet.", labels=label
        )
        submits: Any = CounterMetricFamily(
            f"{_PREFIX}_submits", "Submits of this process.", labels=(*label, "outcome")
        )
        for state in self._states:
            name = (state.name,)
            breaker.add_metric(name, float(state.breaker.state is not BreakerState.CLOSED))
            faults.add_metric(name, state.breaker.faults)
            attempts.add_metric(name, state.open_attempts)
            for outcome, count in state.submits.items():
                submits.add_metric((*name, outcome.value), count)
        return (breaker, faults, attempts, submits)
