"""After any sequence of units, some of which raise, a store has the state of a simple model."""

import copy
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ports import Unit
from sandbox_sim.records.callbacks import CallbackRecord, DeliveryState
from sandbox_sim.records.inbox import InboxMessage
from sandbox_sim.records.jobs import Job
from sandbox_sim.records.ledger import (
    WALLET,
    Account,
    AccountKind,
    LedgerLine,
    LedgerQuery,
    PendingEnded,
    Transfer,
    TransferKind,
    our_account,
)
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import HistoryQuery, Message, SmsStatus
from sandbox_sim.records.snapshots import with_times_shifted
from sandbox_sim.records.transactions import Status, TransactionRecord, answers_status
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet
from tests.sample_records import (
    callback,
    delivery,
    every,
    job,
    message,
    posting,
    transaction,
    violations,
)
from tests.stores.conftest import Broken, OpenStore

SERVICES = (55, 56)

SANDBOX, LIVE = ServiceMode

IDS = ("T1", "T2")


@dataclass
class Model:
    """The state as plain lists, oldest first; slow, but easy to check.

    jobs: numbered in the order in which they were added. claimed: jobs that were claimed, each with
    the job that the store returned. kept: the content of the snapshot, and when it was saved.
    """

    transactions: list[TransactionRecord] = field(default_factory=list)
    callbacks: list[CallbackRecord] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    claimed: list[tuple[Job, Job]] = field(default_factory=list)
    postings: list[Transfer] = field(default_factory=list)
    live: list[Transfer] = field(default_factory=list)
    pending: list[LedgerLine] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    inbox: list[InboxMessage] = field(default_factory=list)
    planned: int = 0
    kept: "tuple[Model, datetime] | None" = None

    def expected(self) -> dict[str, Any]:
        """The result that `seen` must have."""
        newest = {(t.service_id, t.transaction_id): t for t in self.transactions}
        of_both = [*self.postings, *self.live]
        ended = {each.pending for each in self.live}
        balances: dict[Account, list[Decimal]] = {}
        for each in of_both:
            for account, sign in ((each.debit, -1), (each.credit, 1)):
                moved = (
                    each.amount
                    if each.kind in {TransferKind.POSTED, TransferKind.POST}
                    else Decimal(0)
                )
                balances.setdefault(account, [Decimal(0), Decimal(0)])[0] += sign * moved
        for number, each, _ in self.pending:
            balances[each.debit][1] += Decimal(0) if number in ended else each.amount
        return {
            "newest": {(s, i): newest.get((s, i)) for s in SERVICES for i in IDS},
            "newest ids": {
                (s, i): newest[s, i].network_transaction_id if (s, i) in newest else None
                for s in SERVICES
                for i in IDS
            },
            "by network id": self.transactions,
            "callbacks": [[c for c in self.callbacks[::-1] if c.service_id == s] for s in SERVICES],
            "next due": min((j.due_at for j in self.jobs), default=None),
            "debits are credits": 0,
            "balances": {a: b for a, b in balances.items() if a.kind is WALLET},
            "sums": {
                account: amount
                for account, (amount, _) in balances.items()
                if account.kind is not WALLET and account.is_live and amount
            },
            "postings": [[p for p in self.postings if p.service_id == s] for s in SERVICES],
            "live": self.live[::-1],
            "broken": (),
            "history": [[m for m in self.messages[::-1] if m.service_id == s] for s in SERVICES],
            "inbox": self.inbox[::-1],
        }


async def seen(unit: Unit, model: Model) -> dict[str, Any]:
    """The same values as `Model.expected`, read from the store."""
    balances, sums = await unit.balances(None, None), await unit.live_sums()
    held = sum(b.amount for a, b in balances.items() if a.is_live)
    live = await unit.ledger_page(LedgerQuery(mode=LIVE, limit=1000))
    return {
        "newest": {(s, i): await unit.transaction(s, i) for s in SERVICES for i in IDS},
        "newest ids": {(s, i): await unit.network_id_of(s, i) for s in SERVICES for i in IDS},
        "by network id": [
            await unit.transaction_by_network_id(t.service_id, t.network_transaction_id)
            for t in model.transactions
        ],
        "callbacks": [list(await unit.list_callbacks(every(s))) for s in SERVICES],
        "next due": await unit.next_due(),
        "debits are credits": held + sum(sums.values()),
        "balances": {
            account: [balance.available + balance.pending, balance.pending]
            for account, balance in balances.items()
        },
        "sums": {account: amount for account, amount in sums.items() if amount},
        "postings": [
            [line.transfer for line in reversed(lines)]
            for lines in [
                await unit.ledger_page(LedgerQuery(s, mode=SANDBOX, limit=1000)) for s in SERVICES
            ]
        ],
        "live": [line.transfer for line in live],
        "broken": await violations(unit),
        "history": [list((await unit.history(HistoryQuery(s, limit=1000)))[0]) for s in SERVICES],
        "inbox": list(await unit.inbox_messages("orders", Listing())),
    }


