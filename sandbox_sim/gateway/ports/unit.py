"""One unit of work on the state."""

from typing import Protocol

from sandbox_sim.gateway.ports.callback_records import CallbackRecords
from sandbox_sim.gateway.ports.control_records import ControlRecords
from sandbox_sim.gateway.ports.job_records import JobRecords
from sandbox_sim.gateway.ports.journal_records import JournalRecords
from sandbox_sim.gateway.ports.ledger_records import LedgerRecords
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
    Protocol,
):
    """One unit of work on the state: all of it happens, or none.

    Its methods are coroutines so that a store may wait for its database; work handed to
    `Store.run` awaits nothing but them. What was written in a unit is read back in it.
    """
