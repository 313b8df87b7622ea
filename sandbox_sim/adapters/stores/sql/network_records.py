"""Raw notifications, exchanges and parts of messages in SQL."""

import base64
import json
from collections.abc import Sequence
from typing import Final

from sandbox_sim.adapters.stores.sql.rows import Row, to_datetime, to_micros
from sandbox_sim.adapters.stores.sql.statements import SqlBase, insert, select
from sandbox_sim.domain.networks.exchanges import Exchange
from sandbox_sim.domain.networks.message_parts import MessagePart
from sandbox_sim.domain.networks.notifications import (
    KeptNotification,
    NotificationState,
    RawNotification,
)
from sandbox_sim.domain.networks.outcomes import Outcome

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
_PART: Final = MessagePart._fields
_ADD_PART = insert("message_parts", _PART) + " ON CONFLICT (attempt_id, number) DO NOTHING"
_SAVE_PART = "UPDATE message_parts SET outcome = ? WHERE attempt_id = ? AND number = ?"
_FIND_PART = select(
    _PART, "message_parts", "network = ? AND network_id = ? ORDER BY serial DESC LIMIT 1"
)
_PARTS = select(_PART, "message_parts", "attempt_id = ? ORDER BY number")


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

    async def add_message_part(self, part: MessagePart) -> None:
        await self._fetch(_ADD_PART, *part[:-1], part.outcome.value)

    async def save_message_part(self, part: MessagePart) -> None:
        await self._fetch(_SAVE_PART, part.outcome.value, part.attempt_id, part.number)

    async def find_message_part(self, network: str, network_id: str) -> MessagePart | None:
        row = await self._fetch_one(_FIND_PART, network, network_id)
        return None if row is None else _to_part(row)

    async def message_parts(self, attempt_id: str) -> Sequence[MessagePart]:
        return [_to_part(row) for row in await self._fetch(_PARTS, attempt_id)]


def _to_part(row: Row) -> MessagePart:
    part = MessagePart(*row)
    return part._replace(outcome=Outcome(part.outcome))


def _document(raw: RawNotification) -> str:
    body = base64.b64encode(raw.body).decode()
    return json.dumps([raw.method, raw.path, raw.query, dict(raw.headers), body])


def _exchange_document(exchange: Exchange) -> str:
    values = exchange._asdict()
    del values["attempt_id"], values["at"]
    headers = {name: dict(values[name]) for name in ("request_headers", "answer_headers")}
    return json.dumps({**values, **headers})
