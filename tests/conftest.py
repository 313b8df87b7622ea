"""What tests of several folders need: stores, gateways, and the scheduler with a fake sender."""

import asyncio
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession, web
from hypothesis import Phase, settings

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.bootstrap import Gateway, build
from sandbox_sim.callbacks.callback_dispatcher import (
    STARTS_PER_TURN,
    CallbackDispatcher,
    CallbackReordering,
    CallbackSigning,
)
from sandbox_sim.callbacks.delivery_queue import MAX_CONCURRENT, ProcessAnswerGate
from sandbox_sim.callbacks.destinations import CallbackRoutes
from sandbox_sim.callbacks.listeners import CallbackListeners
from sandbox_sim.control.scheduler import JobHandler, Scheduler
from sandbox_sim.events.activity_log import ActivityLog
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.ports import CallbackSender, Clock, StoreError, Unit
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import CallbackRecord, DeliveryState
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.settings.schema import Settings
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.web.transport.server import GatewayRunner
from tests import fork_server, openapi_contract, postgres
from tests.fakes import FailingStore, FakeSender, WatchedClock
from tests.kit.requests import (
    REQUEST_TIME,
    basic as basic,  # noqa: PLC0414 -- others import it from here
    collection,
)
from tests.openapi_contract import CheckedResponse
from tests.sample_records import NOW, SERVICE, callback, every, job, posting, postings_of
from tests.sqlite_files import IN_MEMORY

if TYPE_CHECKING:
    from playwright.async_api import Browser


pytest_plugins = ["tests.timeouts", "tests.fast_run"]


# A deadline would fail on a busy machine. --hypothesis-profile=wide and =long, as in .ci/run, try
# more examples.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=12)

settings.register_profile("wide", deadline=None, derandomize=True, max_examples=100)

settings.register_profile("long", deadline=None, derandomize=True, max_examples=200)

# Of `make mutate`: one example that fails is enough, and a smaller one takes seconds to find.
settings.register_profile(
    "mutate", settings.get_profile("suite"), phases=[Phase.explicit, Phase.generate]
)

settings.load_profile("suite")


# Processes that the tests start load no certificates of public authorities, because that takes
# 50 ms in each of them. httpx refuses a file without certificates, but takes "" as no file. A test
# may name others.
os.environ["SSL_CERT_FILE"] = ""
os.environ["SSL_CERT_DIR"] = os.devnull


