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
from sandbox_sim.web.pages.timeline import message_timeline, payment_timeline, request_timeline

_MAX_CALLBACKS: Final = 20
_MAX_REQUESTS: Final = 20
_MAX_REFUNDS: Final = 20
# The fields that a transaction and its requests share.
_SHARED_FIELDS: Final = ("service_id", "mode", "transaction_id")
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
                return await self._payment_timeline(_parse_id(service_id), network_id, settings)
            case "r":
                return await self._request_timeline(name, settings)
            case "c":
                return await self._callback_timeline(name, settings)
            case "m":
                return await self._message_timeline(name, settings)
        return None

    async def _payment_timeline(
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
        entry = await self._first_request(payment)
        since = datetime.fromisoformat(begun(payment))
        query = {name: payment[name] for name in _SHARED_FIELDS}
        query["operation"] = Operation.STATUS.value
        status_queried = await self.records.newest(REQUESTS, query, since=since) is not None
        found = await self.records.find(CALLBACKS, match, _MAX_CALLBACKS, since=since)
        postings = await self._postings(payment["mode"], service_id, network_id)
        refund_match = {"service_id": service_id, "refund_of": network_id}
        refunds = await self.records.find(TRANSACTIONS, refund_match, _MAX_REFUNDS, since=since)
        stored = await self.store.run(
            lambda unit: unit.transaction_by_network_id(service_id, network_id)
        )
        return payment_timeline(
            payment, entry, found.records[::-1], postings, settings, status_queried=status_queried,
            by_hand=stored is not None and stored.by_hand,
            live=live_steps(payment, live) if payment["mode"] == "P" else None,
            refunds=refunds.records[::-1],
        )  # fmt: skip

    async def _request_timeline(self, name: str, settings: TimelineSettings) -> Timeline | None:
        entry: Any = await self.records.newest(REQUESTS, {"id": name})
        if entry is None:
            return None
        service_id, transaction_id = entry["service_id"], entry["transaction_id"]
        if None not in {service_id, transaction_id} and _is_payment(entry):
            match = {name: entry[name] for name in _SHARED_FIELDS}
            since = datetime.fromisoformat(entry["at"])
            found = await self.records.find(TRANSACTIONS, match, _MAX_REQUESTS, since=since)
            for payment in found.records:
                first = await self._first_request(payment)
                if first is not None and first["id"] == name:
                    network_id = str(payment["network_transaction_id"])
                    return await self._payment_timeline(service_id, network_id, settings)
        return request_timeline(entry, settings)

    async def _callback_timeline(self, name: str, settings: TimelineSettings) -> Timeline | None:
        callback: Any = await self.records.newest(CALLBACKS, {"id": name})
        if callback is None:
            return None
        service_id, network_id = callback["service_id"], callback["network_transaction_id"]
        timeline = await self._payment_timeline(service_id, network_id, settings)
        if timeline is not None:
            return timeline
        about = f"Service {service_id} · transaction {callback['transaction_id']}"
        badge = Badge(callback["state"], callback["state"])
        steps = tuple(callback_steps(callback, settings))
        return Timeline("Callback", about, badge, steps)

    async def _message_timeline(self, name: str, settings: TimelineSettings) -> Timeline | None:
        message: Any = await self.records.newest(MESSAGES, {"processing_id": name})
        if message is None:
            return None
        subject = message["batch_id"] or message["processing_id"]
        postings = await self._postings(message["mode"], message["service_id"], subject)
        live = None
        if message["mode"] == "P":
            live = await self._attempts(message["processing_id"], message["service_id"])
        steps = live_steps(live, live) if live is not None else ()
        return message_timeline(message, postings, settings, steps)

    async def _first_request(self, payment: Mapping[str, Any]) -> Any:
        """The request that began a transaction: the newest one before it with its fields."""
        match = {name: payment[name] for name in (*_SHARED_FIELDS, "operation")}
        at = begun(payment)
        newest: Any = await self.records.newest(REQUESTS, match)
        if newest is None or newest["at"] <= at:
            return newest
        # The id was used again later.
        entries: Sequence[Any] = (await self.records.find(REQUESTS, match, _MAX_REQUESTS)).records
        return next((each for each in entries if each["at"] <= at), None)

    async def _attempts(self, network_id: str, service_id: int) -> Any:
        """The transaction or SMS of mode P with its attempts; None without production."""
        return None if self.live is None else await self.live.transaction(network_id, service_id)

    async def _postings(self, mode: str, service_id: int, subject: str) -> Sequence[Any]:
        # In mode P also the amount in suspense, which is not in a wallet of the service.
        of_service = service_id if mode == ServiceMode.SANDBOX else None
        query = LedgerQuery(service_id=of_service, subject=subject, mode=ServiceMode(mode))
        page = await self.ledger.page(query)
        return [shown_line(line) for line in reversed(page.lines)]


def _is_payment(entry: Mapping[str, Any]) -> bool:
    path: str = entry["path"]
    return path.endswith(_PAYMENT_PATHS)


def _parse_id(text: str) -> int:
    return int(text[:19]) if text.isascii() and text.isdigit() else 0
