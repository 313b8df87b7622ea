"""What production mode changes in the parts of a gateway, and its networks. Source: D39, D32."""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sandbox_sim.control.scheduler import JobHandler
from sandbox_sim.ports import Clock, Ids, Store, Unit
from sandbox_sim.ports.network import Network, NetworkConfigError
from sandbox_sim.production.registry import ConfiguredNetwork, Networks, dropped
from sandbox_sim.records.attempts import Terms
from sandbox_sim.records.jobs import LIVE_KINDS, Job, JobKind
from sandbox_sim.settings.networks import NetworkTable, networks_made
from sandbox_sim.settings.schema import Settings

if TYPE_CHECKING:
    from sandbox_sim.bootstrap.production_parts import Production


log = logging.getLogger("sandbox_sim.networks")


def networks_of(settings: Settings, clock: Clock, ids: Ids) -> Networks:
    """The networks of the settings, not open yet.

    Raises `NetworkConfigError` with a line for each network that cannot be made.
    """
    made = networks_made(settings.networks, clock, ids)
    networks = [_configured(name, settings.networks[name], each) for name, each in made.items()]
    return Networks(networks, [table.route for table in settings.routes], clock)


def _configured(name: str, table: NetworkTable, network: Network) -> ConfiguredNetwork:
    can = network.capabilities
    schedule = table.schedule
    if can.decides_within is not None:
        schedule = replace(schedule, give_up_after=can.decides_within)
    terms = Terms(
        schedule=schedule,
        always_sent=can.always_sent,
        failure_grace=timedelta(seconds=table.failure_grace_s),
        has_status=can.has_status,
        recheck_for=timedelta(days=table.recheck_days),
        repeats_within=can.repeats_within,
        timeout=timedelta(seconds=table.timeout_s),
    )
    return ConfiguredNetwork(name, table.adapter, network, terms)


def warn_of_sandboxes(networks: Iterable[ConfiguredNetwork]) -> None:
    """Log a warning for each currency that a network replaces by another (D41)."""
    for each in networks:
        for asked, sent in each.network.capabilities.sent_as.items():
            log.warning(
                "network %s is a sandbox, where no money moves: payments in %s go out in %s with "
                "the same figures",
                *(each.name, asked, sent),
            )


async def refuse_dropped(store: Store, networks: Mapping[str, object]) -> None:
    """Raise `NetworkConfigError` if attempts are open at networks that are not configured."""
    counts = await store.run(lambda unit: unit.open_attempts())
    problems = [
        f"networks.{name}: {count} attempts at it are open, and only this network knows their "
        "outcome; keep its table and production = true until they have ended"
        for name, count in dropped(counts, networks).items()
    ]
    if problems:
        raise NetworkConfigError("\n".join(problems))


def live_handlers(production: "Production | None") -> Mapping[JobKind, JobHandler]:
    """The handlers of the jobs of production.

    Without production, jobs that an earlier run left just end: the start has made sure that no
    attempt is open.
    """
    if production is None:
        return dict.fromkeys(LIVE_KINDS - {JobKind.DELIVER_LIVE}, _end)
    return production.job_handlers()


@asynccontextmanager
async def running(production: "Production | None", store: Store) -> AsyncIterator[None]:
    """Run production, if it is on.

    Raises `NetworkConfigError` if attempts are open at a network that is not configured.
    """
    if production is None:
        await refuse_dropped(store, {})
        yield
        return
    async with production.running():
        yield


async def _end(_unit: Unit, _job: Job, _now: datetime) -> None:
    """Do nothing, so that the job ends."""
