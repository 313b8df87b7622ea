"""The ledger under `/_sandbox/ledger`: postings, balances, and SMS units topped up. Source: D22."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal, NotRequired, TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.double_entry.entries import BookLine, BookQuery, Reason
from sandbox_sim.domain.json_text import plain_decimal
from sandbox_sim.domain.ledger import REASONS, Account, Audit, LedgerQuery, PostingView, shown
from sandbox_sim.domain.timestamps import Timestamp, iso
from sandbox_sim.gateway.ledger.ledger_control import Ledger
from sandbox_sim.gateway.ledger.live_ledger import BookState, LiveLedger
from sandbox_sim.web.control.errors import PRODUCTION, error_response
from sandbox_sim.web.control.input_models import (
    LARGEST_INTEGER,
    SERVICE_ID,
    Input,
    ListQuery,
    QueryServiceId,
)
from sandbox_sim.web.control.input_parsing import BadInput
from sandbox_sim.web.routes import Answer, Body, Query, Route

if TYPE_CHECKING:
    from sandbox_sim.gateway.networks.manual_actions import LiveActions

MAX_TOPUP = 1_000_000_000


class Topup(Input):
    """The body of `POST ledger/topup`."""

    service_id: int = Field(gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    units: int = Field(gt=0, le=MAX_TOPUP, description=f"an integer from 1 to {MAX_TOPUP}")
    mode: Literal["S", "P"] = Field("S", description="the service mode, S or P")
    account: Literal["sms", "airtime"] = Field(
        "sms", description="sms, or airtime, which is for mode P only"
    )


# The reasons of both modes.
_REASONS: Final = tuple(dict.fromkeys((*REASONS, *map(str, Reason))))


class LedgerListQuery(ListQuery):
    """The query of `GET ledger`; `service_id`, `account`, `reason` and `subject` are filters."""

    mode: Literal["S", "P"] | None = Field(None, description="the service mode, S or P")
    service_id: QueryServiceId | None = Field(None, description=SERVICE_ID)
    account: Account | None = Field(None, strict=False, description=f"one of {', '.join(Account)}")
    reason: Literal[_REASONS] | None = Field(  # type: ignore[valid-type]
        None, description=f"one of {', '.join(_REASONS)}"
    )
    # NUL is refused because no database takes it.
    subject: str | None = Field(
        None,
        pattern=r"^[^\x00]*$",
        description="the id of a transaction, a send or a batch, without NUL",
    )

    def query(self) -> LedgerQuery:
        """The query for the ledger."""
        return LedgerQuery(
            service_id=self.service_id,
            account=self.account,
            reason=self.reason,
            subject=self.subject,
            after=self.after,
            limit=self.page_size,
        )


class NumberedPosting(PostingView):
    """A posting under the number that the store gave it."""

    id: int


class LivePosting(TypedDict):
    """A posting of mode P: what an entry does to one account."""

    id: int
    mode: Literal["P"]
    entry: Annotated[int, "postings of one entry happen together"]
    service_id: Annotated[int, "0 where the account is of no service"]
    account: Annotated[str, "the name of the account"]
    amount: Annotated[str, "a decimal"]
    reason: Annotated[str, Reason]
    subject: str
    at: Timestamp


class LiveBalance(TypedDict):
    """The balance of an account of mode P."""

    account: str
    balance: Annotated[str, "a decimal"]


class ViolationView(TypedDict):
    """A rule of the ledger that does not hold, and what breaks it."""

    rule: str
    detail: str


class LiveBooks(TypedDict):
    """The books of mode P, and whether the rules of the ledger hold."""

    balances: list[LiveBalance]
    agrees: Annotated[
        bool,
        "every entry is balanced, every asset sums to zero, nothing is below zero that may not be, "
        "what is held is the sum of open holds, every balance is the sum of its postings",
    ]
    violations: list[ViolationView]
    postings_checked: int


class BalanceView(TypedDict):
    """A balance beside the sum of all postings of its account."""

    service_id: int
    account: Annotated[str, Account]
    balance: str
    sum_of_postings: str
    agrees: Annotated[bool, "whether the two are the same"]


class LedgerPage(TypedDict):
    """A page of postings, newest first; the first page also has the balances."""

    postings: list[NumberedPosting | LivePosting]
    next: Annotated[int | None, "the value of `after` for the next page; null on the last one"]
    balances: NotRequired[list[BalanceView]]
    agrees: NotRequired[Annotated[bool, "whether every balance is the sum of its postings"]]
    live: NotRequired[Annotated[LiveBooks, "in production: the books of mode P"]]


class ToppedUp(TypedDict):
    """What a service has after a top-up, of the account that was topped up."""

    service_id: int
    mode: NotRequired[Annotated[Literal["P"], "left out in mode S"]]
    sms_balance: NotRequired[int]
    airtime_balance: NotRequired[Annotated[str, "a decimal"]]


class LedgerRoutes:
    """The accounts of every service."""

    def __init__(
        self, ledger: Ledger, live: "LiveActions | None" = None, books: LiveLedger | None = None
    ) -> None:
        self._ledger = ledger
        self._live = live
        self._books = books

    def routes(self) -> Sequence[Route]:
        """The routes of the ledger."""
        route = partial(Route, group="Ledger")
        return [
            route(
                "GET", "/_sandbox/ledger", self.list, "list postings and balances",
                answers=(Answer(LedgerPage),), query=Query(LedgerListQuery),
            ),
            route(
                "POST", "/_sandbox/ledger/topup", self.topup, "add SMS units to a service",
                answers=(Answer(ToppedUp),), body=Body(Topup),
                errors=(PRODUCTION,),
            ),
        ]  # fmt: skip

    async def topup(self, _request: web.Request, asked: Topup) -> ToppedUp | web.Response:
        """Add SMS units to a service, or airtime in mode P; answer with what it has then."""
        if asked.mode == "S":
            if asked.account != "sms":
                raise BadInput("account airtime is for mode P: in mode S airtime is not topped up")
            balance = await self._ledger.topup(asked.service_id, asked.units)
            return {"service_id": asked.service_id, "sms_balance": balance}
        if self._live is None:
            return error_response(PRODUCTION, "Production is off, so nothing of mode P is added")
        available = await self._live.topup(asked.service_id, Account(asked.account), asked.units)
        of_service: ToppedUp = {"service_id": asked.service_id, "mode": "P"}
        if asked.account == "sms":
            return {**of_service, "sms_balance": int(available)}
        return {**of_service, "airtime_balance": plain_decimal(available)}

    async def list(self, _request: web.Request, asked: LedgerListQuery) -> LedgerPage:
        """List postings, newest first; the first page also has the balances.

        Amounts are plain decimals in strings, GHS or SMS units. `balances` are those of the
        service in the query, or of all services, whatever the other filters are. With `mode=P` the
        postings are those of mode P. In production the first page also has `live`, the books.
        """
        if asked.mode == "P":
            return await self._live_page(asked)
        if asked.reason is not None and asked.reason not in REASONS:
            raise BadInput(f"reason {asked.reason} is for mode P")
        page = await self._ledger.page(asked.query())
        answer: LedgerPage = {
            "postings": [{"id": line.number, **shown(line.posting)} for line in page.lines],
            "next": page.next,
        }
        if page.audits is not None:
            answer["balances"] = [_balance_view(audit) for audit in page.audits]
            answer["agrees"] = all(audit.agrees for audit in page.audits)
        if asked.after is None and asked.mode is None and self._books is not None:
            answer["live"] = _books_view(await self._books.check(), asked.service_id)
        return answer

    async def _live_page(self, asked: LedgerListQuery) -> LedgerPage:
        if self._books is None:
            return {"postings": [], "next": None}
        if asked.reason is not None and asked.reason not in set(Reason):
            raise BadInput(f"reason {asked.reason} is for mode S")
        reason = None if asked.reason is None else Reason(asked.reason)
        filters = asked.service_id, asked.account, reason, asked.subject
        found = await self._books.page(BookQuery(*filters, asked.after, asked.page_size + 1))
        lines = found[: asked.page_size]
        answer: LedgerPage = {
            "postings": [_live_posting(each) for each in lines],
            "next": lines[-1].number if len(found) > len(lines) else None,
        }
        if asked.after is None:
            answer["live"] = _books_view(await self._books.check(), asked.service_id)
        return answer


def _live_posting(line: BookLine) -> LivePosting:
    return {
        "id": line.number,
        "mode": "P",
        "entry": line.entry,
        "service_id": line.account.service_id,
        "account": str(line.account),
        "amount": plain_decimal(line.amount),
        "reason": line.reason.value,
        "subject": line.subject,
        "at": iso(line.at),
    }


def _books_view(state: BookState, service_id: int | None) -> LiveBooks:
    """The balances of one service, or of all accounts; the check is always of all."""
    return {
        "balances": [
            {"account": str(account), "balance": plain_decimal(balance)}
            for account, balance in state.balances.items()
            if service_id in {None, account.service_id}
        ],
        "agrees": not state.violations,
        "violations": [{"rule": each.rule, "detail": each.detail} for each in state.violations],
        "postings_checked": state.lines,
    }


def _balance_view(audit: Audit) -> BalanceView:
    return {
        "service_id": audit.service_id,
        "account": audit.account.value,
        "balance": plain_decimal(audit.balance),
        "sum_of_postings": plain_decimal(audit.sum_of_postings),
        "agrees": audit.agrees,
    }
