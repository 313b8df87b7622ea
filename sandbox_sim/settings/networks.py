"""The tables of networks and routes; makes the networks. D32, D39."""

from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from sandbox_sim.operations import Operation
from sandbox_sim.ports import Clock, Ids, NetworkConfigError
from sandbox_sim.production.routing import NetworkRoute
from sandbox_sim.records.attempts import PollingSchedule
from sandbox_sim.settings.values import read_secret
from sandbox_sim.values.redaction import redact_text

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from sandbox_sim.ports.network import Network, NetworkEnvironment, NetworkFactory

# The entry points of adapters, ours and those of other packages.
ENTRY_POINTS: Final = "sandbox_sim.networks"
_FILE_SUFFIX: Final = "_file"
_MASKED: Final = "**********"
# The texts of an adapter that are not secret; every other text is masked where it is shown.
_NOT_SECRET: Final = frozenset(
    {
        *("base_url", "target_environment", "currency", "record", "replay", "notify"),
        *("host", "system_type", "source_address_type", "receipt_ids"),
        *("status_base_url", "auth", "auth_header", "allow_plain_http", "health_path"),
    }
)
# The table whose texts may be secrets; those of the other tables within a network are not secret.
_HEADERS: Final = "headers"
_SECONDS: Final = timedelta(seconds=1)
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]


class NetworkTable(BaseModel):
    """One `[networks.NAME]` table; further keys are settings of its adapter.

    timeout_s: real time that a call may take. The other times are gateway time.
    """

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    adapter: str
    timeout_s: Annotated[float, Field(gt=0, le=300)] = 10
    poll_after_s: Seconds = 5
    poll_at_most_s: Seconds = 300
    give_up_after_s: Seconds = 86_400
    failure_grace_s: Annotated[float, Field(ge=0, le=31_536_000)] = 0
    recheck_days: Annotated[int, Field(ge=0, le=366)] = 3

    @property
    def schedule(self) -> PollingSchedule:
        """When the network is asked for the outcome of open attempts."""
        times = self.poll_after_s, self.poll_at_most_s, self.give_up_after_s
        return PollingSchedule(*(seconds * _SECONDS for seconds in times))

    def adapter_settings(self) -> dict[str, object]:
        """The settings of the adapter; a `NAME_file` is read and becomes `NAME`.

        Raises `ValueError` for a file that cannot be read.
        """
        settings: dict[str, object] = {}
        for name, value in (self.model_extra or {}).items():
            if name.endswith(_FILE_SUFFIX) and isinstance(value, str):
                settings[name.removesuffix(_FILE_SUFFIX)] = read_secret(name, value)
            else:
                settings[name] = value
        return settings

    @model_serializer(mode="wrap", when_used="json")
    def _masked(self, serialized: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = serialized(self)
        extra = self.model_extra or {}
        return {
            name: _mask(name, value) if name in extra else value for name, value in fields.items()
        }


class RouteTable(BaseModel):
    """One `[[routes]]` table; an empty list fits everything."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    network: str
    operation: list[Operation] = []
    nw: list[str] = []

    @property
    def route(self) -> NetworkRoute:
        """The row of the routing table."""
        return NetworkRoute(self.network, frozenset(self.operation), frozenset(self.nw))


def _mask(name: str, value: object) -> object:
    if isinstance(value, Mapping):
        return _mask_table(value)
    if not isinstance(value, str):
        return value
    return redact_text(value) if name in _NOT_SECRET or name.endswith(_FILE_SUFFIX) else _MASKED


def _mask_table(table: Mapping[str, object]) -> Mapping[str, object]:
    """A table within the table of a network, with the values of headers masked."""
    masked: dict[str, object] = {}
    for name, value in table.items():
        if not isinstance(value, Mapping):
            masked[name] = value
        elif name == _HEADERS:
            masked[name] = dict.fromkeys(value, _MASKED)
        else:
            masked[name] = _mask_table(value)
    return masked


@cache
def installed_adapters() -> "Mapping[str, EntryPoint]":
    """The entry points of adapters by name; finding them reads the metadata of every package."""
    from importlib.metadata import entry_points  # noqa: PLC0415 -- only production needs it

    return {each.name: each for each in entry_points(group=ENTRY_POINTS)}


def make_networks(
    tables: Mapping[str, NetworkTable], clock: Clock, ids: Ids
) -> "Mapping[str, Network]":
    """The networks by name, not open yet.

    Raises `NetworkConfigError` with a line for each network that cannot be made.
    """
    from sandbox_sim.ports.network import NetworkEnvironment  # noqa: PLC0415 -- production only

    networks, problems = {}, []
    for name, table in tables.items():
        environment = NetworkEnvironment(
            name, clock, ids, table.timeout_s * _SECONDS, table.schedule.longest_pause
        )
        try:
            networks[name] = _make_network(table, environment, installed_adapters())
        except ValueError as error:  # `NetworkConfigError` is one
            problems.append(f"networks.{name}: {error}")
    if problems:
        raise NetworkConfigError("\n".join(problems))
    return networks


def _make_network(
    table: NetworkTable, environment: "NetworkEnvironment", installed: "Mapping[str, EntryPoint]"
) -> "Network":
    entry_point = installed.get(table.adapter)
    if entry_point is None:
        known = ", ".join(sorted(installed))
        raise NetworkConfigError(f"there is no adapter {table.adapter!r}; installed are {known}")
    try:
        factory: NetworkFactory = entry_point.load()
    except ImportError as error:
        raise NetworkConfigError(f"the adapter {table.adapter} cannot be loaded: {error}") from None
    return factory(table.adapter_settings(), environment)


def merged_variables(
    networks: Mapping[str, Any], variables: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """The tables of networks with the settings that came as variables.

    variables: by what follows `SANDBOX_SIM_NETWORKS__` in their name, such as `MTN__API_KEY`.
    """
    tables = {name: dict(table) for name, table in networks.items() if isinstance(table, Mapping)}
    by_lower = {name.lower(): name for name in tables}
    for variable, text in variables.items():
        network, _, setting = variable.lower().partition("__")
        table = tables.setdefault(by_lower.get(network, network), {})
        table[setting] = text
    return tables
