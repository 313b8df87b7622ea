"""Finds the record in an address, and everything for its timeline. Source: D39."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sandbox_sim.control.record_search import (
    CALLBACKS,
    MESSAGES,
    REQUESTS,
    TRANSACTIONS,
    RecordSearch,
    begun,
)
from sandbox_sim.ledger.ledger_control import Ledger
from sandbox_sim.operations import PAYMENTS, Operation
from sandbox_sim.ports import Store
from sandbox_sim.production.attempt_views import LiveRecordReader
from sandbox_sim.records.ledger import LedgerQuery, shown_line
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.web.pages.listing import Badge
from sandbox_sim.web.pages.steps import Timeline, TimelineSettings, callback_steps, live_steps
from sandbox_sim.web.pages.timeline import of_message, of_payment, of_request

_MOST_CALLBACKS: Final = 20
_MOST_REQUESTS: Final = 20
_MOST_REFUNDS: Final = 20
# The fields that a transaction and its requests share.
_NAME: Final = ("service_id", "mode", "transaction_id")
_PAYMENT_PATHS: Final = tuple({each.row.path for each in PAYMENTS})


@dataclass(frozen=True, eq=False)
class Details:
    """Makes timelines. A method returns None for a record that is no longer kept.

    live: the records of production; None if it is off.
    """

    store: Store
    records: RecordSearch
    ledger: Ledger
    live: LiveRecordReader | None

    async def timeline(self, key: str, settings: TimelineSettings) -> Timeline | None:
        """The timeline of the record with this `Row.key`."""
        kind, _, name = key.replace("\x00", "").partition(":")
        match kind:
            case "t":
                service_id, _, network_id = name.partition(":")
                return await self._of_payment(_number(service_id), network_id, settings)
            case "r":
                return await self._of_request(name, settings)
            case "c":
                return await self._of_callback(name, settings)
            case "m":
                return await self._of_message(name, settings)
        return None

    async def _of_payment(
        self, service_id: int, network_id: str, settings: TimelineSettings
    ) -> Timeline | None:
        match = {"service_id": service_id, "network_transaction_id": network_id}
        payment: Any = await self.records.newest(TRANSACTIONS, match)
        live = None
        if payment is None or payment["mode"] == "P":
            # A transaction of mode P that its network did not take is not stored: its attempt is.
            live = await self._attempts(network_id, service_id)
            payment = payment or live
        if payment is None:
            return None
        entry = await self._beginning(payment)
        since = datetime.fromisoformat(begun(payment))
        query = {name: payment[name] for name in _NAME} | {"operation": Operation.STATUS.value}
        asked = await self.records.newest(REQUESTS, query, since=since) is not None
        found = await self.records.find(CALLBACKS, match, _MOST_CALLBACKS, since=since)
        postings = await self._postings(payment["mode"], service_id, network_id)
        of_it = {"service_id": service_id, "refund_of": network_id}
        refunds = await self.records.find(TRANSACTIONS, of_it, _MOST_REFUNDS, since=since)
        kept = await self.store.run(
            lambda unit: unit.transaction_by_network_id(service_id, network_id)
        )
        return of_payment(
            payment, entry, found.records[::-1], postings, settings, asked=asked,
            by_hand=kept is not None and kept.by_hand,
            live=live_steps(payment, live) if payment["mode"] == "P" else None,
            refunds=refunds.records[::-1],
        )  # fmt: skip

    async def _of_request(self, name: str, settings: TimelineSettings) -> Timeline | None:
        entry: Any = await self.records.newest(REQUESTS, {"id": name})
        if entry is None:
            return None
        service_id, transaction_id = entry["service_id"], entry["transaction_id"]
        if None not in {service_id, transaction_id} and _pays(entry):
            match = {name: entry[name] for name in _NAME}
            since = datetime.fromisoformat(entry["at"])
            found = await self.records.find(TRANSACTIONS, match, _MOST_REQUESTS, since=since)
            for payment in found.records:
                owner = await self._beginning(payment)
                if owner is not None and owner["id"] == name:
                    network_id = str(payment["network_transaction_id"])
                    return await self._of_payment(service_id, network_id, settings)
        return of_request(entry, settings)

    async def _of_callback(self, name: str, settings: TimelineSettings) -> Timeline | None:
        callback: Any = await self.records.newest(CALLBACKS, {"id": name})
        if callback is None:
            return None
        service_id, network_id = callback["service_id"], callback["network_transaction_id"]
        of_payment = await self._of_payment(service_id, network_id, settings)
        if of_payment is not None:
            return of_payment
        about = f"Service {service_id} · transaction {callback['transaction_id']}"
        badge = Badge(callback["state"], callback["state"])
        steps = tuple(callback_steps(callback, settings))
        return Timeline("Callback", about, badge, steps)

    async def _of_message(self, name: str, settings: TimelineSettings) -> Timeline | None:
        message: Any = await self.records.newest(MESSAGES, {"processing_id": name})
        if message is None:
            return None
        subject = message["batch_id"] or message["processing_id"]
        postings = await self._postings(message["mode"], message["service_id"], subject)
        live = None
        if message["mode"] == "P":
            live = await self._attempts(message["processing_id"], message["service_id"])
        steps = live_steps(live, live) if live is not None else ()
        return of_message(message, postings, settings, steps)

    async def _beginning(self, payment: Mapping[str, Any]) -> Any:
        """The request that began a transaction: the newest one before it with its fields."""
        match = {name: payment[name] for name in (*_NAME, "operation")}
        at = begun(payment)
        newest: Any = await self.records.newest(REQUESTS, match)
        if newest is None or newest["at"] <= at:
            return newest
        # The id was used again later.
        entries: Sequence[Any] = (await self.records.find(REQUESTS, match, _MOST_REQUESTS)).records
        return next((each for each in entries if each["at"] <= at), None)

    async def _attempts(self, network_id: str, service_id: int) -> Any:
        """The transaction or SMS of mode P with its attempts; None without production."""
        if self.live is None:
            return None
        return await self.live.transaction(network_id, service_id)

    async def _postings(self, mode: str, service_id: int, subject: str) -> Sequence[Any]:
        # In mode P also the amount in suspense, which is not in a wallet of the service.
        of_service = service_id if mode == ServiceMode.SANDBOX else None
        query = LedgerQuery(service_id=of_service, subject=subject, mode=ServiceMode(mode))
        page = await self.ledger.page(query)
        return [shown_line(line) for line in reversed(page.lines)]


def _pays(entry: Mapping[str, Any]) -> bool:
    path: str = entry["path"]
    return path.endswith(_PAYMENT_PATHS)


def _number(text: str) -> int:
    return int(text[:19]) if text.isascii() and text.isdigit() else 0
