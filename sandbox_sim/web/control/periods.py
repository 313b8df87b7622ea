"""Settlement to merchants under `/_sandbox/ledger`: close a period, read its statement. D44."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, TypedDict

from aiohttp import web
from pydantic import Field

from sandbox_sim.ledger.periods import Periods, Statement, StatementLine
from sandbox_sim.records.ledger import NumberedPosting, shown_line
from sandbox_sim.values.json_text import plain_decimal
from sandbox_sim.values.timestamps import iso
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY
from sandbox_sim.web.control.errors import ENTRY_REFUSED, PRODUCTION, RequestRefused
from sandbox_sim.web.control.input import (
    A_TIME,
    LARGEST_INTEGER,
    SERVICE_ID,
    Input,
    Moment,
    QueryId,
    QueryServiceId,
    SignedInput,
)
from sandbox_sim.web.routes import Answer, Body, Query, Route

_CURRENCY = Field(DEFAULT_CURRENCY, pattern="^[A-Z]{3}$", description="a currency such as GHS")


class Close(SignedInput):
    """The body of `POST ledger/close`."""

    service_id: int = Field(gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    until: Moment = Field(description=f"{A_TIME}, the exclusive end of the period")
    currency: str = _CURRENCY


class StatementQuery(Input):
    """The query of `GET ledger/statement`."""

    service_id: QueryServiceId = Field(description=SERVICE_ID)
    period: QueryId | None = Field(
        None, description="the number of a closed period, from 1; by default the open period"
    )
    currency: str = _CURRENCY


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


class PeriodRoutes:
    """The routes of periods. periods: None if production is off."""

    def __init__(self, periods: Periods | None) -> None:
        self._periods = periods

    def routes(self) -> Sequence[Route]:
        route = partial(
            Route, group="Ledger", answers=(Answer(StatementView),),
            errors=(PRODUCTION, ENTRY_REFUSED),
        )  # fmt: skip
        return [
            route(
                "POST", "/_sandbox/ledger/close", self.close,
                "pay out the collections of a period to the merchant", body=Body(Close),
            ),
            route(
                "GET", "/_sandbox/ledger/statement", self.statement,
                "show the statement of a period", query=Query(StatementQuery),
            ),
        ]  # fmt: skip

    async def close(self, _request: web.Request, asked: Close) -> StatementView:
        """Pay out what was collected before `until`, in one entry."""
        account = asked.service_id, asked.currency
        return _shown(await self._open.close(*account, asked.until, asked.signed))

    async def statement(self, _request: web.Request, asked: StatementQuery) -> StatementView:
        """Show the lines of a period, whose amounts sum to what was paid out."""
        account = asked.service_id, asked.currency
        return _shown(await self._open.statement(*account, asked.period))

    @property
    def _open(self) -> Periods:
        """The periods. Raises `RequestRefused` if production is off."""
        if self._periods is None:
            raise RequestRefused(PRODUCTION, "Production mode is off, so no period can be closed")
        return self._periods


def _shown(statement: Statement) -> StatementView:
    wallet, period, since, until, closing, lines = statement
    return {
        "service_id": wallet.service_id,
        "currency": wallet.asset,
        "period": period,
        "since": None if since is None else iso(since),
        "until": None if until is None else iso(until),
        "entry": None if closing is None else shown_line(closing),
        "total": plain_decimal(statement.total),
        "lines": [_shown_line(each) for each in lines],
    }


def _shown_line(each: StatementLine) -> StatementLineView:
    amount = plain_decimal(each.amount)
    return {**shown_line(each.line), "amount": amount, "transaction_id": each.transaction_id}
