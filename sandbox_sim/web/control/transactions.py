"""What a person does with a transaction, under `/_sandbox/transactions`: settle, ask, refund.

`settle` decides a pending one, `ask` asks the network of one of mode P for its outcome now, and
`refund` gives the money of a collection back. Source: D31, D39, D44, D45.
"""

from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired

from aiohttp import web
from pydantic import Field

from sandbox_sim.control.manual_actions import ManualActions
from sandbox_sim.control.record_search import RecordIds
from sandbox_sim.payments.refunds import CollectionKey, RefundOrder, Refunds
from sandbox_sim.ports import Clock
from sandbox_sim.production.attempt_views import LiveRecordReader, TransactionDetails
from sandbox_sim.records.transactions import Status, TransactionView, shown
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.values.vocabulary import MAX_IDENTIFIER, MAX_REFERENCE
from sandbox_sim.web.api.request_models import Identifier, Reference
from sandbox_sim.web.control import errors
from sandbox_sim.web.control.errors import RequestRefused, require_production
from sandbox_sim.web.control.input import (
    AN_AMOUNT,
    AmountText,
    Input,
    Name,
    Nothing,
    StatusWord,
    WhoAndWhy,
    codes_and_words,
)
from sandbox_sim.web.control.records import (
    not_found,
    require_found,
    service_of,
    transaction_route,
)
from sandbox_sim.web.routes import Reply, RouteGroup
from sandbox_sim.web.transport.requests import PublicAddress

if TYPE_CHECKING:
    from sandbox_sim.production.manual_actions import ManualSettlements
    from sandbox_sim.production.status_asking import StatusAsking

_FINAL_STATUSES: Final = ("000", "001", "003")

_MAX_DIGITS: Final = 30


