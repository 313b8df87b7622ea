"""The built-in receivers of callbacks under `/_sandbox/inbox/`. Source: docs/callbacks.md."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypedDict

from aiohttp import web

from sandbox_sim.callbacks.bodies import check_signature
from sandbox_sim.control.record_search import RecordSearch, inbox_of
from sandbox_sim.ports import Clock, Ids, Store
from sandbox_sim.records import inbox
from sandbox_sim.records.callbacks import SIGNATURE_HEADER
from sandbox_sim.records.inbox import InboxMessage, InboxMessageView
from sandbox_sim.values.redaction import redact_text
from sandbox_sim.values.vocabulary import MAX_IDENTIFIER
from sandbox_sim.web.control.errors import BAD_REQUEST, TIMEOUT
from sandbox_sim.web.control.input import DEFAULT_LIMIT, BadInput, Deleted, Wait
from sandbox_sim.web.control.records import (
    RecordListQuery,
    list_query,
    page_of,
    search_body,
    wait_for_records,
)
from sandbox_sim.web.pages.templates import Templates
from sandbox_sim.web.routes import (
    ANY_METHOD,
    CONTROL_PREFIX,
    HTML,
    Access,
    Answer,
    Body,
    ListOf,
    Reply,
    RouteGroup,
    route,
)

# A larger body is masked in a thread: a megabyte of digits takes a second, and a delivery needs no
# token.
_MASKED_INLINE_BYTES: Final = 16_384
_INBOX: Final = "/_sandbox/inbox/{name}"
_ANY_INBOX: Final = inbox_of("{name}")


class Received(TypedDict):
    """The inbox has the delivery."""

    status: Annotated[Literal["received"], "the delivery is kept"]


def inbox_name(request: web.Request) -> str:
    """The name of an inbox in the path, as it is kept. Raises `BadInput` if too long (D43)."""
    name = request.match_info["name"]
    if len(name) > MAX_IDENTIFIER:
        raise BadInput(f"the name of the inbox must have at most {MAX_IDENTIFIER} characters")
    return redact_text(name)


@dataclass(frozen=True, eq=False)
class InboxRoutes(RouteGroup):
    """Receivers of callbacks, one for each name in the path.

    secret_keys: of the clients, to check the signatures of deliveries.
    """

    store: Store
    clock: Clock
    ids: Ids
    records: RecordSearch
    secret_keys: Collection[str]
    templates: Templates

    group = "Inbox"

    @route(f"GET {_INBOX}/messages", "list the deliveries, newest first",
           answer=ListOf("messages", InboxMessageView), query=list_query(_ANY_INBOX))  # fmt: skip
    async def messages(self, request: web.Request, query: RecordListQuery) -> Reply:
        """The deliveries, newest first; `next` is the value of `after` for the next page."""
        kind = inbox_of(inbox_name(request))
        return await page_of(self.records, kind, request, query)

    @route(f"POST {_INBOX}/wait", "wait for deliveries",
           answer=ListOf("messages", InboxMessageView, has_next=False),
           body=search_body(Wait, _ANY_INBOX), errors=(TIMEOUT,))  # fmt: skip
    async def wait(self, request: web.Request, body: Wait) -> Reply:
        """Wait for `count` deliveries that match; HTTP 408 if too few came in time.

        `json.trans_ref` in `match` looks inside a body that is JSON.
        """
        return await wait_for_records(self.records, inbox_of(inbox_name(request)), request, body)

    @route(f"DELETE {_INBOX}", "empty an inbox", errors=(BAD_REQUEST,))
    async def clear(self, request: web.Request) -> Deleted:
        """Empty an inbox."""
        name = inbox_name(request)
        return {"deleted": await self.store.run(lambda unit: unit.clear_inbox(name))}

    async def view(self, request: web.Request) -> web.Response:
        """The deliveries as a page, newest first."""
        kind = inbox_of(inbox_name(request))
        after = request.query.get("after", "").replace("\x00", "") or None
        found = await self.records.find(kind, {}, DEFAULT_LIMIT, after)
        context = {
            "name": kind.inbox,
            "messages": found.records,
            "next": found.next,
            "after": after,
            "full_text_path": f"{CONTROL_PREFIX}/inbox/{kind.inbox}/messages",
        }
        return await self.templates.page(request, "inbox.html", context)

    @route(f"{ANY_METHOD} {_INBOX}", "take a delivery, by any method",
           answers=(
               Answer(Received),
               Answer(None, media_type=HTML, when="a GET of a browser: the deliveries"),
               Answer(None, 303, None, "a GET of a browser that must log in first"),
           ),
           body=Body(None, optional=True, media_type="*/*"), access=Access.DELIVERY,
           page=view)  # fmt: skip
    async def receive(self, request: web.Request) -> Received:
        """Take a callback, as a merchant's receiver would."""
        name = inbox_name(request)
        body = await request.read()
        message = InboxMessage(
            id=self.ids.record_id(),
            at=self.clock.now(),
            method=request.method,
            headers=tuple((name.lower(), value) for name, value in request.headers.items()),
            body=body.decode("utf-8", "replace"),
            signature=check_signature(
                body, request.headers.get(SIGNATURE_HEADER), self.secret_keys
            ),
        )
        if len(body) < _MASKED_INLINE_BYTES:
            redacted = inbox.redacted(message)
        else:
            redacted = await asyncio.to_thread(inbox.redacted, message)
        await self.store.run(lambda unit: unit.add_inbox_message(name, redacted))
        return {"status": "received"}
