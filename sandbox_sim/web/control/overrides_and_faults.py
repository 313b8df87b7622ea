"""Overrides and faults under `/_sandbox/`: added, listed and removed."""

import math
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, NotRequired, Self

from aiohttp import web
from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from sandbox_sim.operations import Operation
from sandbox_sim.overrides.faults import FAULT_STATUSES, MAX_LATENCY_S, AnswerFault
from sandbox_sim.overrides.overrides import TooManyUserRules, UserRules
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.records.overrides import (
    MAX_DELAY_MS,
    MAX_DELIVERIES,
    MAX_USER_RULES,
    Override,
    UserRuleKind,
    UserRuleView,
    contradiction,
    parse_match,
    parse_override,
    shown,
)
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.response_codes import CATALOGUE
from sandbox_sim.values.vocabulary import MAX_IDENTIFIER
from sandbox_sim.web.api.request_models import Amount
from sandbox_sim.web.control.errors import NOT_FOUND, TOO_MANY, RequestRefused
from sandbox_sim.web.control.input import (
    LARGEST_INTEGER,
    BadInput,
    Deleted,
    Input,
    ServiceBody,
    ServiceListQuery,
    ServiceQuery,
    StatusWord,
    codes_and_words,
)
from sandbox_sim.web.control.records import not_found
from sandbox_sim.web.routes import Answer, Body, ListOf, Query, Reply, Route, RouteGroup

_AN_AMOUNT = "a number above 0"

_A_TEXT = f"a string of at most {MAX_IDENTIFIER} characters"

_ShortText = Annotated[str, Field(max_length=MAX_IDENTIFIER)]


class AmountRange(Input):
    """A range of amounts that includes both ends."""

    min: Amount | None = Field(None, description=_AN_AMOUNT)
    max: Amount | None = Field(None, description=_AN_AMOUNT)


class MatchBody(ServiceBody):
    """The requests that a rule applies to; a field that is left out fits every request."""

    operation: Operation | None = Field(None, description=f"one of {', '.join(Operation)}")
    transaction_id: _ShortText | None = Field(None, description=_A_TEXT)
    customer_number: _ShortText | None = Field(
        None, description=f"{_A_TEXT}: a number or an account"
    )
    nw: _ShortText | None = Field(None, description=f"{_A_TEXT}, such as MTN")
    amount: Amount | AmountRange | None = Field(
        None, description=f"{_AN_AMOUNT}, or an object with min and max"
    )


class UserRuleBody(Input):
    """The fields of every rule; each kind adds those of its effect.

    times: how many requests it applies to; without it all.
    """

    match: MatchBody = Field(
        MatchBody(), description="an object with the fields that a request must have"
    )
    times: int | None = Field(None, ge=1, le=LARGEST_INTEGER, description="an integer above 0")

    def contradiction(self) -> str | None:
        """How valid fields contradict each other, in a sentence, or None."""
        amount = self.match.amount
        if isinstance(amount, AmountRange) and (amount.min or 0) > (amount.max or math.inf):
            return "match.amount.min is greater than match.amount.max: swap them"
        return None

    def effect(self) -> dict[str, Any]:
        """The fields of the effect, in JSON types."""
        return self.model_dump(mode="json", exclude={"match", "times"}, exclude_none=True)


