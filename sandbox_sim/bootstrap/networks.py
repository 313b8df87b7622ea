"""Makes the configured networks with their settings and routes. D39."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from sandbox_sim.config import Settings
from sandbox_sim.config_networks import NetworkTable, networks_made
from sandbox_sim.domain.networks.attempts import Terms
from sandbox_sim.domain.networks.routing import dropped
from sandbox_sim.gateway.networks.registry import ConfiguredNetwork, Networks
from sandbox_sim.gateway.ports import Clock, Ids, Store
from sandbox_sim.gateway.ports.network import Network, NetworkConfigError


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


async def refuse_dropped(store: Store, networks: Mapping[str, object]) -> None:
    """Raise `NetworkConfigError` if attempts are open at networks that are not configured."""
    counts = await store.run(lambda unit: unit.open_attempts())
    problems = list(_dropped_lines(dropped(counts, networks)))
    if problems:
        raise NetworkConfigError("\n".join(problems))


def _dropped_lines(counts: Mapping[str, int]) -> Iterator[str]:
    for name, count in counts.items():
        yield (
            f"networks.{name}: {count} attempts at it are open, and only it can tell their "
            "outcome; keep its table and production = true until they have ended"
        )
