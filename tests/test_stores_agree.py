"""Gateways that differ only in their store give the same answers to the same requests."""

import asyncio
import unittest
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final, TypeVar

from aiohttp import ClientSession, web
from hypothesis import Phase, settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.bootstrap import build
from sandbox_sim.ledger.ledger_control import Violation
from sandbox_sim.ports import Unit
from sandbox_sim.records.listing import Listing
from sandbox_sim.records.messages import HistoryQuery, SmsStatus
from sandbox_sim.settings.schema import Settings
from sandbox_sim.web.transport.server import GatewayRunner
from tests import postgres
from tests.conftest import Sandbox, Seen
from tests.fakes import FakeSender
from tests.sample_records import postings_of, violations
from tests.sqlite_files import IN_MEMORY

T = TypeVar("T")

# The value of the setting `store` for each store; files go into the given folder.
STORES: Final[Mapping[str, Callable[[Path], str]]] = {
    "memory": lambda _folder: "memory:",
    "sqlite": lambda folder: f"sqlite:{folder / 'state.sqlite3'}",
    "postgres": lambda _folder: postgres.empty_database(),
}

SERVICES = (55, 59)
# The units of service 55 at the start: few, so that it can use all of them.
UNITS = 9
TRANSACTION_IDS = ("T1", "T2")
WILLING, REFUSING = "http://shop.test/callback", "http://broken.test/callback"
services = st.sampled_from(SERVICES)
numbers = st.sampled_from(["0244000001", "233200000002", "0270000009", "0244000019"])
payments = st.fixed_dictionaries(
    {
        "service_id": services,
        "transaction_id": st.sampled_from(TRANSACTION_IDS),
        "callback_url": st.sampled_from([WILLING, REFUSING]),
        "amount": st.sampled_from([10.5, 0.1, 4, 9999.99]),
    }
)
good_or_declined = st.sampled_from(["0244000001", "0244000009"])
texts = st.sampled_from(["Sale", "x" * 161, "Ɛ" * 71])  # of one page, of two and of two
DAYS = ("2025-12-31", "2026-01-01", "2026-01-02", "9999-12-31")
days = st.sampled_from(DAYS)
moves = st.sampled_from(
    [
        timedelta(),
        timedelta(milliseconds=500),
        timedelta(milliseconds=800),
        timedelta(seconds=1),
        timedelta(seconds=3),
        timedelta(minutes=5),
        timedelta(minutes=14, seconds=59),
        timedelta(minutes=15),
        timedelta(hours=1),
        timedelta(days=1, minutes=15),
        timedelta(days=3),
    ]
)


class KnownIds(RandomIds):
    """Gives the same tokens in every run too."""

    def token(self) -> str:
        return self.record_id()


@dataclass(frozen=True)
class Side:
    """A gateway on one of the stores, and the sender of its callbacks."""

    store: str
    sandbox: Sandbox
    sender: FakeSender

    def sent(self) -> tuple[list[Any], Counter[Any]]:
        """Return the callbacks to WILLING in order, and those to REFUSING without an order.

        Attempts that fail together are recorded, and so repeated, in any order.
        """
        sent = [
            (post.url, post.headers["X-Service-Signature"], post.body) for post in self.sender.posts
        ]
        in_order = [each for each in sent if each[0] == WILLING]
        return in_order, Counter(each for each in sent if each[0] == REFUSING)


async def state(unit: Unit) -> list[Any]:
    """Return the records of all services, the next due time, and the clock."""
    return [
        *[await records_of(unit, service_id) for service_id in SERVICES],
        await unit.next_due(),
        await unit.clock(),
    ]


async def records_of(unit: Unit, service_id: int) -> list[Any]:
    """Return the records of one service."""
    everything = Listing(service_id, limit=1000)
    return [
        [await unit.transaction(service_id, each) for each in TRANSACTION_IDS],
        await unit.list_transactions(everything),
        await unit.list_callbacks(everything),
        await unit.list_messages(everything),
        [await unit.history(query) for query in queries(service_id)],
        await postings_of(unit, service_id),
        await unit.balances(None, service_id),
    ]


