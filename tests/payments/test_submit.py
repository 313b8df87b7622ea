"""A payment goes to the processor of its client's mode, and the answer gate holds its callback."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.callbacks.delivery_queue import ProcessAnswerGate
from sandbox_sim.payments.submit import PaymentDecision, PaymentRequest, Payments
from sandbox_sim.ports import StoreError, Unit
from sandbox_sim.records.jobs import Job
from sandbox_sim.stores.memory.memory_store import MemoryStore
from sandbox_sim.values.clients import Client, ServiceMode
from sandbox_sim.values.response_codes import Reply
from tests.fakes import FailingStore
from tests.sample_records import NOW, SERVICE, after, job, transaction
from tests.units import unit_of

PAYMENT = transaction().payment

SANDBOX_CLIENT = Client("sandbox_key", "sandbox_secret")

PRODUCTION_CLIENT = Client("live_key", "live_secret", ServiceMode.PRODUCTION)

TAKEN = Reply("202", "sandbox.3", "taken")

REFUSED = Reply("402", "D13", "too little", warnings=("a warning",))


class FakeProcessor:
    """Gives one decision to every payment, and records the requests."""

    def __init__(self, decision: PaymentDecision | Exception) -> None:
        self.decision = decision
        self.requests: list[PaymentRequest] = []
        self.saves: Callable[[Unit, PaymentRequest], Awaitable[None]] | None = None

    async def process(self, unit: Unit, request: PaymentRequest) -> PaymentDecision:
        self.requests.append(request)
        if self.saves is not None:
            await self.saves(unit, request)
        if isinstance(self.decision, Exception):
            raise self.decision
        return self.decision


async def add_job(unit: Unit, _request: PaymentRequest) -> None:
    await unit.add_job(job("1"))


@dataclass
class Desk:
    """The payment operations of a gateway that serves both modes."""

    sandbox: FakeProcessor = field(default_factory=lambda: FakeProcessor(TAKEN))
    production: FakeProcessor = field(default_factory=lambda: FakeProcessor(TAKEN))
    gate: ProcessAnswerGate = field(default_factory=ProcessAnswerGate)

    def __post_init__(self) -> None:
        self.store = FailingStore(MemoryStore(VirtualClock()))
        processors = {
            ServiceMode.SANDBOX: self.sandbox,
            ServiceMode.PRODUCTION: self.production,
        }
        self.payments = Payments(self.store, RandomIds(seed=1), self.gate, processors)

    async def pay(self, client: Client = SANDBOX_CLIENT) -> Reply:
        return await self.payments.submit(PAYMENT, client, NOW, lambda: "http://gateway.test")

    async def jobs(self) -> Sequence[Job]:
        return await unit_of(self.store).claim_due(after(days=1), 100)


@pytest.mark.decision("D32")
@pytest.mark.parametrize(
    ("client", "counts"), [(SANDBOX_CLIENT, (1, 0)), (PRODUCTION_CLIENT, (0, 1))], ids=["S", "P"]
)
async def test_the_mode_of_the_client_chooses_the_processor(
    client: Client, counts: tuple[int, int]
) -> None:
    desk = Desk()

    await desk.pay(client)

    assert (len(desk.sandbox.requests), len(desk.production.requests)) == counts


async def test_a_processor_gets_the_payment_with_its_client_id_time_and_public_address() -> None:
    desk = Desk()

    reply = await desk.pay()

    (request,) = desk.sandbox.requests
    assert request[:2] == (PAYMENT, SANDBOX_CLIENT)
    assert (request.network_transaction_id, request.received_at) == (reply.awaited_by, NOW)
    assert request.public_address() == "http://gateway.test"


@pytest.mark.decision("D16")
class TestTheGate:
    """The gate holds the callback from before the payment is saved until its answer is written."""

    @pytest.mark.parametrize("decision", [TAKEN, REFUSED])
    async def test_it_holds_the_payment_until_the_caller_releases_it(self, decision: Reply) -> None:
        desk = Desk(FakeProcessor(decision))
        held: list[bool] = []

        async def note(_unit: Unit, request: PaymentRequest) -> None:
            held.append(desk.gate.is_held(request.network_transaction_id))

        desk.sandbox.saves = note
        reply = await desk.pay()

        assert held == [True]
        assert reply.awaited_by is not None
        assert desk.gate.is_held(reply.awaited_by)

    @pytest.mark.parametrize("error", [StoreError("the disk is full"), RuntimeError("a bug")])
    async def test_a_payment_that_fails_is_not_held(self, error: Exception) -> None:
        desk = Desk(FakeProcessor(error))

        with pytest.raises(type(error)):
            await desk.pay()

        assert not desk.gate.is_held(desk.sandbox.requests[0].network_transaction_id)

    async def test_nor_is_one_that_fails_after_the_commit(self) -> None:
        async def fail() -> Reply:
            raise RuntimeError("a bug")

        desk = Desk(FakeProcessor(fail))

        with pytest.raises(RuntimeError):
            await desk.pay()

        assert not desk.gate.is_held(desk.sandbox.requests[0].network_transaction_id)


class TestBeforeTheAnswer:
    """A processor may wait for other systems: after the commit, and outside a unit of work."""

    async def test_what_was_saved_is_committed_by_then(self) -> None:
        desk = Desk()
        found: list[object] = []

        async def save(unit: Unit, request: PaymentRequest) -> None:
            await unit.add_transaction(transaction(request.network_transaction_id))

        async def look() -> Reply:
            found.append(await unit_of(desk.store).transaction(SERVICE, "T1"))
            return TAKEN

        desk.sandbox.saves = save
        desk.sandbox.decision = look
        reply = await desk.pay()

        assert found == [transaction(str(reply.awaited_by))]

    async def test_it_can_still_reject(self) -> None:
        async def refuse() -> Reply:
            return REFUSED

        desk = Desk(FakeProcessor(refuse))
        desk.sandbox.saves = add_job

        reply = await desk.pay()

        assert reply.code == "402"
        assert [each.subject for each in await desk.jobs()] == ["1"], "committed before"


async def test_a_store_that_is_away_raises_and_nothing_is_saved() -> None:
    desk = Desk()
    desk.sandbox.saves = add_job
    desk.store.failures = 1

    with pytest.raises(StoreError):
        await desk.pay()

    assert not await desk.jobs()
