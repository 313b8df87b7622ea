"""One unit of work on the state."""

from typing import Protocol

from sandbox_sim.gateway.ports.attempt_records import AttemptRecords
from sandbox_sim.gateway.ports.books import Books
from sandbox_sim.gateway.ports.callback_records import CallbackRecords
from sandbox_sim.gateway.ports.control_records import ControlRecords
from sandbox_sim.gateway.ports.job_records import JobRecords
from sandbox_sim.gateway.ports.journal_records import JournalRecords
from sandbox_sim.gateway.ports.ledger_records import LedgerRecords
from sandbox_sim.gateway.ports.network_records import NetworkRecords
from sandbox_sim.gateway.ports.payment_records import PaymentRecords
from sandbox_sim.gateway.ports.sms_records import SmsRecords


class Unit(
    PaymentRecords,
    CallbackRecords,
    SmsRecords,
    LedgerRecords,
    JournalRecords,
    JobRecords,
    ControlRecords,
    AttemptRecords,
    Books,
    NetworkRecords,
    Protocol,
):
    """One unit of work on the state: either all that it writes is saved, or nothing.

    Its methods are coroutines because a store may wait for its database. Work that is given to
    `Store.run` awaits nothing else. A unit reads what it has written itself.

    Locking. In memory and in SQLite one unit runs at a time. In Postgres units run side by side; a
    method that locks says so. A lock covers one key, also where there is no such record yet, and
    lasts until the unit ends: the next unit that locks the key waits, and then reads what this one
    wrote. What is read without a lock may change before the unit ends.

    Errors. Every method may raise `StoreError`, and then the unit must end. A method that raises
    anything else says so.

    Order. "Newest first" and "oldest first" mean the order in which records were first added, by
    all servers; a later `save` does not move a record.
    """
