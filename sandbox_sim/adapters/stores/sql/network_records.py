"""Raw notifications and exchanges of networks in SQL."""

import base64
import json
from collections.abc import Sequence
from typing import Final

from sandbox_sim.adapters.stores.sql.rows import to_datetime, to_micros
from sandbox_sim.adapters.stores.sql.statements import SqlBase, insert, select
from sandbox_sim.domain.networks.exchanges import Exchange
from sandbox_sim.domain.networks.notifications import (
    KeptNotification,
    NotificationState,
    RawNotification,
)

_NOTIFICATION: Final = (
    "network",
    "received_at",
    "document",
    "state",
    "tries",
    "attempt_id",
    "note",
)
_ADD = insert("raw_notifications", _NOTIFICATION) + " RETURNING number"
_NOTIFICATION_BY_NUMBER = select(_NOTIFICATION, "raw_notifications", "number = ?")
_SAVE = (
    "UPDATE raw_notifications SET state = ?, tries = ?, attempt_id = ?, note = ? WHERE number = ?"
)
_ADD_EXCHANGE = insert("exchanges", ("attempt_id", "at", "document"))
_EXCHANGES = select(("at", "document"), "exchanges", "attempt_id = ? ORDER BY number")


class SqlNetworkRecords(SqlBase):
    """The part of a `Unit` that stores what networks send and are sent."""

    async def add_raw_notification(self, raw: RawNotification) -> int:
        state = NotificationState.NEW.value, 0, "", ""
        values = raw.network, to_micros(raw.received_at), _document(raw), *state
        ((number,),) = await self._fetch(_ADD, *values)
        return int(number)

    async def raw_notification(self, number: int) -> KeptNotification | None:
        row = await self._fetch_one(_NOTIFICATION_BY_NUMBER, number)
        if row is None:
            return None
        network, received_at, document, state, tries, attempt_id, note = row
        method, path, query, headers, body = json.loads(document)
        exact = base64.b64decode(body)
        at = to_datetime(received_at)
        raw = RawNotification(network, method, path, query, headers, exact, at)
        return KeptNotification(number, raw, NotificationState(state), tries, attempt_id, note)

    async def save_raw_notification(self, kept: KeptNotification) -> None:
        values = kept.state.value, kept.tries, kept.attempt_id, kept.note
        await self._fetch(_SAVE, *values, kept.number)

    async def add_exchanges(self, exchanges: Sequence[Exchange]) -> None:
        await self._execute_many(
            _ADD_EXCHANGE,
            [(each.attempt_id, to_micros(each.at), _exchange_document(each)) for each in exchanges],
        )

    async def exchanges_of(self, attempt_id: str) -> Sequence[Exchange]:
        found = await self._fetch(_EXCHANGES, attempt_id)
        return [
            Exchange(**{**json.loads(document), "attempt_id": attempt_id, "at": to_datetime(at)})
            for at, document in found
        ]


def _document(raw: RawNotification) -> str:
    body = base64.b64encode(raw.body).decode()
    return json.dumps([raw.method, raw.path, raw.query, dict(raw.headers), body])


def _exchange_document(exchange: Exchange) -> str:
    values = exchange._asdict()
    del values["attempt_id"], values["at"]
    headers = {name: dict(values[name]) for name in ("request_headers", "answer_headers")}
    return json.dumps({**values, **headers})
