"""The built-in receivers of callbacks under `/_sandbox/inbox/`. Source: docs/control-api.md."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Literal, TypedDict

from aiohttp import web

from sandbox_sim.domain.callbacks import inbox
from sandbox_sim.domain.callbacks.inbox import InboxMessage, InboxMessageView
from sandbox_sim.domain.callbacks.signature import SIGNATURE_HEADER, check_signature
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.gateway.control.record_search import Records, inbox_of
from sandbox_sim.gateway.ports import Clock, Ids, Store
from sandbox_sim.web.control.errors import TIMEOUT
from sandbox_sim.web.control.handlers import Reply
from sandbox_sim.web.control.input_models import Deleted, Wait
from sandbox_sim.web.control.records import RecordListQuery, list_query, match_of, page_of
from sandbox_sim.web.control.waits import answer_of_wait
from sandbox_sim.web.routes import ANY_METHOD, HTML, Access, Answer, Body, ListOf, Route

# A larger body is masked in a thread: a megabyte of digits takes a second, and a delivery needs no
# token.
_MASKED_AT_ONCE_BYTES: Final = 16_384
_INBOX: Final = "/_sandbox/inbox/{name}"


class Received(TypedDict):
    """The inbox has the delivery."""

    status: Literal["received"]


class InboxRoutes:
    """Receivers of callbacks, one for each name that is asked for.

    clients: their secret keys check the signatures of the deliveries.
    page: shows an inbox to a browser.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        records: Records,
        clients: Mapping[str, Client],
        page: Callable[[web.Request], Awaitable[web.Response]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._records = records
        self._page = page
        self._secret_keys = [client.secret_key for client in clients.values()]

    def routes(self) -> Sequence[Route]:
        """The routes of the inboxes."""
        route = partial(Route, group="Inbox")
        fields = inbox.SHOWN_FIELDS
        return [
            route(
                "GET", f"{_INBOX}/messages", self.messages, "list the deliveries, newest first",
                answers=(Answer(ListOf("messages", InboxMessageView)),),
                query=list_query(fields, {}),
            ),
            route(
                "POST", f"{_INBOX}/wait", self.wait, "wait for deliveries",
                answers=(Answer(ListOf("messages", InboxMessageView, has_next=False)),),
                body=Body(Wait, optional=True, match_fields=fields), errors=(TIMEOUT,),
            ),
            route(
                "DELETE", _INBOX, self.clear, "empty an inbox",
                answers=(Answer(Deleted),),
            ),
            # Callbacks come by any name that a network has for this machine.
            route(
                ANY_METHOD, _INBOX, self.receive, "take a delivery, by any method",
                answers=(
                    Answer(Received),
                    Answer(None, media_type=HTML, when="a GET of a browser: the deliveries"),
                    Answer(None, 303, None, "a GET of a browser that has to log in"),
                ),
                body=Body(None, optional=True, media_type="*/*"),
                access=Access.DELIVERY, page=self._page,
            ),
        ]  # fmt: skip

    async def receive(self, request: web.Request) -> Received:
        """Take a callback, as a merchant's receiver would."""
        body = await request.read()
        message = InboxMessage(
            id=self._ids.record_id(),
            at=self._clock.now(),
            method=request.method,
            headers=tuple((name.lower(), value) for name, value in request.headers.items()),
            body=body.decode("utf-8", "replace"),
            signature=check_signature(
                body, request.headers.get(SIGNATURE_HEADER), self._secret_keys
            ),
        )
        name = redact_text(request.match_info["name"])
        if len(body) < _MASKED_AT_ONCE_BYTES:
            kept = inbox.redacted(message)
        else:
            kept = await asyncio.to_thread(inbox.redacted, message)
        await self._store.run(lambda unit: unit.add_inbox_message(name, kept))
        return {"status": "received"}

    async def messages(self, request: web.Request, asked: RecordListQuery) -> Reply:
        """The deliveries, newest first; `next` is the value of `after` for the next page."""
        kind = inbox_of(request.match_info["name"])
        return await page_of(self._records, kind, "messages", request, asked)

    async def wait(self, request: web.Request, asked: Wait) -> Reply:
        """Wait for `count` deliveries that match; HTTP 408 where too few came in time.

        `json.trans_ref` in `match` looks inside a body that is JSON.
        """
        kind = inbox_of(request.match_info["name"])
        match = match_of(asked, kind)
        waiting = self._records.wait(kind, match, asked.count, asked.timeout_s)
        return await answer_of_wait(request, waiting, asked, "messages")

    async def clear(self, request: web.Request) -> Deleted:
        """Empty an inbox."""
        name = redact_text(request.match_info["name"])
        return {"deleted": await self._store.run(lambda unit: unit.clear_inbox(name))}
