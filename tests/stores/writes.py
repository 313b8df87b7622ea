"""One record of each kind, every kind of write, and a read of the whole state of a store."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from sandbox_sim.ports import Unit
from sandbox_sim.ports.clock import ClockState
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import DeliveryState
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.records.ledger import LedgerQuery
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import HistoryQuery, SmsStatus
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.vocabulary import Wallet
from tests.sample_records import (
    NOW,
    SERVICE,
    account_of,
    after,
    callback,
    checkout,
    delivery,
    entry,
    every,
    job,
    message,
    posting,
    postings_of,
    rule,
    transaction,
)

TAKEN = callback("C1", state=DeliveryState.DELIVERED)

Write = Callable[[Unit], Awaitable[object]]


async def prepared(unit: Unit) -> None:
    """Write one record of each kind, before the unit that raises."""
    await unit.add_transaction(transaction("10000000001"))
    await unit.add_card_page(checkout())
    await unit.save_callback(callback("C1"))
    await unit.save_callback(callback("C2"))
    await unit.add_job(job("due"))
    await unit.add_job(job("due too"))
    await unit.add_job(job("later", after(minutes=5), kind=JobKind.DELIVER))
    await unit.add_transfer(posting("500"))
    await unit.add_messages([message("M1")])
    await unit.add_messages([message("M2", batch_id="B1"), message("M3", batch_id="B1")])
    await unit.add_inbox_message("orders", delivery("1"))
    await unit.add_entries([entry("R1")])
    await unit.save_user_rule(rule("O1"))
    await unit.save_callback(callback("held", held=True))


async def state(unit: Unit) -> dict[str, Any]:
    """Everything that can be read without a change to the store."""
    return {
        "transactions": [await unit.transaction(SERVICE, name) for name in ("T1", "T2")],
        "by network id": [
            await unit.transaction_by_network_id(SERVICE, f"1000000000{n}") for n in range(4)
        ],
        "checkouts": [await unit.card_page("P1"), await unit.card_page("P2")],
        "callbacks": list(await unit.list_callbacks(every(SERVICE))),
        "callback": [await unit.callback(SERVICE, f"C{n}") for n in range(4)],
        "next due": await unit.next_due(),
        "balances": [await unit.balance(account_of(SERVICE, account)) for account in Wallet],
        "postings": list(await postings_of(unit, SERVICE)),
        # Without the numbers: they may leave gaps.
        "ledger": [line.transfer for line in await unit.ledger_page(LedgerQuery())],
        "wallets": await unit.balances(None, None),
        "sums": await unit.live_sums(),
        "messages": [list(await unit.messages(SERVICE, f"M{n}")) for n in range(6)],
        "batches": [list(await unit.messages(SERVICE, f"B{n}")) for n in range(3)],
        "history": await unit.history(HistoryQuery(SERVICE)),
        "requests": list(await unit.list_entries(Listing())),
        "dropped": await unit.dropped_entries(None),
        "clock": await unit.clock(),
        "behaviour": await unit.behaviour(),
        "inboxes": [list(await unit.inbox_messages(name, Listing())) for name in ("orders", "new")],
        "rules": list(await unit.user_rules()),
        "held back": list(await unit.services_with_held_callbacks()),
        "snapshots": list(await unit.snapshots()),
    }


async def claim_and_finish(unit: Unit) -> None:
    for claimed in await unit.claim_due(NOW, 10):
        await unit.finish(claimed)


async def add_and_claim(unit: Unit) -> None:
    await unit.add_job(job("new", after(seconds=-5)))
    await unit.claim_due(NOW, 2)


async def save_and_restore_snapshots(unit: Unit) -> None:
    """Save snapshots, delete everything, and restore it. One snapshot is left at the end."""
    await unit.save_snapshot("new", None, NOW)
    await unit.save_snapshot("newer", SERVICE, NOW)
    await unit.reset(None)
    await unit.restore_snapshot("new", after(minutes=1))
    await unit.delete_snapshot("new")


async def change_rules(unit: Unit) -> None:
    await unit.save_user_rule(rule("O1").counted(applied=True))
    await unit.save_user_rule(rule("O2"))
    await unit.delete_user_rule(rule("O1"))


async def decide_and_charge(unit: Unit) -> None:
    """Make many writes in one unit, and some of them twice."""
    pending = transaction("10000000002", transaction_id="T2")
    await unit.add_transaction(pending)
    await unit.save_transaction(pending.with_status(Status.FAILED, NOW))
    await unit.add_transfer(posting("-1"))
    await unit.add_transfer(posting("-2"))
    await unit.save_callback(callback("C3"))
    await unit.save_callback(callback("C3", state=DeliveryState.FAILED))
    await claim_and_finish(unit)


SENT = message("M1", status=SmsStatus.SENT, sent_at=NOW)


WRITES: dict[str, Write] = {
    "a new transaction": lambda u: u.add_transaction(transaction("10000000003")),
    "a decided transaction": lambda u: u.save_transaction(
        transaction("10000000001").with_status(Status.SUCCESSFUL, NOW)
    ),
    "a new checkout": lambda u: u.add_card_page(checkout("P2")),
    "a transaction left to a person": lambda u: u.save_transaction(
        transaction("10000000001", by_hand=True)
    ),
    "a new callback": lambda u: u.save_callback(callback("C3")),
    "a finished callback": lambda u: u.save_callback(TAKEN),
    "a new finished callback": lambda u: u.save_callback(TAKEN._replace(id="C3")),
    "a new job": lambda u: u.add_job(job("new", after(seconds=-5))),
    "a claim": lambda u: u.claim_due(NOW, 1),
    "a claim of all": lambda u: u.claim_due(after(hours=1), 10),
    "a claim and finish": claim_and_finish,
    "a claim of a new job": add_and_claim,
    "jobs that are due earlier": lambda u: u.bring_forward(["later"], after(seconds=-9)),
    "changed rules": change_rules,
    "released callbacks": lambda u: u.release_callbacks(SERVICE, "held"),
    "a posting": lambda u: u.add_transfer(posting("-1")),
    "the first posting": lambda u: u.add_transfer(posting("9", account=Wallet.PAYOUT)),
    "new messages": lambda u: u.add_messages([message("M4", batch_id="B2"), message("M5")]),
    "settled messages": lambda u: u.save_messages([SENT]),
    "an inbox message": lambda u: u.add_inbox_message("orders", delivery("2")),
    "a new inbox": lambda u: u.add_inbox_message("new", delivery("2")),
    "an emptied inbox": lambda u: u.clear_inbox("orders"),
    "requests": lambda u: u.add_entries([entry("R2"), entry("R3", service_id=56)]),
    "an emptied journal": lambda u: u.clear_entries(None),
    "a frozen clock": lambda u: u.save_clock(ClockState(timedelta(minutes=5), NOW)),
    "a changed behaviour": lambda u: u.save_behaviour(Behaviour(approval="handset")),
    "a reset": lambda u: u.reset(SERVICE),
    "a reset of all": lambda u: u.reset(None),
    "a snapshot": lambda u: u.save_snapshot("new", None, NOW),
    "a restored snapshot": save_and_restore_snapshots,
    "much at once": decide_and_charge,
}
