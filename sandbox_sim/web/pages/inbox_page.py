"""The page of an inbox: its deliveries, for a person with a browser."""

from aiohttp import web

from sandbox_sim.gateway.control.record_search import Records, inbox_of
from sandbox_sim.web.pages.templates import Templates

_PAGE_SIZE = 20


class InboxPage:
    """Shows an inbox; a look at it stores nothing."""

    def __init__(self, records: Records, templates: Templates) -> None:
        self._records = records
        self._templates = templates

    async def view(self, request: web.Request) -> web.Response:
        """A page of deliveries, newest first."""
        kind = inbox_of(request.match_info["name"])
        after = request.query.get("after", "").replace("\x00", "") or None
        found = await self._records.find(kind, {}, _PAGE_SIZE, after)
        context = {"name": kind.inbox, "messages": found.records, "next": found.next}
        return await self._templates.page(request, "inbox.html", context)
