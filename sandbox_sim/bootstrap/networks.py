"""Makes the configured networks: adapters by their entry points, settings, routes. D39."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sandbox_sim.config import Settings
from sandbox_sim.config_networks import NetworkTable
from sandbox_sim.domain.networks.attempts import Terms
from sandbox_sim.domain.networks.routing import dropped
from sandbox_sim.gateway.networks.registry import ConfiguredNetwork, Networks
from sandbox_sim.gateway.ports import Clock, Ids, Store
from sandbox_sim.gateway.ports.network import (
    Network,
    NetworkConfigError,
    NetworkEnvironment,
    NetworkFactory,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS: Final = "sandbox_sim.networks"


def networks_of(settings: Settings, clock: Clock, ids: Ids) -> Networks:
    """The networks of the settings, not open yet.

    Raises `NetworkConfigError` with a line for each network that cannot be made.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 -- only production needs it

    installed = {each.name: each for each in entry_points(group=ENTRY_POINTS)}
    made, problems = [], []
    for name, table in settings.networks.items():
        environment = NetworkEnvironment(name, clock, ids, timedelta(seconds=table.timeout_s))
        try:
            made.append(_configured(table, _network(table, environment, installed), environment))
        except ValueError as error:  # `NetworkConfigError` is one
            problems.append(f"networks.{name}: {error}")
    if problems:
        raise NetworkConfigError("\n".join(problems))
    return Networks(made, [table.route for table in settings.routes], clock)


def _network(
    table: NetworkTable, environment: NetworkEnvironment, installed: "Mapping[str, EntryPoint]"
) -> Network:
    found = installed.get(table.adapter)
    if found is None:
        known = ", ".join(sorted(installed))
        raise NetworkConfigError(f"there is no adapter {table.adapter!r}; installed are {known}")
    try:
        factory: NetworkFactory = found.load()
    except ImportError as error:
        raise NetworkConfigError(f"the adapter {table.adapter} cannot be loaded: {error}") from None
    return factory(table.adapter_settings(), environment)


def _configured(
    table: NetworkTable, network: Network, environment: NetworkEnvironment
) -> ConfiguredNetwork:
    can = network.capabilities
    terms = Terms(
        schedule=table.schedule,
        always_sent=can.always_sent,
        failure_grace=timedelta(seconds=table.failure_grace_s),
        has_status=can.has_status,
        repeats_within=can.repeats_within,
        timeout=environment.timeout,
    )
    return ConfiguredNetwork(environment.name, table.adapter, network, terms)


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
