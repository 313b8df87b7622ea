"""Faults as they are posted to `/_sandbox/faults`. Source: docs/control-api.md."""

from typing import Annotated, Any, Final, Literal, NotRequired, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from sandbox_sim.domain.control.faults import FAULT_STATUSES, MAX_LATENCY_S, AnswerFault
from sandbox_sim.domain.control.user_rules import UserRuleView
from sandbox_sim.web.control.input_models import Input
from sandbox_sim.web.control.user_rules import UserRuleBody

_MOST_MS: Final = MAX_LATENCY_S * 1000
_MOST_RETRY_AFTER_S: Final = 86_400
_MOST_SIGMA: Final = 10
_MOST_EVERY: Final = 1_000_000
_MS: Final = f"a number from 0 to {_MOST_MS}"

Milliseconds = Annotated[float, Field(ge=0, le=_MOST_MS, allow_inf_nan=False)]
Yes = Literal[True]


def _wrong() -> PydanticCustomError:
    """An error without a text of its own: the description of the field says what is wanted."""
    return PydanticCustomError("wrong", "is wrong")


def _rising(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise _wrong()
    return bounds


class OneOf(Input):
    """An object that has exactly one of its fields."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if len(self.model_dump(exclude_none=True)) != 1:
            raise _wrong()
        return self

    @classmethod
    def described(cls) -> str:
        """The description of a field that holds one."""
        return f"an object with exactly one of {', '.join(cls.model_fields)}"


class Lognormal(Input):
    """Half of the answers take longer than the median."""

    median: Milliseconds = Field(description=_MS)
    sigma: float = Field(
        ge=0, le=_MOST_SIGMA, allow_inf_nan=False, description=f"a number from 0 to {_MOST_SIGMA}"
    )


class Latency(OneOf):
    """How long an answer is held back, in milliseconds of real time."""

    fixed_ms: Milliseconds | None = Field(None, description=_MS)
    uniform_ms: Annotated[tuple[Milliseconds, Milliseconds], AfterValidator(_rising)] | None = (
        Field(None, description=f"two numbers, the lower one first, each from 0 to {_MOST_MS}")
    )
    lognormal_ms: Lognormal | None = Field(None, description="an object with median and sigma")


class OneFault(OneOf):
    """What goes wrong; exactly one of these."""

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

    fault: dict[str, Any]
    probability: float
    every: int
    retry_after_s: NotRequired[int]
    processed: NotRequired[bool]


class FaultBody(UserRuleBody):
    """The body that adds a fault."""

    fault: OneFault = Field(description=OneFault.described())
    probability: float = Field(1, ge=0, le=1, description="a number from 0 to 1")
    every: int = Field(1, ge=1, le=_MOST_EVERY, description=f"an integer from 1 to {_MOST_EVERY}")
    retry_after_s: int | None = Field(
        None,
        ge=0,
        le=_MOST_RETRY_AFTER_S,
        description=f"an integer from 0 to {_MOST_RETRY_AFTER_S}",
    )
    processed: bool | None = Field(None, description="true or false")

    def contradiction(self) -> str | None:
        """The field that does not fit the fault, in a sentence; None where all do."""
        if self.retry_after_s is not None and self.fault.status != 429:
            return "retry_after_s goes with fault.status 429 only: leave it out"
        if self.processed is not None and not any(
            getattr(self.fault, loss) for loss in AnswerFault
        ):
            return f"processed goes with {', '.join(AnswerFault)} only: leave it out"
        return super().contradiction()
