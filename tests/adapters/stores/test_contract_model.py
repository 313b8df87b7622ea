"""After any sequence of units, some of which raise, a store has the state of a simple model."""

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.callbacks.delivery_state import DeliveryState
from sandbox_sim.domain.callbacks.inbox import InboxMessage
from sandbox_sim.domain.control.listing import Listing
from sandbox_sim.domain.control.snapshots import with_times_shifted
from sandbox_sim.domain.jobs import Job
from sandbox_sim.domain.ledger import Account, Audit, LedgerQuery, Posting
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.sms.sms_messages import HistoryQuery, Message, SmsStatus
from sandbox_sim.gateway.ports import Unit
from tests.adapters.stores.conftest import OpenStore
from tests.records import callback, delivery, every, job, message, posting, transaction

SERVICES = (55, 56)
IDS = ("T1", "T2")


class Broken(Exception):
    """Raised in a unit, so that the store rolls it back."""


@dataclass
class Model:
    """The state as plain lists, oldest first; slow, but easy to check.

    jobs: numbered in the order in which they were added. claimed: jobs that were claimed, each with
    the job that the store returned. kept: the content of the snapshot, and when it was saved.
    """

    transactions: list[Transaction] = field(default_factory=list)
    callbacks: list[Callback] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    claimed: list[tuple[Job, Job]] = field(default_factory=list)
    postings: list[Posting] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    inbox: list[InboxMessage] = field(default_factory=list)
    promised: int = 0
    kept: "tuple[Model, datetime] | None" = None

    def expected(self, now: datetime) -> dict[str, Any]:
        """What `seen` must return."""
        live = [t for t in self.transactions if t.expires_at > now]
        newest = {(t.service_id, t.transaction_id): t for t in live}
        amounts: dict[tuple[int, Account], Decimal] = {}
        for entry in self.postings:
            key = entry.service_id, entry.account
            amounts[key] = amounts.get(key, Decimal(0)) + entry.amount
        return {
            "newest": {(s, i): newest.get((s, i)) for s in SERVICES for i in IDS},
            "by network id": live,
            "callbacks": [[c for c in self.callbacks[::-1] if c.service_id == s] for s in SERVICES],
            "next due": min((j.due_at for j in self.jobs), default=None),
            "balances": amounts,
            "postings": [[p for p in self.postings if p.service_id == s] for s in SERVICES],
            "ledger": self.postings[::-1],
            "audit": {Audit(*key, amount, amount) for key, amount in amounts.items()},
            "history": [[m for m in self.messages[::-1] if m.service_id == s] for s in SERVICES],
            "inbox": self.inbox[::-1],
        }


async def seen(unit: Unit, model: Model, now: datetime) -> dict[str, Any]:
    """The same values as `Model.expected`, read from the store."""
    live = [t for t in model.transactions if t.expires_at > now]
    amounts = {(s, a): await unit.balance(s, a) for s in SERVICES for a in Account}
    return {
        "newest": {(s, i): await unit.transaction(s, i) for s in SERVICES for i in IDS},
        "by network id": [
            await unit.transaction_by_network_id(t.service_id, t.network_transaction_id)
            for t in live
        ],
        "callbacks": [list(await unit.list_callbacks(every(s))) for s in SERVICES],
        "next due": await unit.next_due(),
        "balances": {key: balance.amount for key, balance in amounts.items() if balance},
        "postings": [list(await unit.postings(s)) for s in SERVICES],
        "ledger": [line.posting for line in await unit.ledger_page(LedgerQuery(limit=1000))],
        "audit": set(await unit.audit(None)),
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
    begun = transaction(
        f"{len(model.transactions):011d}",
        service_id=step.service_id,
        transaction_id=IDS[step.number % 2],
        initiated_at=now,
    )
    model.transactions.append(begun)
    await unit.add_transaction(begun)


async def decide(unit: Unit, model: Model, step: Step, now: datetime) -> None:
    open_ones = [
        (place, t)
        for place, t in enumerate(model.transactions)
        if t.status is Status.PENDING and t.expires_at > now
    ]
    if open_ones:
        place, pending = open_ones[step.number % len(open_ones)]
        model.transactions[place] = pending.moved(Status.SUCCESSFUL, now)
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


async def promise(unit: Unit, model: Model, step: Step, now: datetime) -> None:
    promised = job(str(step.number), now + timedelta(minutes=step.number - 5))
    model.promised += 1
    model.jobs.append(promised._replace(number=model.promised))
    await unit.add_job(promised)


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
    account = list(Account)[step.number % 4]
    amount = Decimal(step.number - 5) / 8
    model.postings.append(posting(amount, service_id=step.service_id, account=account))
    await unit.post(model.postings[-1])


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


async def keep(unit: Unit, model: Model, _step: Step, now: datetime) -> None:
    kept = copy.deepcopy(model)
    kept.jobs += [promised for promised, _ in kept.claimed]
    kept.claimed, kept.kept = [], None
    model.kept = kept, now
    await unit.save_snapshot("kept", None, now)


async def put_back(unit: Unit, model: Model, _step: Step, now: datetime) -> None:
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
        begin,
        decide,
        notify,
        deliver,
        promise,
        claim,
        finish,
        post,
        send,
        settle,
        receive,
        clear,
        keep,
        put_back,
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
async def test_a_store_does_what_the_model_does(
    open_store: OpenStore, sequence: list[tuple[int, list[Step], bool]]
) -> None:
    clock, model = VirtualClock(), Model()
    async with open_store(clock) as store:
        for minutes, writes, breaks in sequence:
            clock.move_to(clock.now() + timedelta(minutes=minutes))
            attempted = copy.deepcopy(model)

            async def work(
                unit: Unit,
                model: Model = attempted,
                writes: list[Step] = writes,
                fail: bool = breaks,
            ) -> None:
                for step in writes:
                    await WRITES[step.write](unit, model, step, clock.now())
                assert await seen(unit, model, clock.now()) == model.expected(clock.now())
                if fail:
                    raise Broken

            try:
                await store.run(work)
                model = attempted
            except Broken:
                pass

            async def look(unit: Unit, model: Model = model) -> None:
                assert await seen(unit, model, clock.now()) == model.expected(clock.now())

            await store.run(look)
