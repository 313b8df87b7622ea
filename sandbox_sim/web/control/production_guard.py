"""Refuses requests to the control API while production is on. Source: D39.

The clock decides when networks are queried, and settings apply to all clients, so neither can be
changed. A sample callback of the doctor says that a payment was made, so none is sent. Overrides,
faults, reset, seed, snapshots and the deletion of requests never change records of mode P. If they
name a service that only clients of mode P may use, they get HTTP 409. So does an override or fault
that names a transaction of mode P, and any if there are no clients of mode S.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final, NoReturn

from aiohttp import web

from sandbox_sim.control.record_search import TRANSACTIONS, RecordSearch
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.web.control.callbacks import DOCTOR_PATH
from sandbox_sim.web.control.config import CONFIG_PATH
from sandbox_sim.web.control.errors import PRODUCTION, RequestRefused
from sandbox_sim.web.control.overrides_and_faults import UserRuleBody
from sandbox_sim.web.routes import Route

_CLOCK_PREFIX: Final = "/_sandbox/clock/"
_RULE_PATHS: Final = ("/_sandbox/overrides", "/_sandbox/faults")
_CLOCK_FIXED: Final = "gateway time cannot be changed"
_CONFIG_FIXED: Final = (
    "settings cannot change while the server runs; configure them and restart the server"
)
_NO_SAMPLES: Final = (
    "no sample callbacks are sent: they would say that payments were made; run sandbox-sim doctor "
    "URL instead"
)
# How many of the transactions with one transaction_id are checked.
_MAX_CHECKED: Final = 100
_SANDBOX_CHANGES: Final = frozenset(
    {
        *(("POST", f"/_sandbox/{name}") for name in ("reset", "seed", "snapshots")),
        *(("POST", path) for path in _RULE_PATHS),
        ("DELETE", "/_sandbox/requests"),
    }
)


def guard_routes(
    routes: Iterable[Route], is_only_live: Callable[[int | None], bool], records: RecordSearch
) -> list[Route]:
    """The routes with the refusals of production.

    is_only_live: whether only clients of mode P may use a service, or any service (None).
    """
    return [_guard_route(route, is_only_live, records) for route in routes]


def _guard_route(
    route: Route, is_only_live: Callable[[int | None], bool], records: RecordSearch
) -> Route:
    errors = (*route.errors, PRODUCTION)
    if route.method == "POST" and route.path.startswith(_CLOCK_PREFIX):
        return replace(route, handler=partial(_refuse, _CLOCK_FIXED), errors=errors)
    if route.path == CONFIG_PATH and route.method != "GET":
        return replace(route, handler=partial(_refuse, _CONFIG_FIXED), errors=errors)
    if route.path == DOCTOR_PATH:
        return replace(route, handler=partial(_refuse, _NO_SAMPLES))
    if (route.method, route.path) in _SANDBOX_CHANGES:
        return replace(
            route, handler=partial(_guard_live, route, is_only_live, records), errors=errors
        )
    return route


async def _refuse(text: str, _request: web.Request, _input: object) -> NoReturn:
    raise RequestRefused(PRODUCTION, f"Production is on, so {text}")


async def _guard_live(
    route: Route,
    is_only_live: Callable[[int | None], bool],
    records: RecordSearch,
    request: web.Request,
    data: object,
) -> Any:
    service = getattr(getattr(data, "match", data), "service_id", None)
    if isinstance(service, int) and is_only_live(service):
        text = (
            f"Only clients of mode P may use service {service}, and its records cannot be changed"
        )
        raise RequestRefused(PRODUCTION, text)
    if route.path in _RULE_PATHS and is_only_live(None):
        text = (
            "Overrides and faults are for requests of mode S, and all credentials are of mode P: "
            "the network decides a payment of mode P, or a person with settle"
        )
        raise RequestRefused(PRODUCTION, text)
    name = await _live_transaction(records, data) if isinstance(data, UserRuleBody) else None
    if name is not None:
        text = (
            f"Transaction {name} is of mode P, where a network decides: name a transaction_id of "
            "mode S, or settle the payment"
        )
        raise RequestRefused(PRODUCTION, text)
    return await route.handler(request, data)


async def _live_transaction(records: RecordSearch, body: UserRuleBody) -> str | None:
    """The transaction_id that a rule names, if only payments of mode P have it."""
    match = body.match.model_dump(include={"service_id", "transaction_id"}, exclude_none=True)
    if "transaction_id" not in match:
        return None
    found = await records.find(TRANSACTIONS, match, _MAX_CHECKED)
    modes = {each["mode"] for each in found.records}
    return body.match.transaction_id if modes == {ServiceMode.PRODUCTION} else None
