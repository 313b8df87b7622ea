"""Decides pending transactions by hand, under `/_sandbox/transactions`. Source: D31, D39."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired

from aiohttp import web
from pydantic import Field

from sandbox_sim.control.manual_actions import ManualActions
from sandbox_sim.control.record_search import RecordIds
from sandbox_sim.ports import Clock
from sandbox_sim.records import transactions
from sandbox_sim.records.transactions import Status, TransactionView
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.values.vocabulary import MAX_IDENTIFIER
from sandbox_sim.web.control import errors
from sandbox_sim.web.control.errors import RequestRefused
from sandbox_sim.web.control.input import (
    AN_AMOUNT,
    AmountText,
    Input,
    Name,
    StatusWord,
    WhoAndWhy,
    worded,
)
from sandbox_sim.web.control.records import no_such, service_of, transaction_routes
from sandbox_sim.web.routes import Answer, Body, Route

if TYPE_CHECKING:
    from sandbox_sim.production.manual_actions import LiveActions

_SETTLED: Final = ("000", "001", "003")


class SettleBody(Input):
    """The body of `settle`.

    status: how the transaction ends.
    """

    status: Annotated[str, StatusWord] = Field(
        pattern=f"^({'|'.join(_SETTLED)})$", description=f"one of {worded(_SETTLED)}"
    )


class LiveSettleBody(SettleBody, WhoAndWhy):
    """The body of `settle`; with `reason` and `by` it is for a transaction of mode P."""

    force: bool = Field(
        default=False, description="true to settle even if the network contradicts it, for mode P"
    )
    amount: AmountText | None = Field(
        None, description=f"what the network confirmed, {AN_AMOUNT}, for mode P"
    )
    network_id: Name | None = Field(
        None,
        min_length=1,
        description=f"the network's own identifier, of at most {MAX_IDENTIFIER} characters, for "
        "mode P",
    )

    @property
    def is_live(self) -> bool:
        """Whether one of the fields for mode P is set."""
        live = self.reason, self.by, self.amount, self.network_id
        return any(each is not None for each in live)


class SettledView(TransactionView):
    """A transaction after `settle`."""

    network_said: NotRequired[
        Annotated[str, "of mode P: what its network answered just before, in words"]
    ]


@dataclass(frozen=True, eq=False)
class SettleRoutes:
    """Settles transactions by hand. live: settles those of mode P; None if production is off."""

    ids: RecordIds
    manual_actions: ManualActions
    clock: Clock
    live: "LiveActions | None" = None

    def routes(self) -> Sequence[Route]:
        return transaction_routes(
            self.settle, "decide a pending transaction{} now and send its callback",
            (Answer(SettledView),), Body(LiveSettleBody),
            (errors.BAD_REQUEST, errors.NOT_FOUND, errors.ALREADY_DECIDED,
             errors.FORCE_NEEDED, errors.PRODUCTION),
        )  # fmt: skip

    async def settle(self, request: web.Request, asked: LiveSettleBody) -> TransactionView:
        """Decide a pending transaction now; HTTP 409 if it has been decided.

        With a field for mode P, only a transaction of mode P; else one of mode S is preferred.
        """
        if asked.is_live:
            return await self._settle_live(request, asked)
        name = request.match_info["id"]
        found: Any = await self.ids.transaction(name, service_of(request))
        if found is None:
            return await self._settle_live(request, asked)
        ids = found["service_id"], found["network_transaction_id"]
        settled = await self.manual_actions.settle(*ids, Status(asked.status))
        if settled is None:
            raise no_such("transactions", name)
        if not settled.was_pending:
            text = f"the transaction already has the final status {settled.transaction.status}"
            raise RequestRefused(errors.ALREADY_DECIDED, text)
        return transactions.shown(settled.transaction, self.clock.now())

    async def _settle_live(self, request: web.Request, asked: LiveSettleBody) -> SettledView:
        name, service_id = request.match_info["id"], service_of(request)
        found: Any = await self.ids.transaction(name, service_id, ServiceMode.PRODUCTION)
        network_id = name if found is None else found["network_transaction_id"]
        if found is None and (self.live is None or not await self.live.knows(name, service_id)):
            raise await self._not_live(name, service_id)
        if not (asked.reason or "").strip() or not (asked.by or "").strip():
            text = f"transaction {name} is of mode P: set reason, and by to your name"
            raise RequestRefused(errors.BAD_REQUEST, text)
        if self.live is None:
            text = "Production mode is off, so payments of mode P cannot be settled"
            raise RequestRefused(errors.PRODUCTION, text)
        from sandbox_sim.production.manual_actions import Decision  # noqa: PLC0415 -- only here

        by, reason = redact_text(str(asked.by)), redact_text(str(asked.reason))
        decision = Decision(
            Status(asked.status),
            by,
            reason,
            force=asked.force,
            amount=None if asked.amount is None else Decimal(asked.amount),
            network_id=redact_text(asked.network_id or ""),
        )
        settled = await self.live.settle(network_id, decision)
        if settled is None:
            raise no_such("transactions", name)
        shown = transactions.shown(settled.transaction, self.clock.now())
        return {**shown, "network_said": settled.network_said}

    async def _not_live(self, name: str, service_id: int | None) -> RequestRefused:
        """The refusal of fields for mode P, if no transaction of mode P has this id."""
        if await self.ids.transaction(name, service_id) is None:
            return no_such("transactions", name)
        text = (
            f"transaction {name} is of mode S: leave out reason, by, amount and network_id, which "
            "are for mode P"
        )
        return RequestRefused(errors.BAD_REQUEST, text)
