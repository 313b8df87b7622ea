"""Rules of users, overrides and faults: list, add and remove. Source: docs/control-api.md."""

import math
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.control.user_rules import (
    MAX_USER_RULES,
    UserRuleKind,
    UserRuleView,
    parse_match,
    shown,
)
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.control.user_rules import TooManyUserRules, UserRules
from sandbox_sim.web.control.errors import BAD_REQUEST, NOT_FOUND, TOO_MANY, error_response
from sandbox_sim.web.control.handlers import Reply
from sandbox_sim.web.control.input_models import (
    LARGEST_INTEGER,
    SERVICE_ID,
    Deleted,
    Input,
    ServiceListQuery,
    ServiceQuery,
)
from sandbox_sim.web.routes import Answer, Body, ListOf, Query, Route

_AMOUNT = "a number above 0"
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class AmountRange(Input):
    """Both ends are part of it."""

    min: Amount | None = Field(None, description=_AMOUNT)
    max: Amount | None = Field(None, description=_AMOUNT)


class MatchBody(Input):
    """The requests that a rule applies to; a field that is left out fits every request."""

    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    operation: Operation | None = Field(None, description=f"one of {', '.join(Operation)}")
    transaction_id: str | None = Field(None, description="a string")
    customer_number: str | None = Field(None, description="a string: a number or an account")
    nw: str | None = Field(None, description="a string, such as MTN")
    amount: Amount | AmountRange | None = Field(
        None, description=f"{_AMOUNT}, or an object with min and max"
    )


class UserRuleBody(Input):
    """The fields of every rule; each kind adds those of its effect."""

    match: MatchBody = Field(
        MatchBody(), description="an object of fields that requests have to have"
    )
    times: int | None = Field(None, ge=1, le=LARGEST_INTEGER, description="an integer above 0")

    def contradiction(self) -> str | None:
        """What contradicts itself between valid fields, in a sentence; None where nothing does."""
        amount = self.match.amount
        if isinstance(amount, AmountRange) and (amount.min or 0) > (amount.max or math.inf):
            return "match.amount.min is above match.amount.max: no amount is between them"
        return None

    def effect(self) -> dict[str, Any]:
        """The fields of its own kind, as JSON has them."""
        return self.model_dump(mode="json", exclude={"match", "times"}, exclude_none=True)


class UserRuleRoutes:
    """The rules of one kind.

    plural: their name in paths. model: the body that adds one. view: how one is shown.
    """

    def __init__(
        self,
        rules: UserRules,
        kind: UserRuleKind,
        plural: str,
        model: type[UserRuleBody],
        view: type[UserRuleView],
    ) -> None:
        self._rules = rules
        self._kind = kind
        self._plural = plural
        self._model = model
        self._view = view

    def routes(self) -> Sequence[Route]:
        """The routes of rules of this kind."""
        route = partial(Route, group=self._plural.capitalize())
        path = f"/_sandbox/{self._plural}"
        return [
            route(
                "GET", path, self.list, f"list {self._plural}",
                answers=(Answer(ListOf(self._plural, self._view)),), query=Query(ServiceListQuery),
            ),
            route(
                "POST", path, self.add, f"add one of the {self._plural}",
                answers=(Answer(self._view, 201),), body=Body(self._model), errors=(TOO_MANY,),
            ),
            route(
                "DELETE", path, self.clear, f"remove all {self._plural}, or those of a service",
                answers=(Answer(Deleted),), query=Query(ServiceQuery),
            ),
            route(
                "DELETE", f"{path}/{{id}}", self.remove, f"remove one of the {self._plural}",
                answers=(Answer(Deleted),), errors=(NOT_FOUND,),
            ),
        ]  # fmt: skip

    async def list(self, _request: web.Request, asked: ServiceListQuery) -> Reply:
        """List the rules, newest first, those that are used up too."""
        found = await self._rules.listed(self._kind, asked.listing)
        page, following = asked.page(found, attrgetter("id"))
        return {self._plural: [shown(each) for each in page], "next": following}

    async def add(self, _request: web.Request, asked: UserRuleBody) -> Reply:
        """Add one; it applies to requests that come after the answer. HTTP 409 above the limit."""
        problem = asked.contradiction()
        if problem is not None:
            return error_response(BAD_REQUEST, problem)
        match = parse_match(asked.match.model_dump(mode="json", exclude_none=True))
        try:
            rule = await self._rules.add(self._kind, match, asked.effect(), asked.times)
        except TooManyUserRules:
            text = f"there are {MAX_USER_RULES} {self._plural}: take some out first"
            return error_response(TOO_MANY, text)
        return shown(rule)

    async def clear(self, _request: web.Request, asked: ServiceQuery) -> Deleted:
        """Remove those of the service in the query, or all."""
        return {"deleted": await self._rules.clear(self._kind, asked.service_id)}

    async def remove(self, request: web.Request) -> Deleted | web.Response:
        """Remove one."""
        rule_id = request.match_info["id"]
        if not await self._rules.remove(self._kind, rule_id):
            return error_response(NOT_FOUND, f"{self._plural} has no {rule_id!r}")
        return {"deleted": 1}
