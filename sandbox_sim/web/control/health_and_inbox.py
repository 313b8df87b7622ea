"""What is ours, under `/_sandbox/`: health, version and the built-in callback receivers."""

import asyncio
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from sandbox_sim import __version__
from sandbox_sim.domain.callbacks import inbox
from sandbox_sim.domain.callbacks.callbacks import SIGNATURE_HEADER
from sandbox_sim.domain.callbacks.inbox import InboxMessage, check_signature
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.gateway.control.record_search import Records, inbox_of
from sandbox_sim.gateway.ports import Clock, Ids, Store, Unit
from sandbox_sim.web.control.control_input import Guard, Routes, Wait
from sandbox_sim.web.control.records import page_of, search_of
from sandbox_sim.web.transport.disconnection import answer_of_wait

# A name that no path can spell, and more room than a request takes.
_NO_INBOX: Final = ""
_ROOM: Final = "." * 32_768
# A body of so many bytes or more is redacted in a thread: a megabyte of digits takes a second, and
# a delivery needs no token.
_QUICKLY_REDACTED: Final = 16_384


class Control:
    """The handlers; the secret keys of the clients check the signatures of what comes in."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        records: Records,
        clients: Mapping[str, Client],
        guard: Guard,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._records = records
        self._guard = guard
        self._secret_keys = [client.secret_key for client in clients.values()]

    def routes(self) -> Routes:
        """The route table."""
        return [
            ("GET", "/_sandbox/livez", self.livez),
            ("GET", "/_sandbox/readyz", self.readyz),
            ("GET", "/_sandbox/version", self.version),
            ("GET", "/_sandbox/inbox/{name}/messages", self._guard(self.inbox_messages)),
            ("POST", "/_sandbox/inbox/{name}/wait", self._guard(self.wait)),
            ("DELETE", "/_sandbox/inbox/{name}", self._guard(self.clear_inbox)),
            # Callbacks come by any name that a network has for us, but not from a web page.
            ("*", "/_sandbox/inbox/{name}", self._guard.no_page(self.receive)),
        ]

    async def livez(self, _request: web.Request) -> web.Response:
        """The process answers."""
        return web.json_response({"status": "ok"})

    async def readyz(self, _request: web.Request) -> web.Response:
        """The store takes what is written, so the gateway can do its work.

        A disk that is full can still be read.
        """
        probe = InboxMessage("", self._clock.now(), "", (), _ROOM, "missing")

        async def write_and_take_back(unit: Unit) -> None:
            await unit.add_inbox_message(_NO_INBOX, probe)
            await unit.clear_inbox(_NO_INBOX)

        await self._store.run(write_and_take_back)
        return web.json_response({"status": "ready"})

    async def version(self, _request: web.Request) -> web.Response:
        """Which version this is."""
        return web.json_response({"name": "sandbox_sim", "version": __version__})

    async def receive(self, request: web.Request) -> web.Response:
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
        if len(body) < _QUICKLY_REDACTED:
            kept = inbox.redacted(message)
        else:
            kept = await asyncio.to_thread(inbox.redacted, message)
        await self._store.run(lambda unit: unit.add_inbox_message(name, kept))
        return web.json_response({"status": "received"})

    async def inbox_messages(self, request: web.Request) -> web.Response:
        """What lies in an inbox, newest first; `next` is what to send as `after` for the rest."""
        kind = inbox_of(request.match_info["name"])
        return web.json_response(await page_of(self._records, kind, "messages", request))

    async def wait(self, request: web.Request) -> web.Response:
        """Those that match, newest first, as soon as there are `count`; HTTP 408 if they stay out.

        `json.trans_ref` in `match` looks inside a body that is JSON.
        """
        kind = inbox_of(request.match_info["name"])
        asked = await search_of(request, kind, Wait)
        waiting = self._records.wait(kind, asked.match, asked.count, asked.timeout_s)
        return await answer_of_wait(request, waiting, asked, "messages")

    async def clear_inbox(self, request: web.Request) -> web.Response:
        """Empty an inbox."""
        name = redact_text(request.match_info["name"])
        deleted = await self._store.run(lambda unit: unit.clear_inbox(name))
        return web.json_response({"deleted": deleted})
