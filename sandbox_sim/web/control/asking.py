"""Asks the network of a transaction of mode P for its outcome now, for a person.

Source: D39.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from aiohttp import web

from sandbox_sim.control.record_search import RecordIds
from sandbox_sim.production.attempt_views import TransactionDetails
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.web.control import errors
from sandbox_sim.web.control.errors import RequestRefused
from sandbox_sim.web.control.input import Nothing
from sandbox_sim.web.control.records import no_such, service_of, transaction_routes
from sandbox_sim.web.routes import Answer, Body, Reply, Route

if TYPE_CHECKING:
    from sandbox_sim.production.attempt_views import LiveRecordReader
    from sandbox_sim.production.status_asking import StatusAsking


class AskedView(TransactionDetails):
    """A transaction after its network was asked."""

    network_said: Annotated[str, "what the network answered, in words"]


@dataclass(frozen=True, eq=False)
class AskRoutes:
    """The routes that ask networks. asking, live: of production; None if it is off."""

    ids: RecordIds
    asking: "StatusAsking | None"
    live: "LiveRecordReader | None"

    def routes(self) -> Sequence[Route]:
        return transaction_routes(
            self.ask, "ask the network of a transaction{} of mode P for its outcome now",
            (Answer(AskedView),), Body(Nothing, optional=True),
            (errors.NOT_FOUND, errors.CANNOT_ASK),
        )  # fmt: skip

    async def ask(self, request: web.Request, _asked: Nothing) -> Reply:
        """Ask now, save the answer of the network, and answer with the transaction."""
        name, service_id = request.match_info["id"], service_of(request)
        found = await self.ids.transaction(name, service_id, ServiceMode.PRODUCTION)
        network_id = name if found is None else str(found["network_transaction_id"])
        if self.asking is not None and self.live is not None:
            said = await self.asking.ask_by_hand(network_id, service_id)
            asked = await self.live.transaction(network_id, service_id)
            if said is not None and asked is not None:
                return {**asked, "network_said": said}
        if found is None and await self.ids.transaction(name, service_id) is None:
            raise no_such("transactions", name)
        why = (
            "production is off"
            if found is not None
            else "it is of mode S, which no network carries"
        )
        raise RequestRefused(errors.CANNOT_ASK, f"no network can be asked about {name}: {why}")
