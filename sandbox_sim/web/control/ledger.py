"""The ledger under `/_sandbox/ledger`: postings, balances, and SMS units topped up. Source: D22."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal, NotRequired, TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.ledger.books import Books
from sandbox_sim.ledger.ledger_control import Ledger
from sandbox_sim.records.ledger import (
    Account,
    Balance,
    LedgerQuery,
    NumberedPosting,
    Reason,
    shown_line,
)
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.json_text import plain_decimal
from sandbox_sim.values.vocabulary import Wallet
from sandbox_sim.web.control.errors import PRODUCTION, RequestRefused
from sandbox_sim.web.control.input import (
    LARGEST_INTEGER,
    SERVICE_ID,
    BadInput,
    ListQuery,
    QueryServiceId,
    SignedInput,
    Text,
)
from sandbox_sim.web.routes import Answer, Body, Query, Route

MAX_TOPUP = 1_000_000_000


class Topup(SignedInput):
    """The body of `POST ledger/topup`; mode P also takes who adds the units, and why.

    units: how many to add.
    account: what they are added to.
    """

    service_id: int = Field(gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    units: int = Field(gt=0, le=MAX_TOPUP, description=f"an integer from 1 to {MAX_TOPUP}")
    mode: Literal["S", "P"] = Field("S", description="the service mode, S or P")
    account: Literal["sms", "airtime"] = Field(
        "sms", description="sms, or airtime, which is for mode P only"
    )


class LedgerListQuery(ListQuery):
    """The query of `GET ledger`; all but `limit`, `after` and `audit` are filters.

    account: the wallet.
    audit: whether to add up the whole ledger, which may take a while.
    """

    mode: Literal["S", "P"] | None = Field(None, description="the service mode, S or P")
    service_id: QueryServiceId | None = Field(None, description=SERVICE_ID)
    account: Wallet | None = Field(None, strict=False, description=f"one of {', '.join(Wallet)}")
    reason: Reason | None = Field(None, strict=False, description=f"one of {', '.join(Reason)}")
    subject: Text | None = Field(
        None, description="the id of a transaction, a send or a batch, without NUL characters"
    )
    audit: Literal["true", "false"] = Field("false", description="true or false")

    def query(self) -> LedgerQuery:
        filters = self.model_dump(exclude={"mode", "limit", "audit"})
        return LedgerQuery(**filters, limit=self.page_size, mode=self.service_mode)

    @property
    def service_mode(self) -> ServiceMode | None:
        """The mode that is asked for; None for both."""
        return None if self.mode is None else ServiceMode(self.mode)


class WalletView(TypedDict):
    """The balance of a wallet."""

    mode: Annotated[str, ServiceMode]
    service_id: int
    account: Annotated[str, Wallet, "the wallet"]
    asset: Annotated[str, "a currency, SMS or AIRTIME"]
    balance: Annotated[str, "a decimal: what is available and what is pending"]
    pending: Annotated[str, "what open payments have set aside, in mode P"]
    available: Annotated[str, "what can be spent"]


class OurAccountView(TypedDict):
    """The balance of an account of the gateway."""

    account: Annotated[str, "its name, such as network/mtn/clearing/GHS"]
    balance: Annotated[str, "a decimal: what was credited less what was debited"]


class ViolationView(TypedDict):
    """A rule of the ledger that is broken, and by what."""

    rule: Annotated[str, "what must hold"]
    detail: Annotated[str, "where it does not"]


class LedgerView(TypedDict):
    """A page of postings, newest first; the first page also has the balances."""

    postings: Annotated[list[NumberedPosting], "newest first"]
    next: Annotated[int | None, "the value of `after` for the next page; null on the last one"]
    balances: NotRequired[Annotated[list[WalletView], "on the first page"]]
    accounts: NotRequired[
        Annotated[list[OurAccountView], "in production: the accounts of the gateway, in mode P"]
    ]
    agrees: NotRequired[Annotated[bool, "with audit=true: whether every rule of the ledger holds"]]
    violations: NotRequired[Annotated[list[ViolationView], "with audit=true: what does not hold"]]
    postings_checked: NotRequired[Annotated[int, "with audit=true: how many were added up"]]


class ToppedUp(TypedDict):
    """The balance of the account that was topped up."""

    service_id: int
    mode: NotRequired[Annotated[Literal["P"], "left out in mode S"]]
    sms_balance: NotRequired[int]
    airtime_balance: NotRequired[Annotated[str, "a decimal"]]


class LedgerRoutes:
    """The routes of the ledger. books: None if production is off."""

    def __init__(self, ledger: Ledger, books: Books | None) -> None:
        self._ledger = ledger
        self._books = books

    def routes(self) -> Sequence[Route]:
        route = partial(Route, group="Ledger")
        return [
            route(
                "GET", "/_sandbox/ledger", self.list, "list postings and balances",
                answers=(Answer(LedgerView),), query=Query(LedgerListQuery),
            ),
            route(
                "POST", "/_sandbox/ledger/topup", self.topup, "add SMS units to a service",
                answers=(Answer(ToppedUp),), body=Body(Topup),
                errors=(PRODUCTION,),
            ),
        ]  # fmt: skip

    async def topup(self, _request: web.Request, asked: Topup) -> ToppedUp:
        """Add SMS units to a service, or airtime in mode P; answer with the new balance."""
        if asked.mode == "S":
            if asked.account != "sms":
                raise BadInput("account airtime is for mode P: in mode S airtime is not topped up")
            if asked.by is not None or asked.reason is not None or asked.reference:
                raise BadInput("by, reason and reference are for mode P")
            balance = await self._ledger.topup(asked.service_id, asked.units)
            return {"service_id": asked.service_id, "sms_balance": balance}
        if self._books is None:
            raise RequestRefused(
                PRODUCTION, "Production mode is off, so nothing can be topped up in mode P"
            )
        wallet = Wallet(asked.account)
        available = await self._books.topup(asked.service_id, wallet, asked.units, asked.signed)
        of_service: ToppedUp = {"service_id": asked.service_id, "mode": "P"}
        if asked.account == "sms":
            return {**of_service, "sms_balance": int(available)}
        return {**of_service, "airtime_balance": plain_decimal(available)}

    async def list(self, _request: web.Request, asked: LedgerListQuery) -> LedgerView:
        """List postings, newest first; the first page also has the balances.

        A posting is the part of a transfer that concerns one wallet. Amounts are plain decimals in
        strings, in the currency of the wallet (in mode S GHS) or in SMS units. Of the filters, only
        mode and service apply to `balances`. With `audit=true` the whole ledger is added up, and
        the answer says whether every rule holds.
        """
        page = await self._ledger.page(asked.query())
        answer: LedgerView = {
            "postings": [shown_line(each) for each in page.lines],
            "next": page.next,
        }
        if asked.after is None:
            found = await self._ledger.balances(asked.service_mode, asked.service_id)
            answer["balances"] = [_wallet_view(*each) for each in found.wallets.items()]
            if found.ours:
                answer["accounts"] = [
                    {"account": str(account), "balance": plain_decimal(amount)}
                    for account, amount in found.ours.items()
                ]
        if asked.audit == "true":
            violations, lines = await self._ledger.audit()
            answer["agrees"] = not violations
            answer["violations"] = [{"rule": rule, "detail": text} for rule, text in violations]
            answer["postings_checked"] = lines
        return answer


def _wallet_view(account: Account, balance: Balance) -> WalletView:
    return {
        "mode": account.mode.value,
        "service_id": account.service_id,
        "account": "" if account.wallet is None else account.wallet.value,
        "asset": account.asset,
        "balance": plain_decimal(balance.amount),
        "pending": plain_decimal(balance.pending),
        "available": plain_decimal(balance.available),
    }
