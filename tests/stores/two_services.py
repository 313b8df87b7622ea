"""The records of two services: one of each kind that is finished, and one that is not."""

from typing import Any

from sandbox_sim.ports import Unit
from sandbox_sim.records.callbacks import DeliveryAttempt, DeliveryState
from sandbox_sim.records.ledger import LedgerQuery
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import HistoryQuery, SmsStatus
from sandbox_sim.records.overrides import Match
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
    job,
    message,
    posting,
    postings_of,
    rule,
    transaction,
)

OTHER = 56
BOTH = (SERVICE, OTHER)

TRIED = DeliveryAttempt(
    1, NOW, 500, 7, "out of order", "not acknowledged", "http://shop.test", after(minutes=5)
)


async def add_records(unit: Unit, *, service_id: int = SERVICE, run: int = 1) -> None:
    """Write two records of each kind: one that is finished, and one that is not."""
    own: dict[str, Any] = {"service_id": service_id}
    for n in (1, 2):
        name, network_id = f"{service_id}-{run}-{n}", f"1{service_id:05d}{run:04d}{n}"
        decided = {"status": Status.SUCCESSFUL, "decided_at": NOW} if n == 1 else {}
        await unit.add_transaction(
            transaction(network_id, transaction_id=f"T{n}", **own, **decided)
        )
        await unit.add_card_page(checkout(f"P{name}", network_transaction_id=network_id, **own))
        done = {"state": DeliveryState.FAILED} if n == 1 else {}
        await unit.save_callback(callback(f"C{name}", attempts=(TRIED,), **own, **done))
        await unit.add_job(job(f"C{name}", after(minutes=n), **own))
        await unit.add_transfer(posting(**own))
        settled = {"status": SmsStatus.SENT, "sent_at": NOW} if n == 1 else {}
        await unit.add_messages([message(f"M{name}", batch_id=f"B{name}", **own, **settled)])
        await unit.add_entries([entry(f"R{name}", **own)])
        await unit.save_user_rule(rule(f"O{name}", match=Match(**own)))


async def records_of(unit: Unit, service_id: int) -> dict[str, Any]:
    """All records of a service, without jobs."""
    everything = Listing(service_id, limit=100)
    names = [f"{service_id}-{run}-{n}" for run in (1, 2) for n in (1, 2)]
    return {
        "named": [await unit.transaction(service_id, f"T{n}") for n in (1, 2)],
        "transactions": list(await unit.list_transactions(everything)),
        "pages": [await unit.card_page(f"P{name}") for name in names],
        "callbacks": list(await unit.list_callbacks(everything)),
        "balance": await unit.balance(account_of(service_id, Wallet.SMS)),
        "postings": list(await postings_of(unit, service_id)),
        "ledger": list(await unit.ledger_page(LedgerQuery(service_id))),
        "wallets": sorted((await unit.balances(None, service_id)).items()),
        "history": list((await unit.history(HistoryQuery(service_id)))[0]),
        "messages": list(await unit.list_messages(everything)),
        "batches": [list(await unit.messages(service_id, f"B{name}")) for name in names],
        "requests": list(await unit.list_entries(everything)),
        "rules": [r for r in await unit.user_rules() if r.match.service_id == service_id],
    }


async def all_records(unit: Unit) -> dict[str, Any]:
    """All records of both services, and those that they share."""
    return {
        "services": [await records_of(unit, each) for each in BOTH],
        "transactions": list(await unit.list_transactions(Listing())),
        "callbacks": list(await unit.list_callbacks(Listing())),
        "messages": list(await unit.list_messages(Listing())),
        "ledger": list(await unit.ledger_page(LedgerQuery())),
        "requests": list(await unit.list_entries(Listing())),
        "inbox": list(await unit.inbox_messages("orders", Listing())),
        "rules": list(await unit.user_rules()),
    }


async def add_records_of_both(unit: Unit) -> None:
    """Write the records of both services, and a delivery to an inbox, which is of neither."""
    for service_id in BOTH:
        await add_records(unit, service_id=service_id)
    await unit.add_inbox_message("orders", delivery("1"))
