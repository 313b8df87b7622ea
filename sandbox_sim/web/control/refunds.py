"""`/_sandbox/transactions/…/refund`: gives the money of a collection back. Source: D45, D44."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Final, Literal

from aiohttp import web
from pydantic import Field

from sandbox_sim.control.record_search import RecordIds
from sandbox_sim.payments.refunds import CollectionKey, RefundOrder, Refunds
from sandbox_sim.ports import Clock
from sandbox_sim.records.transactions import TransactionView, shown
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.values.vocabulary import MAX_IDENTIFIER, MAX_REFERENCE
from sandbox_sim.web.control import errors
from sandbox_sim.web.control.errors import RequestRefused
from sandbox_sim.web.control.input import Input, Name
from sandbox_sim.web.control.records import no_such, service_of, transaction_routes
from sandbox_sim.web.routes import Answer, Body, Route
from sandbox_sim.web.transport.requests import PublicAddress

# Not blank: a decision without a name or a reason is invalid (D44).
_SAID: Final = r"^[^\x00]*[^\s\x00][^\x00]*$"

_MOST_DIGITS: Final = 30


class RefundBody(Input):
    """The body of `refund`."""

    by: str = Field(
        max_length=MAX_IDENTIFIER,
        pattern=_SAID,
        description=f"the name of the person who refunds, at most {MAX_IDENTIFIER} characters",
    )
    reason: str = Field(
        max_length=MAX_REFERENCE,
        pattern=_SAID,
        description=f"the reason, at most {MAX_REFERENCE:,} characters",
    )
    amount: Annotated[Decimal, Field(gt=0, max_digits=_MOST_DIGITS)] | None = Field(
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
class RefundRoutes:
    """Refunds collections of both modes."""

    ids: RecordIds
    refunds: Refunds
    clock: Clock
    public_address: PublicAddress

    def routes(self) -> Sequence[Route]:
        return transaction_routes(
            self.refund, "refund a collection{}, or a part of it, to its payer",
            (Answer(RefundView),), Body(RefundBody),
            (errors.BAD_REQUEST, errors.NOT_FOUND, errors.NOT_REFUNDED,
             errors.AMBIGUOUS, errors.PRODUCTION),
        )  # fmt: skip

    async def refund(self, request: web.Request, asked: RefundBody) -> RefundView:
        """Refund a collection; HTTP 409 if that is not possible."""
        name, service_id = request.match_info["id"], service_of(request)
        modes = [each for each in ServiceMode if asked.mode in {None, each.value}]
        named: list[Any] = [await self.ids.transaction(name, service_id, mode) for mode in modes]
        found = [each for each in named if each is not None]
        if not found:
            raise no_such("transactions", name)
        if len(found) > 1:
            text = f"{name!r} fits a transaction of each mode: name it in mode, S or P"
            raise RequestRefused(errors.AMBIGUOUS, text)
        (view,) = found
        mode = ServiceMode(view["mode"])
        if not self.refunds.serves(mode):
            text = "Production mode is off, so payments of mode P cannot be refunded"
            raise RequestRefused(errors.PRODUCTION, text)
        key = CollectionKey(view["service_id"], view["network_transaction_id"], mode)
        by, reason = redact_text(asked.by.strip()), redact_text(asked.reason.strip())
        order = RefundOrder(by, reason, asked.amount, asked.transaction_id)
        made = await self.refunds.refund(key, order, partial(self.public_address, request))
        return {**shown(made.transaction, self.clock.now()), "said": made.said}