@dataclass(frozen=True, eq=False)
class UserRuleRoutes(RouteGroup):
    """The routes of one kind of rules.

    plural: their name in paths. model: the body that adds one. view: the type of one in answers.
    """

    rules: UserRules
    kind: UserRuleKind
    plural: str
    model: type[UserRuleBody]
    view: type[UserRuleView]

    def routes(self) -> list[Route]:
        """The routes of rules of this kind."""
        route = partial(Route, group=self.plural.capitalize())
        path = f"/_sandbox/{self.plural}"
        return [
            route(
                "GET", path, self.list, f"list {self.plural}",
                answers=(Answer(ListOf(self.plural, self.view)),), query=Query(ServiceListQuery),
                errors=(NOT_FOUND,),
            ),
            route(
                "POST", path, self.add, f"add one of the {self.plural}",
                answers=(Answer(self.view, 201),), body=Body(self.model), errors=(TOO_MANY,),
            ),
            route(
                "DELETE", path, self.clear, f"remove all {self.plural}, or those of a service",
                answers=(Answer(Deleted),), query=Query(ServiceQuery),
            ),
            route(
                "DELETE", f"{path}/{{id}}", self.remove, f"remove one of the {self.plural}",
                answers=(Answer(Deleted),),
            ),
        ]  # fmt: skip

    async def list(self, _request: web.Request, query: ServiceListQuery) -> Reply:
        """List the rules, newest first, including those that are used up."""
        found = await self.rules.listed(self.kind, query.listing)
        return query.page_view(self.plural, found, attrgetter("id"), shown)

    async def add(self, _request: web.Request, body: UserRuleBody) -> Reply:
        """Add a rule for the requests after this one; HTTP 409 if there are too many rules."""
        problem = body.contradiction()
        if problem is not None:
            raise BadInput(problem)
        match = parse_match(body.match.model_dump(mode="json", exclude_none=True))
        try:
            rule = await self.rules.add(self.kind, match, body.effect(), body.times)
        except TooManyUserRules:
            text = f"there are {MAX_USER_RULES} {self.plural}: remove some first"
            raise RequestRefused(TOO_MANY, text) from None
        return shown(rule)

    async def clear(self, _request: web.Request, query: ServiceQuery) -> Deleted:
        """Remove the rules of the service in the query, or all."""
        return {"deleted": await self.rules.clear(self.kind, query.service_id)}

    async def remove(self, request: web.Request) -> Deleted:
        rule_id = request.match_info["id"]
        if not await self.rules.remove(self.kind, rule_id):
            raise not_found(self.plural, rule_id)
        return {"deleted": 1}


_A_CODE = f"one of {', '.join(CATALOGUE)}"

_A_DELAY = f"an integer of milliseconds from 0 to {MAX_DELAY_MS}"

_A_BOOLEAN = "true or false"

_AS_ADDED = "as in the body that added it"

_CODE_PATTERN = f"^({'|'.join(CATALOGUE)})$"


class OutcomeBody(Input):
    """The answer to the request, and the status that the transaction ends with.

    status: how an accepted payment ends; 002 stays pending.
    response_code: the code of the answer.
    """

    status: Annotated[Status | None, StatusWord] = Field(
        None, description=f"one of {codes_and_words(Status)}"
    )
    response_code: str | None = Field(None, pattern=_CODE_PATTERN, description=_A_CODE)

    @model_validator(mode="before")
    @classmethod
    def _older_name(cls, document: Any) -> Any:
        """Accept `code`, the older name of `response_code`, unless both are set."""
        if not isinstance(document, dict) or "response_code" in document:
            return document
        return {"response_code" if name == "code" else name: document[name] for name in document}


class BehaviourBody(Input):
    """How the callback behaves.

    drop: it is not sent.
    duplicate: how many times it is sent.
    delay_ms: how much later it is sent, in gateway time.
    reorder: it waits until the next callback of the service was tried.
    bad_signature: it has a wrong signature.
    profile: the form of its body.
    before_response: it is sent before the request is answered.
    """

    drop: bool = Field(False, description=_A_BOOLEAN)
    duplicate: int | None = Field(
        None, ge=2, le=MAX_DELIVERIES, description=f"an integer from 2 to {MAX_DELIVERIES}"
    )
    delay_ms: int = Field(0, ge=0, le=MAX_DELAY_MS, description=_A_DELAY)
    reorder: bool = Field(False, description=_A_BOOLEAN)
    bad_signature: bool = Field(False, description=_A_BOOLEAN)
    profile: Profile | None = Field(None, description=f"one of {', '.join(Profile)}")
    before_response: bool = Field(False, description=_A_BOOLEAN)


class OverrideView(UserRuleView):
    """An override as the control API shows it."""

    outcome: Annotated[dict[str, str], _AS_ADDED]
    delay_ms: Annotated[int, _AS_ADDED]
    callback: Annotated[dict[str, Any], _AS_ADDED]


class OverrideBody(UserRuleBody):
    """The body that adds an override: the requests that it applies to, and their outcome.

    delay_ms: how much later a payment is settled, in gateway time.
    """

    outcome: OutcomeBody = Field(
        OutcomeBody(), description="an object with status or response_code"
    )
    delay_ms: int = Field(0, ge=0, le=MAX_DELAY_MS, description=_A_DELAY)
    callback: BehaviourBody = Field(
        BehaviourBody(), description=f"an object with {', '.join(BehaviourBody.model_fields)}"
    )

    def contradiction(self) -> str | None:
        """How the fields contradict each other or the operation, in a sentence, or None."""
        problem = contradiction(self._override(), self.match.operation)
        return problem or super().contradiction()

    def effect(self) -> dict[str, Any]:
        """The effect, as `records.overrides` reads it."""
        effect = self._override().shown()
        del effect["id"]
        return effect

    def _override(self) -> Override:
        outcome = self.outcome.model_dump(mode="json", exclude_none=True)
        callback = self.callback.model_dump(mode="json", exclude_defaults=True)
        return parse_override(
            {"id": "", "outcome": outcome, "delay_ms": self.delay_ms, "callback": callback}
        )