@dataclass(frozen=True)
class Seen:
    """An answer: HTTP status, headers and the parsed body."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def code(self) -> str:
        return str(self.body["response_code"])

    @property
    def message(self) -> str:
        return str(self.body["response_message"])

    @property
    def data(self) -> Any:
        return self.body["response_data"]

    @property
    def rule(self) -> str:
        return self.headers["X-Sandbox-Rule"]


@dataclass
class Sandbox:
    """A running gateway as a client sees it, and its clock."""

    url: str
    gateway: Gateway
    session: ClientSession
    runner: GatewayRunner
    service_id: int = 55
    headers: dict[str, str] = field(
        default_factory=lambda: {"Authorization": basic(), "User-Agent": "tests"}
    )

    async def post(self, path: str, body: dict[str, Any], **headers: str) -> Seen:
        """POST JSON to a path of the gateway."""
        sent = {**self.headers, **headers}
        async with self.session.post(self.url + path, json=body, headers=sent) as response:
            return Seen(response.status, dict(response.headers), await response.json())

    def payment(self, **fields: Any) -> dict[str, Any]:
        """The body of a mobile money collection; `fields` replace its own, and None removes one."""
        own = {"service_id": self.service_id, "callback_url": self.inbox_url("orders")}
        body = collection(**{**own, **fields})
        return {name: value for name, value in body.items() if value is not None}

    async def collect(self, **fields: Any) -> Seen:
        return await self.post("/make_payment", self.payment(**fields))

    async def card(self, **fields: Any) -> Seen:
        card = {
            "nw": "VIS",
            "payment_option": "CRD",
            "customer_number": "4111111111111111",
            "currency_code": "GHS",
            "currency_val": "10.50",
            "landing_page": "http://127.0.0.1:9/thanks",
        }
        return await self.collect(**{**card, **fields})

    async def deposit(self, **fields: Any) -> Seen:
        return await self.collect(trans_type="DTTW", **fields)

    async def payout(self, **fields: Any) -> Seen:
        return await self.collect(trans_type="MTC", **fields)

    async def bill(self, **fields: Any) -> Seen:
        bill = {
            "trans_type": "BLP",
            "nw": "ECG",
            "account_number": "200000000001",
            "payment_option": None,
            "customer_number": None,
        }
        return await self.post("/pay_bill", self.payment(**{**bill, **fields}))

    async def airtime(self, **fields: Any) -> Seen:
        airtime = {"trans_type": "ATP", "payment_option": None, **fields}
        return await self.post("/send_airtime", self.payment(**airtime))

    async def status(self, transaction_id: str = "T1", service_id: int | None = None) -> Seen:
        asked = {"service_id": service_id or self.service_id, "transaction_id": transaction_id}
        return await self.post("/get_transaction_status", asked)

    async def balance(self, service_id: int | None = None) -> Seen:
        asked = {"service_id": service_id or self.service_id, "request_time": REQUEST_TIME}
        return await self.post("/get_account_balance", asked)

    async def sms(self, **fields: Any) -> Seen:
        body = {
            "service_id": self.service_id,
            "customer_number": "0244000001",
            "msg_body": "Your code is 1234",
            "sender_id": "Shop",
            **fields,
        }
        return await self.post("/sms/send", {k: v for k, v in body.items() if v is not None})

    async def bulk(self, *recipients: str, **fields: Any) -> Seen:
        body = {
            "service_id": self.service_id,
            "recipients": list(recipients),
            "msg_body": "Sale today",
            "sender_id": "Shop",
            **fields,
        }
        return await self.post("/sms/bulk", {k: v for k, v in body.items() if v is not None})

    async def history(self, **fields: Any) -> Seen:
        return await self.post("/sms/history", {"service_id": self.service_id, **fields})

    async def sms_balance(self, service_id: int | None = None) -> int:
        seen = await self.post("/sms/balance", {"service_id": service_id or self.service_id})
        return int(seen.data["sms_balance"])

    async def stop(self) -> None:
        """Stop the gateway before the test is over."""
        await self.runner.cleanup()

    async def advance(self, **by: float) -> None:
        """Advance the clock by `timedelta(**by)`, and run every job that becomes due."""
        await self.gateway.jobs.advance(timedelta(**by))

    def inbox_url(self, name: str) -> str:
        return f"{self.url}/_sandbox/inbox/{name}"

    async def inbox(self, name: str = "orders") -> list[dict[str, Any]]:
        """The newest hundred deliveries in an inbox, oldest first."""
        async with self.session.get(f"{self.inbox_url(name)}/messages?limit=100") as response:
            messages: list[dict[str, Any]] = (await response.json())["messages"]
            return messages[::-1]

    async def callback(self, name: str = "orders") -> dict[str, Any]:
        """The body of the only delivery in an inbox."""
        (message,) = await self.inbox(name)
        body: dict[str, Any] = message["json"]
        return body


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """Undo at the end what `serve` does to the log of this process."""
    root, ours = logging.getLogger(), logging.getLogger("sandbox_sim")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], root.level = before[:2]
    ours.setLevel(before[2])


@pytest.fixture(scope="session", autouse=True)
def _fast_path() -> None:
    """With `SANDBOX_SIM_FAST_PATH=false`, as in the second run of CI, that is the default."""
    if os.environ.get("SANDBOX_SIM_FAST_PATH") == "false":
        Settings.model_fields["fast_path"].default = False
        Settings.model_rebuild(force=True)


@pytest.fixture(scope="session", autouse=True)
def _end_shared_servers() -> Iterator[None]:
    """End the servers that the tests of this process share."""
    yield
    fork_server.leave()
    postgres.leave()


@pytest.fixture(scope="session")
def _folder_of_the_run() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def in_memory(_folder_of_the_run: Path) -> Path:
    """A folder in memory if the system has one, so that the test does not wait for the disk.

    It is removed when the next test asks for one: by then nothing of this test uses it.
    """
    for folder in _folder_of_the_run.iterdir():
        shutil.rmtree(folder)
    return Path(tempfile.mkdtemp(dir=_folder_of_the_run))


StartSandbox = Callable[..., Awaitable[Sandbox]]


@asynccontextmanager
async def sandboxes() -> AsyncIterator[StartSandbox]:
    """Yield a function that starts a gateway with the given settings, with a frozen clock.

    clock, sender: replace its clock and the sender of its callbacks. Every answer that its session
    reads is checked against the OpenAPI document.
    """
    async with AsyncExitStack() as stack:
        checking = ClientSession(response_class=CheckedResponse)
        session = await stack.enter_async_context(checking)

        async def start(
            *, clock: Clock | None = None, sender: CallbackSender | None = None, **settings: Any
        ) -> Sandbox:
            chosen = Settings(**{"store": "memory:", **settings})
            ids = RandomIds(seed=1)
            gateway = build(chosen, clock=clock or VirtualClock(), ids=ids, sender=sender)
            runner = GatewayRunner(gateway.app)
            stack.push_async_callback(runner.cleanup)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            port = runner.addresses[0][1]
            openapi_contract.register(port, gateway, chosen)
            return Sandbox(f"http://127.0.0.1:{port}", gateway, session, runner)

        yield start


@pytest.fixture
async def start_sandbox() -> AsyncIterator[StartSandbox]:
    """Start a gateway with the given settings, on a free port and with a frozen clock."""
    async with sandboxes() as start:
        yield start


@pytest.fixture
async def sandbox(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway with the default settings."""
    return await start_sandbox()


