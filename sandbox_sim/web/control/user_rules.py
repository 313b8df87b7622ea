"""The rules of users: listed, added and taken out, one face for each kind.

Source: docs/control-api.md.
"""

import math
from operator import attrgetter
from typing import Annotated, Any

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.control.user_rules import MAX_USER_RULES, UserRuleKind, parse_match, shown
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.control.user_rules import TooManyUserRules, UserRules
from sandbox_sim.web.control.control_input import (
    LARGEST_INTEGER,
    SERVICE_ID,
    BadInput,
    Guard,
    Input,
    Routes,
    ServiceListQuery,
    ServiceQuery,
    body_of,
    error,
    query_of,
)

_AMOUNT = "a number above 0"
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class AmountRange(Input):
    """Both ends are part of it."""

    min: Amount | None = Field(None, description=_AMOUNT)
    max: Amount | None = Field(None, description=_AMOUNT)


class MatchBody(Input):
    """Which requests a rule is for; what is left out may be anything."""

    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    operation: Operation | None = Field(None, description=f"one of {', '.join(Operation)}")
    transaction_id: str | None = Field(None, description="a string")
    customer_number: str | None = Field(None, description="a string: a number or an account")
    nw: str | None = Field(None, description="a string, such as MTN")
    amount: Amount | AmountRange | None = Field(
        None, description=f"{_AMOUNT}, or an object with min and max"
    )


class UserRuleBody(Input):
    """What each kind of rule has; the fields of its own are what it does."""

    match: MatchBody = Field(
        MatchBody(), description="an object of fields that requests have to have"
    )
    times: int | None = Field(None, ge=1, le=LARGEST_INTEGER, description="an integer above 0")

    def contradiction(self) -> str | None:
        """What is wrong with fields that are each in order; None where nothing is."""
        amount = self.match.amount
        if isinstance(amount, AmountRange) and (amount.min or 0) > (amount.max or math.inf):
            return "match.amount.min is above match.amount.max: no amount is between them"
        return None

    def effect(self) -> dict[str, Any]:
        """What it does, as JSON has it."""
        return self.model_dump(mode="json", exclude={"match", "times"}, exclude_none=True)


class UserRuleRoutes:
    """The rules of one kind, for whoever holds the control token.

    plural: what they are called in paths; model: what is posted to add one.
    """

    def __init__(
        self,
        rules: UserRules,
        kind: UserRuleKind,
        plural: str,
        model: type[UserRuleBody],
        guard: Guard,
    ) -> None:
        self._rules = rules
        self._kind = kind
        self._plural = plural
        self._model = model
        self._guard = guard

    def routes(self) -> Routes:
        """The route table."""
        path = f"/_sandbox/{self._plural}"
        table: Routes = [
            ("GET", path, self.list),
            ("POST", path, self.add),
            ("DELETE", path, self.clear),
            ("DELETE", f"{path}/{{id}}", self.remove),
        ]
        return [(method, path, self._guard(handler)) for method, path, handler in table]

    async def list(self, request: web.Request) -> web.Response:
        """The newest first, those that are used up too; of the service in the query, or all."""
        asked = query_of(request, ServiceListQuery)
        found = await self._rules.listed(self._kind, asked.listing)
        return asked.answer(self._plural, found, shown, attrgetter("id"))

    async def add(self, request: web.Request) -> web.Response:
        """Add one; it applies to whatever comes after the answer. HTTP 409 where there are many."""
        body = await body_of(request, self._model)
        problem = body.contradiction()
        if problem is not None:
            raise BadInput(problem)
        match = parse_match(body.match.model_dump(mode="json", exclude_none=True))
        try:
            rule = await self._rules.add(self._kind, match, body.effect(), body.times)
        except TooManyUserRules:
            text = f"there are {MAX_USER_RULES} {self._plural}: take some out first"
            return error(409, "too_many", text)
        return web.json_response(shown(rule), status=201)

    async def clear(self, request: web.Request) -> web.Response:
        """Take out those of the service in the query, or all."""
        asked = query_of(request, ServiceQuery)
        return web.json_response({"deleted": await self._rules.clear(self._kind, asked.service_id)})

    async def remove(self, request: web.Request) -> web.Response:
        """Take out one."""
        rule_id = request.match_info["id"]
        if not await self._rules.remove(self._kind, rule_id):
            return error(404, "not_found", f"{self._plural} has no {rule_id!r}")
        return web.json_response({"deleted": 1})
