"""Overrides as they are posted to `/_sandbox/overrides`. Source: docs/control-api.md."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.control.overrides import (
    MAX_DELAY_MS,
    MAX_DELIVERIES,
    Override,
    contradiction,
    parse_override,
)
from sandbox_sim.domain.control.user_rules import UserRuleView
from sandbox_sim.domain.payments.transactions import Status
from sandbox_sim.domain.response_codes import CATALOGUE
from sandbox_sim.web.control.input_models import Input
from sandbox_sim.web.control.status_words import StatusWord, worded
from sandbox_sim.web.control.user_rules import UserRuleBody

_CODE = f"one of {', '.join(CATALOGUE)}"
_DELAY = f"an integer of milliseconds from 0 to {MAX_DELAY_MS}"
_SWITCH = "true or false"
_CODES = f"^({'|'.join(CATALOGUE)})$"


class OutcomeBody(Input):
    """The answer to the request, and the status that the transaction ends with."""

    status: Annotated[Status | None, StatusWord] = Field(
        None, description=f"one of {worded(Status)}"
    )
    response_code: str | None = Field(None, pattern=_CODES, description=_CODE)

    @model_validator(mode="before")
    @classmethod
    def _older_name(cls, document: Any) -> Any:
        """Take `code`, the older name of `response_code`, unless both are there."""
        if not isinstance(document, dict) or "response_code" in document:
            return document
        return {"response_code" if name == "code" else name: document[name] for name in document}


class BehaviourBody(Input):
    """How the callback behaves."""

    drop: bool = Field(False, description=_SWITCH)
    duplicate: int | None = Field(
        None, ge=2, le=MAX_DELIVERIES, description=f"an integer from 2 to {MAX_DELIVERIES}"
    )
    delay_ms: int = Field(0, ge=0, le=MAX_DELAY_MS, description=_DELAY)
    reorder: bool = Field(False, description=_SWITCH)
    bad_signature: bool = Field(False, description=_SWITCH)
    profile: Profile | None = Field(None, description=f"one of {', '.join(Profile)}")
    before_response: bool = Field(False, description=_SWITCH)


class OverrideView(UserRuleView):
    """An override as the control API shows it."""

    outcome: dict[str, str]
    delay_ms: int
    callback: dict[str, Any]


class OverrideBody(UserRuleBody):
    """The body that adds an override: the requests that it applies to, and their outcome."""

    outcome: OutcomeBody = Field(
        OutcomeBody(), description="an object with status or response_code"
    )
    delay_ms: int = Field(0, ge=0, le=MAX_DELAY_MS, description=_DELAY)
    callback: BehaviourBody = Field(
        BehaviourBody(), description=f"an object with {', '.join(BehaviourBody.model_fields)}"
    )

    def contradiction(self) -> str | None:
        """What contradicts itself or the operation that is named, in a sentence; else None."""
        asked = contradiction(self._override(), self.match.operation)
        return asked or super().contradiction()

    def effect(self) -> dict[str, Any]:
        """The outcome, as `domain.control.overrides` reads it."""
        effect = self._override().shown()
        del effect["id"]
        return effect

    def _override(self) -> Override:
        outcome = self.outcome.model_dump(mode="json", exclude_none=True)
        manner = self.callback.model_dump(mode="json", exclude_defaults=True)
        return parse_override(
            {"id": "", "outcome": outcome, "delay_ms": self.delay_ms, "callback": manner}
        )