@dataclass(frozen=True)
class Step:
    """One write: its name, its service, and a number that distinguishes it from similar writes."""

    write: str
    service_id: int
    number: int


Write = Callable[[Unit, Model, Step, datetime], Awaitable[None]]


async def begin(unit: Unit, model: Model, step: Step, now: datetime) -> None:
    pending = transaction(
        f"{len(model.transactions):011d}",
        service_id=step.service_id,
        transaction_id=IDS[step.number % 2],
        initiated_at=now,
    )
    model.transactions.append(pending)
    await unit.add_transaction(pending)


async def decide(unit: Unit, model: Model, step: Step, now: datetime) -> None:
    open_ones = [
        (place, t)
        for place, t in enumerate(model.transactions)
        if t.status is Status.PENDING and t.expires_at > now
    ]
    if open_ones:
        place, pending = open_ones[step.number % len(open_ones)]
        model.transactions[place] = pending.with_status(Status.SUCCESSFUL, now)
        await unit.save_transaction(model.transactions[place])


async def notify(unit: Unit, model: Model, step: Step, _now: datetime) -> None:
    made = callback(f"C{len(model.callbacks)}", service_id=step.service_id)
    model.callbacks.append(made)
    await unit.save_callback(made)


async def deliver(unit: Unit, model: Model, step: Step, _now: datetime) -> None:
    waiting = [n for n, c in enumerate(model.callbacks) if c.state is DeliveryState.PENDING]
    if waiting:
        place = waiting[step.number % len(waiting)]
        model.callbacks[place] = model.callbacks[place]._replace(state=DeliveryState.DELIVERED)
        await unit.save_callback(model.callbacks[place])


async def plan(unit: Unit, model: Model, step: Step, now: datetime) -> None:
    planned = job(str(step.number), now + timedelta(minutes=step.number - 5))
    model.planned += 1
    model.jobs.append(planned._replace(number=model.planned))
    await unit.add_job(planned)


async def claim(unit: Unit, model: Model, step: Step, now: datetime) -> None:
    due = [each for each in model.jobs if each.due_at <= now]
    due = sorted(due, key=attrgetter("due_at", "number"))[: step.number]
    claimed = await unit.claim_due(now, step.number)
    assert [each._replace(number=0) for each in claimed] == [d._replace(number=0) for d in due]
    for each in due:
        model.jobs.remove(each)
    model.claimed.extend(zip(due, claimed, strict=True))


async def finish(unit: Unit, model: Model, step: Step, _now: datetime) -> None:
    if model.claimed:
        _, ours = model.claimed.pop(step.number % len(model.claimed))
        await unit.finish(ours)


async def post(unit: Unit, model: Model, step: Step, _now: datetime) -> None:
    account = list(Wallet)[step.number % 4]
    amount = Decimal(step.number - 5) / 8
    model.postings.append(posting(amount, service_id=step.service_id, account=account))
    await unit.add_transfer(model.postings[-1])


async def move(unit: Unit, model: Model, step: Step, _now: datetime) -> None:
    """Post in mode P: into a wallet, or between accounts of ours."""
    moved = posting(step.number, service_id=step.service_id, account=Wallet.PAYOUT, mode=LIVE)
    if step.number % 3 == 0:
        moved = moved._replace(credit=our_account(AccountKind.SUSPENSE, LIVE, "GHS"))
    model.live.append(moved)
    await unit.add_transfer(moved)


async def set_aside(unit: Unit, model: Model, step: Step, _now: datetime) -> None:
    """Begin a pending transfer, if its amount is available."""
    moved = posting(
        -step.number, service_id=step.service_id, account=Wallet.PAYOUT, mode=LIVE, subject="H"
    )._replace(kind=TransferKind.PENDING)
    balance = await unit.balance(moved.debit)
    if step.number and balance is not None and balance.available >= step.number:
        line = LedgerLine(await unit.add_transfer(moved), moved)
        model.live.append(moved)
        model.pending.append(line)
        assert await unit.open_transfer(moved.debit, "H") == line


async def end(unit: Unit, model: Model, step: Step, now: datetime) -> None:
    """Post a part of a pending transfer, or all, or void it; it cannot end a second time."""
    if not model.pending:
        return
    pending = model.pending[step.number % len(model.pending)]
    parts = [None, *(pending.transfer.amount / each for each in (1, 2))]
    part = parts[step.number % 3]
    ending = (
        pending.voided(now) if part is None else pending.posted(now, pending.transfer.credit, part)
    )
    if pending.number in {each.pending for each in model.live}:
        with pytest.raises(PendingEnded):
            await unit.add_transfer(ending)
    else:
        await unit.add_transfer(ending)
        model.live.append(ending)