_MAX_MS: Final = MAX_LATENCY_S * 1000

_MAX_RETRY_AFTER_S: Final = 86_400

_MAX_SIGMA: Final = 10

_MAX_EVERY: Final = 1_000_000

_A_DURATION: Final = f"a number from 0 to {_MAX_MS}"


Milliseconds = Annotated[float, Field(ge=0, le=_MAX_MS, allow_inf_nan=False)]

Yes = Literal[True]


def _invalid() -> PydanticCustomError:
    """An error without its own text: the message uses the description of the field."""
    return PydanticCustomError("wrong", "is wrong")


def _check_ascending(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise _invalid()
    return bounds


class OneOf(Input):
    """An object with exactly one of its fields."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if len(self.model_dump(exclude_none=True)) != 1:
            raise _invalid()
        return self

    @classmethod
    def described(cls) -> str:
        """The description of a field of this type."""
        return f"an object with exactly one of {', '.join(cls.model_fields)}"


class Lognormal(Input):
    """A lognormal distribution: half of the answers take longer than the median."""

    median: Milliseconds = Field(description=_A_DURATION)
    sigma: float = Field(
        ge=0, le=_MAX_SIGMA, allow_inf_nan=False, description=f"a number from 0 to {_MAX_SIGMA}"
    )


class Latency(OneOf):
    """The delay of an answer, in milliseconds of real time."""

    fixed_ms: Milliseconds | None = Field(None, description=_A_DURATION)
    uniform_ms: (
        Annotated[tuple[Milliseconds, Milliseconds], AfterValidator(_check_ascending)] | None
    ) = Field(None, description=f"two numbers, the lower one first, each from 0 to {_MAX_MS}")
    lognormal_ms: Lognormal | None = Field(None, description="an object with median and sigma")


class OneFault(OneOf):
    """What goes wrong; exactly one of these.

    latency: the answer comes later.
    status: the HTTP status of the answer; the request is not processed.
    connection_reset: the connection is reset.
    empty_response: the connection is closed without an answer.
    malformed_json: the body of the answer is cut off.
    timeout: nothing is answered for five minutes.
    """

    latency: Latency | None = Field(None, description=Latency.described())
    status: Literal[FAULT_STATUSES] | None = Field(  # type: ignore[valid-type]
        None, description=f"one of {', '.join(map(str, FAULT_STATUSES))}"
    )
    connection_reset: Yes | None = Field(None, description="true")
    empty_response: Yes | None = Field(None, description="true")
    malformed_json: Yes | None = Field(None, description="true")
    timeout: Yes | None = Field(None, description="true")


class FaultView(UserRuleView):
    """A fault as the control API shows it."""

    fault: Annotated[dict[str, Any], _AS_ADDED]
    probability: Annotated[float, _AS_ADDED]
    every: Annotated[int, _AS_ADDED]
    retry_after_s: NotRequired[Annotated[int, _AS_ADDED]]
    processed: NotRequired[Annotated[bool, _AS_ADDED]]


class FaultBody(UserRuleBody):
    """The body that adds a fault.

    probability: the share of the requests that it applies to.
    every: 3 applies it to each third request.
    retry_after_s: the header Retry-After, with status 429.
    processed: whether the gateway processes a request whose answer is lost.
    """

    fault: OneFault = Field(description=OneFault.described())
    probability: float = Field(1, ge=0, le=1, description="a number from 0 to 1")
    every: int = Field(1, ge=1, le=_MAX_EVERY, description=f"an integer from 1 to {_MAX_EVERY}")
    retry_after_s: int | None = Field(
        None,
        ge=0,
        le=_MAX_RETRY_AFTER_S,
        description=f"an integer from 0 to {_MAX_RETRY_AFTER_S}",
    )
    processed: bool | None = Field(None, description="true or false")

    def contradiction(self) -> str | None:
        """The field that does not fit the fault, in a sentence, or None."""
        if self.retry_after_s is not None and self.fault.status != 429:
            return "retry_after_s is only for fault.status 429: leave it out"
        if self.processed is not None and not any(
            getattr(self.fault, loss) for loss in AnswerFault
        ):
            return f"processed is only for {', '.join(AnswerFault)}: leave it out"
        return super().contradiction()