class SettleBody(Input):
    """The body of `settle`.

    status: how the transaction ends.
    """

    status: Annotated[str, StatusWord] = Field(
        pattern=f"^({'|'.join(_FINAL_STATUSES)})$",
        description=f"one of {codes_and_words(_FINAL_STATUSES)}",
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


class AskedView(TransactionDetails):
    """A transaction after its network was asked."""

    network_said: Annotated[str, "what the network answered, in words"]


class RefundBody(Input):
    """The body of `refund`, which has a name and a reason that are not blank (D44)."""

    by: Identifier = Field(
        description=f"the name of the person who refunds, at most {MAX_IDENTIFIER} characters"
    )
    reason: Reference = Field(description=f"the reason, at most {MAX_REFERENCE:,} characters")
    amount: Annotated[Decimal, Field(gt=0, max_digits=_MAX_DIGITS)] | None = Field(
        None, description="a number above 0; by default all that is left"
    )
    transaction_id: Name | None = Field(
        None,
        min_length=1,
        description=(
            f"the id of the refund, of at most {MAX_IDENTIFIER} characters, so that a repeated "
            "request is refused; by default a new one"
        ),
    )
    mode: Literal["S", "P"] | None = Field(
        None, description="S or P, if a collection of each mode has the identifier"
    )


class RefundView(TransactionView):
    """The transaction of a refund, after the answer of the network."""

    said: Annotated[str, "what was answered to the refund, in words"]


@dataclass(frozen=True, eq=False)
class TransactionActionRoutes(RouteGroup):
    """The actions of a person. The last three are of production: None if it is off."""

    ids: RecordIds
    manual_actions: ManualActions
    refunds: Refunds
    clock: Clock
    public_address: PublicAddress
    _: KW_ONLY
    live_actions: "ManualSettlements | None"
    live_records: LiveRecordReader | None
    asking: "StatusAsking | None"

    group = "Transactions"

    @transaction_route("POST {}/settle", "decide a pending transaction{} now and send its callback",
                       errors.ALREADY_DECIDED, errors.FORCE_NEEDED, errors.PRODUCTION,
                       answer=SettledView)  # fmt: skip
    async def settle(self, request: web.Request, body: LiveSettleBody) -> TransactionView:
        """Decide a pending transaction now; HTTP 409 if it has been decided.

        With a field for mode P, only a transaction of mode P; else one of mode S is preferred.
        """
        if body.is_live:
            return await self._settle_live(request, body)
        name = request.match_info["id"]
        found: Any = await self.ids.transaction(name, service_of(request))
        if found is None:
            return await self._settle_live(request, body)
        ids = found["service_id"], found["network_transaction_id"]
        found = await self.manual_actions.settle(*ids, Status(body.status))
        settled = require_found(found, "transactions", name)
        if not settled.was_pending:
            text = f"the transaction already has the final status {settled.transaction.status}"
            raise RequestRefused(errors.ALREADY_DECIDED, text)
        return shown(settled.transaction, self.clock.now())

    async def _settle_live(self, request: web.Request, body: LiveSettleBody) -> SettledView:
        name, service_id = request.match_info["id"], service_of(request)
        found: Any = await self.ids.transaction(name, service_id, ServiceMode.PRODUCTION)
        network_id = name if found is None else found["network_transaction_id"]
        live = self.live_actions
        if found is None and (live is None or not await live.has_attempt(name, service_id)):
            raise await self._not_live_refusal(name, service_id)
        if not (body.reason or "").strip() or not (body.by or "").strip():
            text = f"transaction {name} is of mode P: set reason, and by to your name"
            raise RequestRefused(errors.BAD_REQUEST, text)
        live = require_production(live, "payments of mode P cannot be settled")
        from sandbox_sim.production.manual_actions import Decision  # noqa: PLC0415 -- only here

        by, reason = redact_text(str(body.by)), redact_text(str(body.reason))
        decision = Decision(
            Status(body.status),
            by,
            reason,
            force=body.force,
            amount=None if body.amount is None else Decimal(body.amount),
            network_id=redact_text(body.network_id or ""),
        )
        settled = require_found(await live.settle(network_id, decision), "transactions", name)
        view = shown(settled.transaction, self.clock.now())
        return {**view, "network_said": settled.network_said}

    async def _not_live_refusal(self, name: str, service_id: int | None) -> RequestRefused:
        """The refusal of fields for mode P, if no transaction of mode P has this id."""
        if await self.ids.transaction(name, service_id) is None:
            return not_found("transactions", name)
        text = (
            f"transaction {name} is of mode S: leave out reason, by, amount and network_id, which "
            "are for mode P"
        )
        return RequestRefused(errors.BAD_REQUEST, text)

    @transaction_route("POST {}/ask",
                       "ask the network of a transaction{} of mode P for its outcome now",
                       errors.CANNOT_ASK, answer=AskedView, optional=True)  # fmt: skip
    async def ask(self, request: web.Request, _body: Nothing) -> Reply:
        """Ask now, save the answer of the network, and answer with the transaction."""
        name, service_id = request.match_info["id"], service_of(request)
        found = await self.ids.transaction(name, service_id, ServiceMode.PRODUCTION)
        network_id = name if found is None else str(found["network_transaction_id"])
        if self.asking is not None and self.live_records is not None:
            answer = await self.asking.ask_by_hand(network_id, service_id)
            details = await self.live_records.transaction(network_id, service_id)
            if answer is not None and details is not None:
                return {**details, "network_said": answer}
        if found is None and await self.ids.transaction(name, service_id) is None:
            raise not_found("transactions", name)
        why = (
            "production is off"
            if found is not None
            else "it is of mode S, which no network carries"
        )
        raise RequestRefused(errors.CANNOT_ASK, f"no network can be asked about {name}: {why}")

    @transaction_route("POST {}/refund", "refund a collection{}, or a part of it, to its payer",
                       errors.NOT_REFUNDED, errors.AMBIGUOUS, errors.PRODUCTION)  # fmt: skip
    async def refund(self, request: web.Request, body: RefundBody) -> RefundView:
        """Refund a collection; HTTP 409 if that is not possible."""
        name, service_id = request.match_info["id"], service_of(request)
        modes = [each for each in ServiceMode if body.mode in {None, each.value}]
        named: list[Any] = [await self.ids.transaction(name, service_id, mode) for mode in modes]
        found = [each for each in named if each is not None]
        if not found:
            raise not_found("transactions", name)
        if len(found) > 1:
            text = f"{name!r} fits a transaction of each mode: name it in mode, S or P"
            raise RequestRefused(errors.AMBIGUOUS, text)
        (view,) = found
        mode = ServiceMode(view["mode"])
        if not self.refunds.serves(mode):
            text = "Production mode is off, so payments of mode P cannot be refunded"
            raise RequestRefused(errors.PRODUCTION, text)
        key = CollectionKey(view["service_id"], view["network_transaction_id"], mode)
        by, reason = redact_text(body.by.strip()), redact_text(body.reason.strip())
        order = RefundOrder(by, reason, body.amount, body.transaction_id)
        made = await self.refunds.refund(key, order, partial(self.public_address, request))
        return {**shown(made.transaction, self.clock.now()), "said": made.why}
