"""Finds the record that an address names, and all that belongs to its timeline."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from sandbox_sim.domain.ledger import LedgerQuery, shown
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.control.record_search import (
    CALLBACKS,
    MESSAGES,
    REQUESTS,
    TRANSACTIONS,
    Records,
)
from sandbox_sim.gateway.control.searches import Kind
from sandbox_sim.gateway.ledger.ledger_control import Ledger
from sandbox_sim.web.control.input_models import LARGEST_INTEGER
from sandbox_sim.web.pages.production.live_timeline import live_steps
from sandbox_sim.web.pages.rows import Badge
from sandbox_sim.web.pages.timeline import (
    Settings,
    Timeline,
    callback_steps,
    of_message,
    of_payment,
    of_request,
)

if TYPE_CHECKING:
    from sandbox_sim.gateway.networks.live_records import LiveRecords

_MOST_CALLBACKS: Final = 20
_MOST_REQUESTS: Final = 20
# What a transaction and its requests have in common.
_NAME: Final = ("service_id", "mode", "transaction_id")
_PAYMENT_PATHS: Final = ("/make_payment", "/pay_bill", "/send_airtime")


class Details:
    """Makes timelines. A method returns None for a record that is kept no more.

    live: the records of production; None where it is off.
    """

    def __init__(self, records: Records, ledger: Ledger, live: "LiveRecords | None") -> None:
        self._records = records
        self._ledger = ledger
        self._live = live

    async def timeline(self, key: str, settings: Settings) -> Timeline | None:
        """The timeline of the record that `key` names, as `Row.key` does."""
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
        self, service_id: int, network_id: str, settings: Settings
    ) -> Timeline | None:
        match = {"service_id": service_id, "network_transaction_id": network_id}
        payment, live = await self._one(TRANSACTIONS, match), None
        if payment is None or payment["mode"] == "P":
            # A transaction of mode P that its network did not take is not stored: its attempt is.
            live = await self._attempts(network_id, service_id)
            payment = payment or live
        if payment is None:
            return None
        entry = await self._beginning(payment)
        since = datetime.fromisoformat(_begun(payment))
        query = {name: payment[name] for name in _NAME} | {"operation": Operation.STATUS.value}
        asked = await self._records.newest(REQUESTS, query, since=since) is not None
        found = await self._records.find(CALLBACKS, match, _MOST_CALLBACKS, since=since)
        postings = await self._postings(service_id, network_id)
        return of_payment(
            payment, entry, found.records[::-1], postings, settings, asked=asked,
            live=live_steps(payment, live, settings.text) if payment["mode"] == "P" else None,
        )  # fmt: skip

    async def _of_request(self, name: str, settings: Settings) -> Timeline | None:
        entry = await self._one(REQUESTS, {"id": name})
        if entry is None:
            return None
        service_id, transaction_id = entry["service_id"], entry["transaction_id"]
        if None not in {service_id, transaction_id} and _pays(entry):
            match = {name: entry[name] for name in _NAME}
            since = datetime.fromisoformat(entry["at"])
            found = await self._records.find(TRANSACTIONS, match, _MOST_REQUESTS, since=since)
            for payment in found.records:
                owner = await self._beginning(payment)
                if owner is not None and owner["id"] == name:
                    network_id = str(payment["network_transaction_id"])
                    return await self._of_payment(service_id, network_id, settings)
        return of_request(entry, settings)

    async def _of_callback(self, name: str, settings: Settings) -> Timeline | None:
        callback = await self._one(CALLBACKS, {"id": name})
        if callback is None:
            return None
        service_id, network_id = callback["service_id"], callback["network_transaction_id"]
        of_payment = await self._of_payment(service_id, network_id, settings)
        if of_payment is not None:
            return of_payment
        text = settings.text
        name = text("timeline.of_transaction", transaction=callback["transaction_id"])
        about = f"{text('timeline.of_service', service=service_id)} · {name}"
        badge = Badge(callback["state"], text(f"state.{callback['state']}"))
        steps = tuple(callback_steps(callback, settings))
        return Timeline(text("timeline.callback"), about, badge, steps)

    async def _of_message(self, name: str, settings: Settings) -> Timeline | None:
        message = await self._one(MESSAGES, {"processing_id": name})
        if message is None:
            return None
        subject = message["batch_id"] or message["processing_id"]
        postings = await self._postings(message["service_id"], subject)
        live = None
        if message["mode"] == "P":
            live = await self._attempts(message["processing_id"], message["service_id"])
        steps = live_steps(live, live, settings.text) if live is not None else ()
        return of_message(message, postings, settings, steps)

    async def _beginning(self, payment: Mapping[str, Any]) -> Any:
        """The request that began a transaction: the newest for it that came before."""
        match = {name: payment[name] for name in (*_NAME, "operation")}
        begun = _begun(payment)
        newest: Any = await self._records.newest(REQUESTS, match)
        if newest is None or newest["at"] <= begun:
            return newest
        # The id was used again later.
        entries: Sequence[Any] = (await self._records.find(REQUESTS, match, _MOST_REQUESTS)).records
        return next((each for each in entries if each["at"] <= begun), None)

    async def _attempts(self, network_id: str, service_id: int) -> Any:
        """The transaction or SMS of mode P with its attempts; None without production."""
        if self._live is None:
            return None
        return await self._live.transaction(network_id, service_id)

    async def _postings(self, service_id: int, subject: str) -> Sequence[Any]:
        # With `after` the ledger adds up no balances.
        query = LedgerQuery(service_id=service_id, subject=subject, after=LARGEST_INTEGER)
        page = await self._ledger.page(query)
        return [shown(line.posting) for line in reversed(page.lines)]

    async def _one(self, kind: Kind, match: Mapping[str, object]) -> Any:
        return await self._records.newest(kind, match)


def _begun(payment: Mapping[str, Any]) -> str:
    at: str = payment["timeline"][0]["at"]
    return at


def _pays(entry: Mapping[str, Any]) -> bool:
    path: str = entry["path"]
    return path.endswith(_PAYMENT_PATHS)


def _number(text: str) -> int:
    return int(text[:19]) if text.isascii() and text.isdigit() else 0
