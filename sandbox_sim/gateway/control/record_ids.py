"""Finds a transaction or a callback by any id that belongs to it.

A callback has an id, the network transaction id and the `transaction_id` of its payment; a
transaction has the latter two, and the ids of its callbacks. The client chooses a `transaction_id`,
so several services may have used it, and one service more than once.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from sandbox_sim.domain.clients import ServiceMode
from sandbox_sim.gateway.control.record_search import CALLBACKS, TRANSACTIONS, Records
from sandbox_sim.gateway.control.searches import Kind
from sandbox_sim.gateway.control.wait_for_records import Shown

# So many records that fit are looked at, and so many of them are listed.
_MOST_FITTING: Final = 1000
_LISTED: Final = 10


class AmbiguousId(ValueError):
    """An id fits several records; the text lists them and says what to use instead."""


class RecordIds:
    """service_id: looks only at records of this service; None stands for every service."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def callback(self, any_id: str, service_id: int | None = None) -> Shown | None:
        """The callback that an id names, or None; `AmbiguousId` where it names several."""
        for field in ("id", "network_transaction_id", "transaction_id"):
            found = await self._having(CALLBACKS, field, any_id, service_id)
            if found:
                return _only(found, any_id, "callbacks", _callback, "use the id of one")
        return None

    async def transaction(
        self, any_id: str, service_id: int | None = None, mode: ServiceMode = ServiceMode.SANDBOX
    ) -> Shown | None:
        """The transaction that an id names, or None; `AmbiguousId` where it names several.

        Of those of one service with the same `transaction_id` it is the newest.
        """
        found = await self._having(TRANSACTIONS, "transaction_id", any_id, service_id, mode)
        newest = {record["service_id"]: record for record in reversed(found)}
        if newest:
            instead = "name the service too, or use the network transaction id"
            return _only([*newest.values()], any_id, "transactions", _transaction, instead)
        network_id = any_id
        for callback in await self._having(CALLBACKS, "id", any_id, service_id):
            network_id = str(callback["network_transaction_id"])
        field = "network_transaction_id"
        found = await self._having(TRANSACTIONS, field, network_id, service_id, mode)
        return found[0] if found else None

    async def _having(
        self,
        kind: Kind,
        field: str,
        value: str,
        service_id: int | None,
        mode: ServiceMode | None = None,
    ) -> Sequence[Shown]:
        match: dict[str, object] = {field: value} if mode is None else {field: value, "mode": mode}
        if service_id is not None:
            match["service_id"] = service_id
        return (await self._records.find(kind, match, _MOST_FITTING)).records


def _only(
    found: Sequence[Shown],
    any_id: str,
    plural: str,
    described: Callable[[Shown], str],
    instead: str,
) -> Shown:
    if len(found) == 1:
        return found[0]
    listed = [*map(described, found[:_LISTED])]
    listed += [f"and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
    raise AmbiguousId(
        f"{any_id!r} fits {len(found)} {plural}, so {instead}:\n  " + "\n  ".join(listed)
    )


def _callback(record: Shown) -> str:
    whose = f"service {record['service_id']}, transaction {record['transaction_id']}"
    return f"{record['id']}  {whose}, {record['state']}, created {record['created_at']}"


def _transaction(record: Shown) -> str:
    timeline: Any = record["timeline"]
    whose = f"{record['network_transaction_id']}  service {record['service_id']}"
    return f"{whose}, status {record['status']}, begun {timeline[0]['at']}"