def queries(service_id: int) -> Iterator[HistoryQuery]:
    """Yield a history query from and to each day, and for each status."""
    plain = HistoryQuery(service_id, limit=2)
    for day in map(date.fromisoformat, DAYS[:3]):
        yield replace(plain, start_date=day)
        yield replace(plain, end_date=day, page=2)
    for status in (SmsStatus.ACKNOWLEDGED, SmsStatus.SENT, SmsStatus.REFUNDED):
        yield replace(plain, status=status)


class Gateways(RuleBasedStateMachine):
    """Sends every gateway the same requests."""

    pages = Bundle("pages")
    batches = Bundle("batches")

    stores: ClassVar[tuple[str, ...]] = ("memory", "sqlite")

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory(dir=IN_MEMORY)
        self.loop = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.sides: list[Side] = []

    @initialize(
        balances=st.sampled_from(["fixed", "live"]),
        duplicates=st.sampled_from(["accept", "reject"]),
    )
    def start(self, balances: str, duplicates: str) -> None:
        chosen = {"balances": balances, "duplicates": duplicates}
        self._do(self._start(chosen))

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.get_loop().run_until_complete(work)

    async def _start(self, chosen: dict[str, str]) -> None:
        self.session = ClientSession()
        for name in self.stores:
            sender = FakeSender()
            sender.refuses.add(REFUSING)
            store = STORES[name](Path(self.folder.name))
            texts = {"store": store, "public_url": "http://gateway.test", **chosen}
            made = Settings(sms_initial_units=UNITS, **texts)
            gateway = build(made, clock=VirtualClock(), ids=KnownIds(seed=1), sender=sender)
            runner = GatewayRunner(gateway.app)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            side = Side(name, Sandbox(url, gateway, self.session, runner), sender)
            self.sides.append(side)

    def teardown(self) -> None:
        async def stop() -> None:
            for side in self.sides:
                await side.sandbox.stop()
            await self.session.close()

        if self.sides:
            self._do(stop())
        self.loop.close()
        self.folder.cleanup()

    def ask(self, question: Callable[[Sandbox], Awaitable[Any]]) -> Any:
        """Ask all gateways a question; assert that all answers are equal, and return one."""

        async def all_of_them() -> list[Any]:
            return await asyncio.gather(*(question(side.sandbox) for side in self.sides))

        answers = map(_comparable, self._do(all_of_them()))
        by_store = {side.store: answer for side, answer in zip(self.sides, answers, strict=True)}
        first = by_store[self.sides[0].store]
        assert by_store == dict.fromkeys(by_store, first)
        return first

    # Payments.

    @rule(payment=payments, number=good_or_declined)
    def collect(self, payment: dict[str, Any], number: str) -> None:
        self.ask(lambda sandbox: sandbox.collect(customer_number=number, **payment))

    @rule(payment=payments)
    def collect_from_an_unlisted_number(self, payment: dict[str, Any]) -> None:
        _, rule_, body = self.ask(lambda s: s.collect(customer_number="0540000001", **payment))
        assert (rule_, body["response_code"]) == ("sandbox.1", "019")

    @rule(payment=payments)
    def collect_too_much(self, payment: dict[str, Any]) -> None:
        _, _, body = self.ask(lambda s: s.collect(**{**payment, "amount": 10000.01}))
        assert body["response_code"] == "016"

    @rule(payment=payments, number=good_or_declined)
    def deposit(self, payment: dict[str, Any], number: str) -> None:
        self.ask(lambda sandbox: sandbox.deposit(customer_number=number, **payment))

    @rule(payment=payments, number=good_or_declined)
    def pay_out(self, payment: dict[str, Any], number: str) -> None:
        self.ask(lambda sandbox: sandbox.payout(customer_number=number, **payment))

    @rule(payment=payments, number=good_or_declined)
    def buy_airtime(self, payment: dict[str, Any], number: str) -> None:
        self.ask(lambda sandbox: sandbox.airtime(customer_number=number, **payment))

    @rule(payment=payments, account=st.sampled_from(["200000000001", "200000000009", "0244000001"]))
    def pay_bill(self, payment: dict[str, Any], account: str) -> None:
        self.ask(lambda sandbox: sandbox.bill(account_number=account, **payment))

    @rule(target=pages, payment=payments)
    def begin_card_payment(self, payment: dict[str, Any]) -> Any:
        _, _, body = self.ask(lambda sandbox: sandbox.card(**payment))
        if body["response_code"] != "000":
            return multiple()
        return body["redirect_url"].removeprefix("http://gateway.test")

    @rule(page=pages, method=st.sampled_from(["GET", "HEAD"]))
    def look_at_page(self, page: str, method: str) -> None:
        self.ask(lambda sandbox: browse(sandbox, method, page))

    @rule(page=consumes(pages), choice=st.sampled_from(["pay", "fail", "cancel", ""]))
    def decide_on_page(self, page: str, choice: str) -> None:
        self.ask(lambda sandbox: browse(sandbox, "POST", page, choice=choice))

    # SMS.

    @rule(service_id=services, number=numbers, text=texts)
    def send(self, service_id: int, number: str, text: str) -> None:
        self.ask(lambda s: s.sms(service_id=service_id, customer_number=number, msg_body=text))

    @rule(
        target=batches,
        service_id=services,
        recipients=st.lists(numbers, min_size=1, max_size=4),
        text=texts,
    )
    def send_to_many(self, service_id: int, recipients: list[str], text: str) -> Any:
        _, _, body = self.ask(lambda s: s.bulk(*recipients, service_id=service_id, msg_body=text))
        if body["response_code"] != "370":
            return multiple()
        return body["response_data"]["batch_id"]

    @rule(
        service_id=services,
        fields=st.sampled_from(
            [
                {"sender_id": ""},
                {"msg_body": " "},
                {"recipients": []},
                {"recipients": ["0244000001", "0540000001"]},
            ]
        ),
    )
    def send_a_refused_bulk(self, service_id: int, fields: dict[str, Any]) -> None:
        refused = {"recipients": ["0244000001"], "msg_body": "Hi", "sender_id": "Shop", **fields}
        body = {"service_id": service_id, **refused}
        _, _, answer = self.ask(lambda sandbox: sandbox.post("/sms/bulk", body))
        assert answer["response_code"] in {"216", "371", "389", "S002"}

    # Questions.

    @rule(service_id=services, transaction_id=st.sampled_from(TRANSACTION_IDS))
    def ask_for_status(self, service_id: int, transaction_id: str) -> None:
        self.ask(lambda sandbox: sandbox.status(transaction_id, service_id))

    @rule(service_id=services)
    def ask_for_balances(self, service_id: int) -> None:
        self.ask(lambda sandbox: sandbox.balance(service_id))

    @rule(service_id=services)
    def ask_for_units(self, service_id: int) -> None:
        self.ask(lambda sandbox: sandbox.sms_balance(service_id))

    @rule(
        service_id=services,
        filters=st.fixed_dictionaries(
            {},
            optional={
                "page": st.integers(1, 4),
                "limit": st.integers(1, 4),
                "status": st.sampled_from(["ACKNOWLEDGED", "S", "REFUNDED", "F"]),
                "start_date": days,
                "end_date": days,
            },
        ),
        batch_id=st.none() | batches,
    )
    def ask_for_history(
        self, service_id: int, filters: dict[str, Any], batch_id: str | None
    ) -> None:
        if batch_id is not None:
            filters = {**filters, "batch_id": batch_id}
        self.ask(lambda s: s.post("/sms/history", {"service_id": service_id, **filters}))

    # Actions of the control API.

    @rule(
        service_id=services,
        transaction_id=st.sampled_from(TRANSACTION_IDS),
        status=st.sampled_from(["000", "001", "003"]),
    )
    def settle(self, service_id: int, transaction_id: str, status: str) -> None:
        path = f"/_sandbox/transactions/{service_id}/{transaction_id}/settle"
        self.ask(lambda sandbox: post_to_control(sandbox, path, status=status))

    @rule(which=st.integers(0, 3))
    def resend(self, which: int) -> None:
        """Resend one of the newest callbacks, in any state."""
        made = self.ask(lambda sandbox: post_to_control(sandbox, "/_sandbox/callbacks/find"))
        callbacks = made[1]["callbacks"]
        if which < len(callbacks):
            path = f"/_sandbox/callbacks/{callbacks[which]['id']}/resend"
            self.ask(lambda sandbox: post_to_control(sandbox, path))

    @rule(service_id=services, units=st.integers(1, 5))
    def top_up(self, service_id: int, units: int) -> None:
        path = "/_sandbox/ledger/topup"
        self.ask(lambda sandbox: post_to_control(sandbox, path, service_id=service_id, units=units))

    @rule(service_id=st.none() | services)
    def reset(self, service_id: int | None) -> None:
        """Reset one service, or all."""
        asked = {} if service_id is None else {"service_id": service_id}
        self.ask(lambda sandbox: post_to_control(sandbox, "/_sandbox/reset", **asked))

    @rule()
    def look_into_the_journal(self) -> None:
        self.ask(journal)

    # Time.

    @rule(by=moves)
    def advance(self, by: timedelta) -> None:
        self.ask(lambda sandbox: sandbox.advance(microseconds=by // timedelta(microseconds=1)))

    @rule(recovered=st.booleans())
    def receiver_breaks_or_recovers(self, recovered: bool) -> None:
        for side in self.sides:
            (side.sender.refuses.discard if recovered else side.sender.refuses.add)(REFUSING)

    # Invariants.

    @invariant()
    def the_stores_keep_and_send_the_same(self) -> None:
        self.ask(kept)
        sent = {side.store: side.sent() for side in self.sides}
        assert sent == dict.fromkeys(sent, self.sides[0].sent())

    @invariant()
    def the_ledger_keeps_its_rules(self) -> None:
        assert self.ask(audited) == ()


async def kept(sandbox: Sandbox) -> list[Any]:
    """Run all jobs that are due now, and return the state."""
    await sandbox.gateway.jobs.run_until_idle()
    return await sandbox.gateway.store.run(state)


async def audited(sandbox: Sandbox) -> tuple[Violation, ...]:
    """Return the rules of the ledger that do not hold."""
    return await sandbox.gateway.store.run(violations)


async def post_to_control(sandbox: Sandbox, path: str, **document: object) -> tuple[int, Any]:
    """POST to the control API; return the HTTP status and the answer."""
    async with sandbox.session.post(sandbox.url + path, json=document) as response:
        return response.status, await response.json()


async def journal(sandbox: Sandbox) -> list[Any]:
    """Return every request and its answer, without the duration, which differs."""
    _, found = await post_to_control(sandbox, "/_sandbox/requests/find", limit=1000)
    return [{**each, "duration_ms": None} for each in found["requests"]]


async def browse(sandbox: Sandbox, method: str, page: str, **form: str) -> Any:
    """Return what a browser gets: status, address of a redirect, and HTML."""
    async with sandbox.session.request(
        method, sandbox.url + page, data=form or None, allow_redirects=False
    ) as response:
        return response.status, response.headers.get("Location"), await response.text()


def _comparable(answer: Any) -> Any:
    """Return the parts of an answer that must be equal."""
    if isinstance(answer, Seen):
        return answer.status, answer.rule, answer.body
    return answer


class GatewaysOnPostgres(Gateways):
    """A separate class, so that only this one is skipped if Postgres cannot run."""

    stores = ("memory", "postgres")


def agreeing(machine: type[Gateways], examples: int) -> type[unittest.TestCase]:
    """Return the machine as a test; --hypothesis-profile=long runs it sixty times as often."""
    long = settings.get_current_profile_name() == "long"
    test: type[unittest.TestCase] = machine.TestCase
    test.settings = settings(  # type: ignore[attr-defined]
        max_examples=examples * 60 if long else examples,
        stateful_step_count=40,
        deadline=None,
        derandomize=True,
        # Without `explain`, which would run a gateway a thousand times more.
        phases=(Phase.generate, Phase.shrink),
    )
    return test


TestMemoryAndSqlite = agreeing(Gateways, examples=2)
TestMemoryAndPostgres = agreeing(GatewaysOnPostgres, examples=1)
