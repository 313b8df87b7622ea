"""What a user does by hand under `/_sandbox/`: reset, settle, resend, empty the journal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.callbacks import callbacks
from sandbox_sim.domain.callbacks.callbacks import CallbackView
from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.domain.networks.attempts import IllegalSettlement
from sandbox_sim.domain.payments import transactions
from sandbox_sim.domain.payments.transactions import Status, TransactionView
from sandbox_sim.gateway.control.manual_actions import ManualActions
from sandbox_sim.gateway.control.record_ids import RecordIds
from sandbox_sim.gateway.control.record_search import Records
from sandbox_sim.http_addresses import EXPECTED
from sandbox_sim.web.api.address_fields import WebAddress
from sandbox_sim.web.control.errors import (
    ALREADY_DECIDED,
    AMBIGUOUS,
    BAD_REQUEST,
    NOT_FOUND,
    PRODUCTION,
    error_response,
)
from sandbox_sim.web.control.input_models import (
    LARGEST_INTEGER,
    SERVICE_ID,
    Deleted,
    Input,
    ServiceQuery,
)
from sandbox_sim.web.control.records import (
    TRANSACTION,
    TRANSACTION_OF_SERVICE,
    no_such,
    service_of,
)
from sandbox_sim.web.control.status_words import StatusWord, worded
from sandbox_sim.web.routes import Answer, Body, Query, Route

if TYPE_CHECKING:  # serve starts faster without what only production needs
    from sandbox_sim.gateway.networks.manual_actions import LiveActions

_SETTLED: Final = ("000", "001", "003")


class ResetBody(Input):
    """The body of `reset`: one service; without it all are reset."""

    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)


class SettleBody(Input):
    """The body of `settle`."""

    status: Annotated[str, StatusWord] = Field(
        pattern=f"^({'|'.join(_SETTLED)})$", description=f"one of {worded(_SETTLED)}"
    )


class LiveSettleBody(SettleBody):
    """The body of `settle`; with `reason` and `by` it is for a transaction of mode P."""

    reason: str | None = Field(None, min_length=1, description="why, in words, for mode P")
    by: str | None = Field(None, min_length=1, description="the name of who decides, for mode P")


class ResendBody(Input):
    """The body of `resend`; without `url` the callback goes where it went before."""

    url: WebAddress | None = Field(None, description=EXPECTED)


class WasReset(TypedDict):
    """The service that was reset; null for all."""

    service_id: int | None


class ManualActionRoutes:
    """Changes what the gateway has done."""

    def __init__(
        self,
        records: Records,
        ids: RecordIds,
        manual_actions: ManualActions,
        live: "LiveActions | None" = None,
    ) -> None:
        self._records = records
        self._live = live
        self._ids = ids
        self._manual_actions = manual_actions

    def routes(self) -> Sequence[Route]:
        """The routes of actions."""
        return [
            Route(
                "POST", "/_sandbox/reset", self.reset,
                "forget everything that was done, for one service or for all",
                "Reset", (Answer(WasReset),), body=Body(ResetBody, optional=True),
            ),
            Route(
                "DELETE", "/_sandbox/requests", self.clear_requests,
                "empty the journal, of one service or of all, but for requests of mode P",
                "Requests", (Answer(Deleted),), query=Query(ServiceQuery),
            ),
            Route(
                "POST", f"{TRANSACTION}/settle", self.settle,
                "decide a pending transaction now and send its callback",
                "Transactions", (Answer(TransactionView),), body=Body(LiveSettleBody),
                errors=(BAD_REQUEST, NOT_FOUND, ALREADY_DECIDED, AMBIGUOUS, PRODUCTION),
            ),
            Route(
                "POST", f"{TRANSACTION_OF_SERVICE}/settle", self.settle,
                "decide a pending transaction of a service now and send its callback",
                "Transactions", (Answer(TransactionView),), body=Body(LiveSettleBody),
                errors=(BAD_REQUEST, NOT_FOUND, ALREADY_DECIDED, PRODUCTION),
            ),
            Route(
                "POST", "/_sandbox/callbacks/{id}/resend", self.resend,
                "send a callback once more, now",
                "Callbacks", (Answer(CallbackView, 202),), body=Body(ResendBody, optional=True),
                errors=(NOT_FOUND, AMBIGUOUS),
            ),
        ]  # fmt: skip

    async def reset(self, _request: web.Request, asked: ResetBody) -> WasReset:
        """Forget everything that was done for one service, or for all."""
        await self._manual_actions.reset(asked.service_id)
        return {"service_id": asked.service_id}

    async def clear_requests(self, _request: web.Request, asked: ServiceQuery) -> Deleted:
        """Empty the journal, of the service in the query if there is one; mode P stays."""
        return {"deleted": await self._records.clear_requests(asked.service_id)}

    async def settle(
        self, request: web.Request, asked: LiveSettleBody
    ) -> TransactionView | web.Response:
        """Decide a pending transaction now; HTTP 409 for one that is decided.

        With `reason` or `by` it is one of mode P, which needs both; else one of mode S goes first.
        """
        if asked.reason is not None or asked.by is not None:
            return await self._settle_live(request, asked)
        name = request.match_info["id"]
        found: Any = await self._ids.transaction(name, service_of(request))
        if found is None:
            return await self._settle_live(request, asked)
        ids = found["service_id"], found["network_transaction_id"]
        settled = await self._manual_actions.settle(*ids, Status(asked.status))
        if settled is None:
            return no_such("transactions", name)
        if not settled.was_pending:
            text = f"the transaction has status {settled.transaction.status} and keeps it"
            return error_response(ALREADY_DECIDED, text)
        return transactions.shown(settled.transaction)

    async def _settle_live(
        self, request: web.Request, asked: LiveSettleBody
    ) -> TransactionView | web.Response:
        name, service_id = request.match_info["id"], service_of(request)
        found: Any = await self._ids.transaction(name, service_id, ServiceMode.PRODUCTION)
        network_id = name if found is None else found["network_transaction_id"]
        if found is None and (self._live is None or not await self._live.knows(name, service_id)):
            return no_such("transactions", name)
        if not (asked.reason or "").strip() or not (asked.by or "").strip():
            text = f"transaction {name} is of mode P: say why in reason and who decides in by"
            return error_response(BAD_REQUEST, text)
        if self._live is None:
            return error_response(PRODUCTION, "Production is off, so nothing of mode P is settled")
        from sandbox_sim.gateway.networks.manual_actions import Decision  # noqa: PLC0415 -- only here

        decision = Decision(Status(asked.status), str(asked.by), str(asked.reason))
        try:
            settled = await self._live.settle(network_id, decision)
        except IllegalSettlement as refused:
            return error_response(ALREADY_DECIDED, str(refused))
        if settled is None:
            return no_such("transactions", name)
        return transactions.shown(settled)

    async def resend(self, request: web.Request, asked: ResendBody) -> CallbackView | web.Response:
        """Send a callback once more, now; its attempts show the result."""
        name = request.match_info["id"]
        found = await self._ids.callback(name)
        callback = found and await self._manual_actions.resend(str(found["id"]), asked.url)
        return callbacks.shown(callback) if callback else no_such("callbacks", name)
