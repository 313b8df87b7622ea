"""The settings of production mode: networks, routes, and what makes a start unsafe. D32, D39."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from sandbox_sim.domain.clients import SANDBOX_CLIENT, ServiceMode
from sandbox_sim.domain.networks.polling import PollingSchedule
from sandbox_sim.domain.networks.routing import Route, without_network
from sandbox_sim.domain.vocabulary import Operation

if TYPE_CHECKING:
    from sandbox_sim.config import Settings

_FROM_FILE: Final = "_file"
_MASKED: Final = "**********"
# The texts of an adapter that are no secrets; every other text is masked where it is shown.
_SHOWN: Final = frozenset(
    {"base_url", "target_environment", "currency", "record", "replay", "notify"}
)
_ROUTED: Final = frozenset(
    {
        *(Operation.COLLECT, Operation.CARD, Operation.DEPOSIT, Operation.PAYOUT),
        *(Operation.BILL, Operation.AIRTIME, Operation.SMS),
    }
)
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

    @property
    def schedule(self) -> PollingSchedule:
        """When open attempts are asked for."""
        times = self.poll_after_s, self.poll_at_most_s, self.give_up_after_s
        return PollingSchedule(*(seconds * _SECONDS for seconds in times))

    def adapter_settings(self) -> dict[str, object]:
        """The settings of the adapter; a `NAME_file` is read and becomes `NAME`.

        Raises `ValueError` for a file that cannot be read.
        """
        found: dict[str, object] = {}
        for name, value in (self.model_extra or {}).items():
            if name.endswith(_FROM_FILE) and isinstance(value, str):
                found[name.removesuffix(_FROM_FILE)] = _content(name, value)
            else:
                found[name] = value
        return found

    @model_serializer(mode="wrap", when_used="json")
    def _masked(self, serialized: SerializerFunctionWrapHandler) -> dict[str, Any]:
        own = serialized(self)
        extra = self.model_extra or {}
        return {
            name: _shown(name, value) if name in extra else value for name, value in own.items()
        }


class RouteTable(BaseModel):
    """One `[[routes]]` table; what is left out fits everything."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    network: str
    operation: list[Operation] = []
    nw: list[str] = []

    @property
    def route(self) -> Route:
        """The row of the routing table."""
        return Route(self.network, frozenset(self.operation), frozenset(self.nw))


def _content(name: str, path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8").strip()
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        raise ValueError(f"{name}: the file cannot be read: {error}") from None


def _shown(name: str, value: object) -> object:
    if not isinstance(value, str) or name in _SHOWN or name.endswith(_FROM_FILE):
        return value
    return _MASKED


def problems_of_networks(settings: "Settings") -> Iterator[str]:
    """A line `name: problem` for each setting of networks that cannot be, or is unsafe."""
    routes = [table.route for table in settings.routes]
    for operation in sorted({each for route in routes for each in route.operations} - _ROUTED):
        yield f"routes: no network carries the operation {operation}"
    if settings.production:
        for name in without_network(routes, settings.networks):
            yield f"routes: there is no table [networks.{name}]"
        yield from _unsafe(settings)


def _unsafe(settings: "Settings") -> Iterator[str]:
    """What is too dangerous where money is moved."""
    builtin = SANDBOX_CLIENT.client_key, SANDBOX_CLIENT.secret_key
    pairs = {
        (each.client_key, each.secret_key.get_secret_value()): each.mode
        for each in settings.credentials
    }
    if ServiceMode.PRODUCTION not in pairs.values():
        yield 'production: needs a table [[credentials]] with mode = "P"'
    if pairs.get(builtin) is ServiceMode.PRODUCTION:
        yield "credentials: the built-in pair is public, so it cannot have mode P"
    if not settings.loopback and builtin in pairs:
        yield f"credentials: the built-in pair is public, and host {settings.host} is not loopback"
    if not settings.loopback and not settings.tls_terminated:
        yield (
            f"host: {settings.host} is not loopback and this is plain HTTP; serve on loopback "
            "behind a proxy that does HTTPS, or set tls_terminated where that is so"
        )
    if settings.store == "memory:" and not settings.allow_memory:
        yield "store: memory: forgets payments when it stops; set allow_memory = true for tests"


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