@pytest.fixture
async def collected(sandbox: Sandbox) -> Sandbox:
    """A sandbox with the successful collection T1 of 10.50."""
    await sandbox.collect()
    await sandbox.advance(seconds=1)
    return sandbox


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator["Browser"]:
    """Chromium, started once in each process that runs tests with it.

    Such a test runs in the event loop of the session, as Playwright does.
    """
    from tests.demo.browser import launch  # noqa: PLC0415 -- importing Playwright takes 0.6 s

    async with launch() as browser:
        yield browser


@dataclass
class Works:
    """Everything that runs jobs.

    broken: the subjects whose job raises. refused: the subjects whose job the store cannot save.
    meanwhile: happens while `note` handles a job.
    """

    clock: WatchedClock
    store: FailingStore
    sender: FakeSender
    deliveries: CallbackDispatcher
    jobs: Scheduler
    broken: set[str] = field(default_factory=set)
    error: Exception = field(default_factory=lambda: ValueError("broken"))
    refused: set[str] = field(default_factory=set)
    tried: list[tuple[str, datetime]] = field(default_factory=list)
    meanwhile: JobHandler | None = None

    async def note(self, unit: Unit, job: Job, now: datetime) -> None:
        """Handle a job that is not a delivery: add a posting, or raise."""
        self.tried.append((job.subject, now))
        await unit.add_transfer(posting("1", subject=job.subject, at=now))
        if self.meanwhile is not None:
            await self.meanwhile(unit, job, now)
        if job.subject in self.broken:
            raise self.error
        if job.subject in self.refused:
            raise StoreError(job.subject)

    async def promise(self, *subjects: str, due_at: datetime = NOW) -> None:
        """Add jobs that `note` handles."""
        for subject in subjects:
            await self.store.run(methodcaller("add_job", job(subject, due_at)))

    async def done(self) -> list[str]:
        """The subjects whose job is done, in order."""
        return [each.subject for each in await self.store.run(lambda u: postings_of(u, SERVICE))]

    async def notify(self, *callbacks: CallbackRecord) -> None:
        """Save callbacks and the jobs that deliver them now."""
        for each in callbacks:
            now = self.clock.now()
            await self.store.run(methodcaller("save_callback", each))
            delivery = Job(now, JobKind.DELIVER, each.service_id, each.id)
            await self.store.run(methodcaller("add_job", delivery))

    async def start(self) -> None:
        """Run every due job. The callbacks are then being sent, or in the queue."""
        while await self.jobs.run_due(self.clock.now()):
            pass
        for _ in range(MAX_CONCURRENT // STARTS_PER_TURN + 3):
            await asyncio.sleep(0)

    async def called(self, url: str) -> None:
        """Run every due job; return once this receiver was called and its answer saved."""
        await self.start()
        for _ in range(10_000):
            if url in self.sender.urls:
                break
            await asyncio.sleep(0)
        await self.start()

    async def callback(self, callback_id: str = "C1") -> CallbackRecord:
        found = await self.store.run(lambda unit: unit.callback(SERVICE, callback_id))
        assert found is not None
        return found

    async def states(self) -> dict[str, DeliveryState]:
        return {
            each.id: each.state
            for each in await self.store.run(lambda u: u.list_callbacks(every(SERVICE)))
        }

    async def failed(self) -> list[tuple[str, int]]:
        """The subjects of the jobs that people see, each with the number of failures."""
        found = await self.store.run(lambda unit: unit.failed_jobs(9))
        return [(each.subject, each.failures) for each in found]

    async def next_due(self) -> datetime | None:
        return await self.store.run(lambda unit: unit.next_due())


def to(host: str, count: int, *, scheme: str = "http") -> list[CallbackRecord]:
    """This many callbacks to one receiver."""
    return [
        callback(f"{host} {number}", url=f"{scheme}://{host}/callback") for number in range(count)
    ]


BEHAVIOUR = BehaviourHolder(Behaviour())


@pytest.fixture
async def works() -> AsyncIterator[Works]:
    clock, sender = WatchedClock(), FakeSender()
    store = FailingStore(MemoryStore(clock))
    deliveries = CallbackDispatcher(
        *(store, clock, sender, BEHAVIOUR, ProcessAnswerGate(), CallbackRoutes()),
        *(
            CallbackReordering(store),
            MAX_CONCURRENT,
            ActivityLog(clock),
            CallbackSigning({}, BEHAVIOUR),
        ),
        CallbackListeners(clock, RandomIds(seed=1)),
    )
    handlers: dict[JobKind, JobHandler] = {JobKind.DELIVER: deliveries.on_due}
    works = Works(clock, store, sender, deliveries, Scheduler(store, clock, deliveries, handlers))
    handlers[JobKind.SETTLE] = works.note
    yield works
    sender.answer_all()
    await deliveries.close(grace=0)
