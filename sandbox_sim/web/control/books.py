"""Manual entries of mode P under `/_sandbox/ledger`. Source: D44."""

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Annotated, Literal, TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.control.record_search import RecordIds
from sandbox_sim.ledger.books import Adjustment, Books, SuspenseItem
from sandbox_sim.records.ledger import AccountKind, NumberedPosting, shown_line
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.json_text import plain_decimal, viewer
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY, Wallet
from sandbox_sim.web.control.errors import ENTRY_REFUSED, PRODUCTION, RequestRefused
from sandbox_sim.web.control.input import (
    AN_AMOUNT,
    LARGEST_INTEGER,
    SERVICE_ID,
    AmountText,
    BadInput,
    Name,
    Nothing,
    SignedInput,
)
from sandbox_sim.web.routes import Answer, Body, Query, Route

_ANY_ID = "any identifier of a payment of mode P"

_OURS = ("clearing", "fees", "suspense")

_WALLETS = tuple(each.value for each in Wallet)

ENDS = (*_WALLETS, *_OURS)

_End = Annotated[str, Field(pattern=f"^({'|'.join(ENDS)})$")]


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
    debit: _End = Field(description=f"the account to debit, one of {', '.join(ENDS)}")
    credit: _End = Field(description=f"the account to credit, one of {', '.join(ENDS)}")
    network: Name = Field("", description="the network of clearing")
    transaction: Name = Field("", description=f"{_ANY_ID}, or empty")
    currency: str = Field(
        DEFAULT_CURRENCY, pattern="^[A-Z]{3}$", description="a currency such as GHS"
    )

    def adjustment(self, subject: str) -> Adjustment:
        """The correction that the body asks for, or `BadInput`."""
        adds = self.credit in _WALLETS
        wallet, ours = (self.credit, self.debit) if adds else (self.debit, self.credit)
        if wallet not in _WALLETS or ours not in _OURS:
            raise BadInput(
                f"debit and credit: one is a wallet ({', '.join(_WALLETS)}), and the other one is "
                f"{', '.join(_OURS[:-1])} or {_OURS[-1]}"
            )
        return Adjustment(
            self.service_id,
            Wallet(wallet),
            AccountKind(ours),
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


class SuspenseView(TypedDict):
    """The amount in suspense for one payment."""

    service_id: int
    transaction_id: str
    network_transaction_id: str
    network: str
    asset: Annotated[str, "a currency, SMS or AIRTIME"]
    amount: Annotated[str, "a decimal: above 0 where it came in, below 0 where it went out"]
    since: Annotated[str, "when the first of it came or went, ISO 8601 in UTC"]


_suspense = viewer(SuspenseView)


class SuspenseList(TypedDict):
    """All amounts in suspense."""

    suspense: Annotated[list[SuspenseView], "one for each payment"]


class BookRoutes:
    """The routes of manual entries. books: None if production is off."""

    def __init__(self, books: Books | None, ids: RecordIds) -> None:
        self._books = books
        self._ids = ids

    def routes(self) -> Sequence[Route]:
        route = partial(Route, group="Ledger", errors=(PRODUCTION, ENTRY_REFUSED))
        entry = (Answer(NumberedPosting),)
        return [
            route(
                "GET", "/_sandbox/ledger/suspense", self.suspense,
                "list the amounts in suspense", answers=(Answer(SuspenseList),),
                query=Query(Nothing), errors=(PRODUCTION,),
            ),
            route(
                "POST", "/_sandbox/ledger/resolve", self.resolve,
                "move the amount in suspense of a payment", answers=entry, body=Body(Resolve),
            ),
            route(
                "POST", "/_sandbox/ledger/adjust", self.adjust,
                "post a correction between a wallet and an internal account",
                answers=entry, body=Body(Adjust),
            ),
            route(
                "POST", "/_sandbox/ledger/reverse", self.reverse,
                "reverse an entry that a person made", answers=entry, body=Body(Reverse),
            ),
        ]  # fmt: skip

    async def suspense(self, _request: web.Request, _asked: Nothing) -> SuspenseList:
        """List the amounts in suspense by payment, newest first."""
        return {"suspense": [*map(suspense_view, await self._open.suspense())]}

    async def resolve(self, _request: web.Request, asked: Resolve) -> NumberedPosting:
        """Move the amount in suspense of a payment to its service, to clearing or to fees."""
        to = AccountKind.WALLET if asked.to == "service" else AccountKind(asked.to)
        amount = None if asked.amount is None else Decimal(asked.amount)
        subject = await self._subject(asked.transaction, asked.service_id)
        return shown_line(await self._open.resolve(subject, to, amount, asked.signed))

    async def adjust(self, _request: web.Request, asked: Adjust) -> NumberedPosting:
        """Write a correction between a wallet of a service and clearing, fees or suspense."""
        subject = ""
        if asked.transaction:
            subject = await self._subject(asked.transaction, asked.service_id)
        return shown_line(await self._open.adjust(asked.adjustment(subject), asked.signed))

    async def reverse(self, _request: web.Request, asked: Reverse) -> NumberedPosting:
        """Reverse a manual entry, for its full amount. An entry can be reversed once."""
        return shown_line(await self._open.reverse(asked.entry, asked.signed))

    async def _subject(self, name: str, service_id: int | None) -> str:
        """The network transaction id of the payment with this id; the id itself if unknown."""
        found = await self._ids.transaction(name, service_id, ServiceMode.PRODUCTION)
        return name if found is None else str(found["network_transaction_id"])

    @property
    def _open(self) -> Books:
        """The books. Raises `RequestRefused` if production is off."""
        if self._books is None:
            raise RequestRefused(
                PRODUCTION, "Production mode is off, so no entries of mode P can be made"
            )
        return self._books


def suspense_view(item: SuspenseItem) -> SuspenseView:
    """An amount in suspense, as the control API shows it."""
    return _suspense(item, amount=plain_decimal(item.amount))
