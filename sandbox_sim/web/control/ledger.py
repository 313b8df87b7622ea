"""The ledger under `/_sandbox/ledger`: postings, balances, and units topped up. Source: D22.

In mode P also manual entries, and settlement to merchants: close a period, read its statement.
Source: D44.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal, NotRequired, TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.control.record_search import RecordIds
from sandbox_sim.ledger.books import Adjustment, Books, SuspenseItem
from sandbox_sim.ledger.ledger_control import Ledger
from sandbox_sim.ledger.periods import Periods, Statement, StatementLine
from sandbox_sim.records.ledger import (
    Account,
    AccountKind,
    Balance,
    LedgerQuery,
    NumberedPosting,
    Reason,
    shown_line,
)
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.json_text import plain_decimal, viewer
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY, Wallet
from sandbox_sim.web.control.errors import ENTRY_REFUSED, PRODUCTION, require_production
from sandbox_sim.web.control.input import (
    A_TIME,
    AN_AMOUNT,
    LARGEST_INTEGER,
    SERVICE_ID,
    AmountText,
    BadInput,
    Input,
    ListQuery,
    Moment,
    Name,
    Nothing,
    QueryId,
    QueryServiceId,
    SignedInput,
    Text,
)
from sandbox_sim.web.routes import RouteGroup, route

MAX_TOPUP = 1_000_000_000

_ANY_ID = "any identifier of a payment of mode P"

_INTERNAL_ACCOUNTS = ("clearing", "fees", "suspense")

_WALLETS = tuple(each.value for each in Wallet)

ADJUSTABLE = (*_WALLETS, *_INTERNAL_ACCOUNTS)

_Adjustable = Annotated[str, Field(pattern=f"^({'|'.join(ADJUSTABLE)})$")]


_CURRENCY = Field(DEFAULT_CURRENCY, pattern="^[A-Z]{3}$", description="a currency such as GHS")


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


class Resolve(SignedInput):
    """The body of `POST ledger/resolve`."""

    transaction: Name = Field(min_length=1, description=_ANY_ID)
    service_id: int | None = Field(None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    to: Literal["service", "clearing", "fees"] = Field(description="service, clearing or fees")
    amount: AmountText | None = Field(None, description=f"{AN_AMOUNT}; by default all of it")


class Adjust(SignedInput):
    """The body of `POST ledger/adjust`; one of `debit` and `credit` is a wallet of the service.

    network: where one of them is clearing.
    transaction: where one of them is suspense, or to show the entry with this payment.
    """

    service_id: int = Field(gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    amount: AmountText = Field(description=AN_AMOUNT)
    debit: _Adjustable = Field(description=f"the account to debit, one of {', '.join(ADJUSTABLE)}")
    credit: _Adjustable = Field(
        description=f"the account to credit, one of {', '.join(ADJUSTABLE)}"
    )
    network: Name = Field("", description="the network of clearing")
    transaction: Name = Field("", description=f"{_ANY_ID}, or empty")
    currency: str = _CURRENCY

    def adjustment(self, subject: str) -> Adjustment:
        """The correction that the body asks for, or `BadInput`."""
        adds = self.credit in _WALLETS
        wallet, internal = (self.credit, self.debit) if adds else (self.debit, self.credit)
        if wallet not in _WALLETS or internal not in _INTERNAL_ACCOUNTS:
            raise BadInput(
                f"debit and credit: one is a wallet ({', '.join(_WALLETS)}), and the other one is "
                f"{', '.join(_INTERNAL_ACCOUNTS[:-1])} or {_INTERNAL_ACCOUNTS[-1]}"
            )
        return Adjustment(
            self.service_id,
            Wallet(wallet),
            AccountKind(internal),
            Decimal(self.amount),
            adds,
            self.network,
            subject,
            self.currency,
        )


class Reverse(SignedInput):
    """The body of `POST ledger/reverse`."""

    entry: int = Field(
        gt=0, le=LARGEST_INTEGER, description="the id of an entry that a person made"
    )


class Close(SignedInput):
    """The body of `POST ledger/close`."""

    service_id: int = Field(gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    until: Moment = Field(description=f"{A_TIME}, the exclusive end of the period")
    currency: str = _CURRENCY


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

    def store_query(self) -> LedgerQuery:
        filters = self.model_dump(exclude={"mode", "limit", "audit"})
        return LedgerQuery(**filters, limit=self.page_size, mode=self.service_mode)

    @property
    def service_mode(self) -> ServiceMode | None:
        """The mode of the query; None for both."""
        return None if self.mode is None else ServiceMode(self.mode)


class StatementQuery(Input):
    """The query of `GET ledger/statement`."""

    service_id: QueryServiceId = Field(description=SERVICE_ID)
    period: QueryId | None = Field(
        None, description="the number of a closed period, from 1; by default the open period"
    )
    currency: str = _CURRENCY


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


class SuspenseView(TypedDict):
    """The amount in suspense for one payment."""

    service_id: int
    transaction_id: str
    network_transaction_id: str
    network: str
    asset: Annotated[str, "a currency, SMS or AIRTIME"]
    amount: Annotated[str, "a decimal: above 0 where it came in, below 0 where it went out"]
    since: Annotated[str, "when the first of it came or went, ISO 8601 in UTC"]


_view_suspense = viewer(SuspenseView)


class SuspenseList(TypedDict):
    """All amounts in suspense."""

    suspense: Annotated[list[SuspenseView], "one for each payment"]


class StatementLineView(NumberedPosting):
    """A posting of a statement. `amount` is what it adds to the payment to the merchant."""

    transaction_id: Annotated[str, "the client's, or empty"]


class StatementView(TypedDict):
    """The statement of one period."""

    service_id: int
    currency: str
    period: Annotated[int, "1 for the first one"]
    since: Annotated[str | None, "when the period before ended; null for the first one"]
    until: Annotated[str | None, "when it ended; null while it is open"]
    entry: Annotated[NumberedPosting | None, "what closed it; null while it is open"]
    total: Annotated[str, "a decimal: the sum of the lines"]
    lines: Annotated[list[StatementLineView], "oldest first"]


_view_statement = viewer(StatementView)


@dataclass(frozen=True, eq=False)
class LedgerRoutes(RouteGroup):
    """The routes of the ledger. books, periods: None if production is off."""

    ledger: Ledger
    ids: RecordIds
    books: Books | None
    periods: Periods | None

    group = "Ledger"
    errors = (PRODUCTION, ENTRY_REFUSED)

    @route("GET /_sandbox/ledger", "list postings and balances", errors=())
    async def list(self, _request: web.Request, query: LedgerListQuery) -> LedgerView:
        """List postings, newest first; the first page also has the balances.

        A posting is the part of a transfer that concerns one wallet. Amounts are plain decimals in
        strings, in the currency of the wallet (in mode S GHS) or in SMS units. Of the filters, only
        mode and service apply to `balances`. With `audit=true` the whole ledger is added up, and
        the answer says whether every rule holds.
        """
        page = await self.ledger.page(query.store_query())
        answer: LedgerView = {
            "postings": [shown_line(each) for each in page.lines],
            "next": page.next,
        }
        if query.after is None:
            found = await self.ledger.balances(query.service_mode, query.service_id)
            answer["balances"] = [_wallet_view(*each) for each in found.wallets.items()]
            if found.ours:
                answer["accounts"] = [
                    {"account": str(account), "balance": plain_decimal(amount)}
                    for account, amount in found.ours.items()
                ]
        if query.audit == "true":
            violations, lines = await self.ledger.audit()
            answer["agrees"] = not violations
            answer["violations"] = [{"rule": rule, "detail": text} for rule, text in violations]
            answer["postings_checked"] = lines
        return answer

    @route("POST /_sandbox/ledger/topup", "add SMS units to a service", errors=(PRODUCTION,))
    async def topup(self, _request: web.Request, body: Topup) -> ToppedUp:
        """Add SMS units to a service, or airtime in mode P; answer with the new balance."""
        if body.mode == "S":
            if body.account != "sms":
                raise BadInput("account airtime is for mode P: in mode S airtime is not topped up")
            if body.by is not None or body.reason is not None or body.reference:
                raise BadInput("by, reason and reference are for mode P")
            balance = await self.ledger.topup(body.service_id, body.units)
            return {"service_id": body.service_id, "sms_balance": balance}
        books = require_production(self.books, "nothing can be topped up in mode P")
        wallet = Wallet(body.account)
        available = await books.topup(body.service_id, wallet, body.units, body.manual_entry)
        answer: ToppedUp = {"service_id": body.service_id, "mode": "P"}
        if body.account == "sms":
            return {**answer, "sms_balance": int(available)}
        return {**answer, "airtime_balance": plain_decimal(available)}

    @route("GET /_sandbox/ledger/suspense", "list the amounts in suspense", errors=(PRODUCTION,))
    async def suspense(self, _request: web.Request, _query: Nothing) -> SuspenseList:
        """List the amounts in suspense by payment, newest first."""
        return {"suspense": [*map(suspense_view, await self._live_books.suspense())]}

    @route("POST /_sandbox/ledger/resolve", "move the amount in suspense of a payment")
    async def resolve(self, _request: web.Request, body: Resolve) -> NumberedPosting:
        """Move the amount in suspense of a payment to its service, to clearing or to fees."""
        to = AccountKind.WALLET if body.to == "service" else AccountKind(body.to)
        amount = None if body.amount is None else Decimal(body.amount)
        subject = await self._payment_id(body.transaction, body.service_id)
        return shown_line(await self._live_books.resolve(subject, to, amount, body.manual_entry))

    @route("POST /_sandbox/ledger/adjust",
           "post a correction between a wallet and an internal account")  # fmt: skip
    async def adjust(self, _request: web.Request, body: Adjust) -> NumberedPosting:
        """Write a correction between a wallet of a service and clearing, fees or suspense."""
        subject = ""
        if body.transaction:
            subject = await self._payment_id(body.transaction, body.service_id)
        return shown_line(
            await self._live_books.adjust(body.adjustment(subject), body.manual_entry)
        )

    @route("POST /_sandbox/ledger/reverse", "reverse an entry that a person made")
    async def reverse(self, _request: web.Request, body: Reverse) -> NumberedPosting:
        """Reverse a manual entry, for its full amount. An entry can be reversed once."""
        return shown_line(await self._live_books.reverse(body.entry, body.manual_entry))

    @route("POST /_sandbox/ledger/close", "pay out the collections of a period to the merchant")
    async def close(self, _request: web.Request, body: Close) -> StatementView:
        """Pay out what was collected before `until`, in one entry."""
        account, periods = (body.service_id, body.currency), self._live_periods
        return _statement_view(await periods.close(*account, body.until, body.manual_entry))

    @route("GET /_sandbox/ledger/statement", "show the statement of a period")
    async def statement(self, _request: web.Request, query: StatementQuery) -> StatementView:
        """Show the lines of a period, whose amounts sum to what was paid out."""
        account = query.service_id, query.currency
        return _statement_view(await self._live_periods.statement(*account, query.period))

    async def _payment_id(self, name: str, service_id: int | None) -> str:
        """The network transaction id of the payment with this id; the id itself if unknown."""
        found = await self.ids.transaction(name, service_id, ServiceMode.PRODUCTION)
        return name if found is None else str(found["network_transaction_id"])

    @property
    def _live_books(self) -> Books:
        return require_production(self.books, "no entries of mode P can be made")

    @property
    def _live_periods(self) -> Periods:
        return require_production(self.periods, "no period can be closed")


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


def suspense_view(item: SuspenseItem) -> SuspenseView:
    """An amount in suspense, as the control API shows it."""
    return _view_suspense(item, amount=plain_decimal(item.amount))


def _statement_view(statement: Statement) -> StatementView:
    wallet, closing = statement.wallet, statement.closing
    return _view_statement(
        statement,
        service_id=wallet.service_id,
        currency=wallet.asset,
        entry=None if closing is None else shown_line(closing),
        total=plain_decimal(statement.total),
        lines=[_statement_line_view(each) for each in statement.lines],
    )


def _statement_line_view(each: StatementLine) -> StatementLineView:
    amount = plain_decimal(each.amount)
    return {**shown_line(each.line), "amount": amount, "transaction_id": each.transaction_id}
