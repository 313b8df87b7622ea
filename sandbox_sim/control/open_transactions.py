"""The transactions that have been pending for long, of both modes. Source: D39, D40."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from sandbox_sim.control.record_search import TRANSACTIONS, RecordSearch
from sandbox_sim.ports import Clock
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.timestamps import iso

if TYPE_CHECKING:  # serve starts faster without what only production needs
    from sandbox_sim.production.attempt_views import LiveRecordReader


_PENDING: Final = {"mode": ServiceMode.SANDBOX.value, "status": Status.PENDING.value}


@dataclass(frozen=True, eq=False)
class OpenTransactions:
    """Lists them. live: the records of production; None where it is off."""

    records: RecordSearch
    clock: Clock
    live: "LiveRecordReader | None"

    async def longer_than(self, duration: timedelta) -> Sequence[Mapping[str, Any]]:
        """Those that have been pending for longer, newest first.

        Of mode P each says why it is open, and SMS are among them.
        """
        opened_before = self.clock.now() - duration
        live = () if self.live is None else await self.live.opened_before(opened_before)
        found = await self.records.find(TRANSACTIONS, _PENDING, sys.maxsize)
        pending = [each for each in found.records if begun(each) <= iso(opened_before)]
        return sorted((*live, *pending), key=begun, reverse=True)


def begun(transaction: Mapping[str, Any]) -> str:
    """When a transaction began, in ISO 8601."""
    at: str = transaction["timeline"][0]["at"]
    return at