async def reset_service(unit: Unit, model: Model, step: Step, _now: datetime) -> None:
    """Reset one service; its records of mode P stay."""
    await unit.reset(step.service_id)
    for name in ("transactions", "callbacks", "jobs", "postings", "messages"):
        kept = [each for each in getattr(model, name) if each.service_id != step.service_id]
        setattr(model, name, kept)
    model.claimed = [each for each in model.claimed if each[0].service_id != step.service_id]


async def send(unit: Unit, model: Model, step: Step, _now: datetime) -> None:
    count = len(model.messages)
    sent = [
        message(f"M{count + n}", service_id=step.service_id) for n in range(step.number % 2 + 1)
    ]
    model.messages += sent
    await unit.add_messages(sent)


async def settle(unit: Unit, model: Model, step: Step, now: datetime) -> None:
    if model.messages:
        place = step.number % len(model.messages)
        kept = model.messages[place]._replace(status=SmsStatus.SENT, sent_at=now)
        model.messages[place] = kept
        await unit.save_messages([kept])


async def receive(unit: Unit, model: Model, step: Step, _now: datetime) -> None:
    model.inbox.append(delivery(str(step.number)))
    await unit.add_inbox_message("orders", model.inbox[-1])


async def clear(unit: Unit, model: Model, _step: Step, _now: datetime) -> None:
    assert await unit.clear_inbox("orders") == len(model.inbox)
    model.inbox.clear()


async def save_snapshot(unit: Unit, model: Model, _step: Step, now: datetime) -> None:
    kept = copy.deepcopy(model)
    kept.jobs += [planned for planned, _ in kept.claimed]
    kept.claimed, kept.kept = [], None
    kept.transactions = [
        each
        for each in kept.transactions
        if answers_status(each, now) or each.status is Status.PENDING
    ]
    model.kept = kept, now
    await unit.save_snapshot("kept", None, now)


async def restore_snapshot(unit: Unit, model: Model, _step: Step, now: datetime) -> None:
    """Restore the snapshot. Each time moves by the time since the snapshot was saved."""
    assert (await unit.restore_snapshot("kept", now) is None) is (model.kept is None)
    if model.kept is not None:
        kept, at = model.kept
        model.claimed.clear()
        for name in RECORDS:
            setattr(
                model, name, [with_times_shifted(each, now - at) for each in getattr(kept, name)]
            )


RECORDS = ("transactions", "callbacks", "jobs", "postings", "messages", "inbox")

WRITES: dict[str, Write] = {
    write.__name__: write
    for write in (
        *(begin, decide, notify, deliver, plan, claim, finish, post, move, set_aside, end),
        *(reset_service, send, settle, receive, clear, save_snapshot, restore_snapshot),
    )
}


steps = st.builds(Step, st.sampled_from(list(WRITES)), st.sampled_from(SERVICES), st.integers(0, 9))

# The minutes since the unit before, the steps of the unit, and whether it raises at its end.
units = st.tuples(st.sampled_from([0, 0, 1, 7, 40]), st.lists(steps, max_size=6), st.booleans())


BEGIN, DECIDE = Step("begin", 55, 0), Step("decide", 55, 0)

EXAMPLES = 4 if settings.get_current_profile_name() == "suite" else settings().max_examples // 2


@pytest.mark.timeout(240)  # SQL over a socket; with --hypothesis-profile=wide 24 s
@settings(max_examples=EXAMPLES)
@example(sequence=[(0, [BEGIN], True), (40, [BEGIN, DECIDE], False), (1, [BEGIN], False)])
@given(sequence=st.lists(units, max_size=12))
async def test_a_store_has_the_state_of_the_model_after_any_units(
    open_store: OpenStore, sequence: list[tuple[int, list[Step], bool]]
) -> None:
    clock, model = VirtualClock(), Model()
    async with open_store(clock) as store:
        for minutes, writes, breaks in sequence:
            clock.move_to(clock.now() + timedelta(minutes=minutes))

            async def work(
                unit: Unit,
                model: Model = model,
                writes: list[Step] = writes,
                fail: bool = breaks,
            ) -> Model:
                attempted = copy.deepcopy(model)
                for step in writes:
                    await WRITES[step.write](unit, attempted, step, clock.now())
                assert await seen(unit, attempted) == attempted.expected()
                if fail:
                    raise Broken
                return attempted

            with suppress(Broken):
                model = await store.run(work)

            async def look(unit: Unit, model: Model = model) -> None:
                assert await seen(unit, model) == model.expected()

            await store.run(look)
