"""The ledger under `/_sandbox/ledger`: postings, balances, and SMS units topped up. Source: D22."""

from typing import Annotated, Literal

from aiohttp import web
from pydantic import Field

from sandbox_sim.domain.callbacks.callbacks import plain_decimal
from sandbox_sim.domain.ledger import REASONS, Account, Audit, LedgerQuery, shown
from sandbox_sim.gateway.ledger.ledger_control import Ledger
from sandbox_sim.web.control.control_input import (
    LARGEST_INTEGER,
    SERVICE_ID,
    Guard,
    Input,
    InQuery,
    ListQuery,
    Routes,
    body_of,
    query_of,
)

MAX_TOPUP = 1_000_000_000


class Topup(Input):
    """What `POST ledger/topup` takes."""

    service_id: int = Field(gt=0, le=LARGEST_INTEGER, description=SERVICE_ID)
    units: int = Field(gt=0, le=MAX_TOPUP, description=f"an integer from 1 to {MAX_TOPUP}")


class LedgerListQuery(ListQuery):
    """What `GET ledger` takes; `service_id`, `account`, `reason` and `subject` are filters."""

    service_id: Annotated[int, InQuery] | None = Field(
        None, gt=0, le=LARGEST_INTEGER, description=SERVICE_ID
    )
    account: Account | None = Field(None, strict=False, description=f"one of {', '.join(Account)}")
    reason: Literal[REASONS] | None = Field(  # type: ignore[valid-type]
        None, description=f"one of {', '.join(REASONS)}"
    )
    # NUL is refused because no database takes it.
    subject: str | None = Field(
        None,
        pattern=r"^[^\x00]*$",
        description="the id of a transaction, a send or a batch, without NUL",
    )

    def query(self) -> LedgerQuery:
        """The query that is asked for."""
        return LedgerQuery(
            service_id=self.service_id,
            account=self.account,
            reason=self.reason,
            subject=self.subject,
            after=self.after,
            limit=self.page_size,
        )


class LedgerRoutes:
    """The accounts of every service, for whoever holds the control token."""

    def __init__(self, ledger: Ledger, guard: Guard) -> None:
        self._ledger = ledger
        self._guard = guard

    def routes(self) -> Routes:
        """The route table."""
        return [
            ("GET", "/_sandbox/ledger", self._guard(self.list)),
            ("POST", "/_sandbox/ledger/topup", self._guard(self.topup)),
        ]

    async def topup(self, request: web.Request) -> web.Response:
        """Add SMS units to a service; answers with `sms_balance`, the units that it has then."""
        body = await body_of(request, Topup)
        balance = await self._ledger.topup(body.service_id, body.units)
        return web.json_response({"service_id": body.service_id, "sms_balance": balance})

    async def list(self, request: web.Request) -> web.Response:
        """Postings, newest first; with the first page, balances beside the sum of all postings.

        `next` is what to send as `after` for the page that follows, null on the last one. Amounts
        are plain decimals in strings, GHS or SMS units. `balances` are those of the service asked
        for, or of all, whatever the other filters; pages that go on after an id have none of them.
        """
        page = await self._ledger.page(query_of(request, LedgerListQuery).query())
        answer: dict[str, object] = {
            "postings": [{"id": line.number, **shown(line.posting)} for line in page.lines],
            "next": page.next,
        }
        if page.audits is not None:
            answer["balances"] = [_balance(audit) for audit in page.audits]
            answer["agrees"] = all(audit.agrees for audit in page.audits)
        return web.json_response(answer)


def _balance(audit: Audit) -> dict[str, object]:
    return {
        "service_id": audit.service_id,
        "account": audit.account.value,
        "balance": plain_decimal(audit.balance),
        "sum_of_postings": plain_decimal(audit.sum_of_postings),
        "agrees": audit.agrees,
    }
