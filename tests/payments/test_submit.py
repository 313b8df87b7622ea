"""A payment goes to the processor of its client's mode, and the answer gate holds its callback."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.callbacks.delivery_queue import ProcessAnswerGate
from sandbox_sim.payments.submit import PaymentDecision, PaymentRequest, Payments
from sandbox_sim.ports import StoreError, Unit
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


@dataclass
class Desk:
    """The payment operations of a gateway that serves both modes."""

    sandbox: FakeProcessor = field(default_factory=lambda: FakeProcessor(TAKEN))
    production: FakeProcessor = field(default_factory=lambda: FakeProcessor(TAKEN))
    gate: ProcessAnswerGate = field(default_factory=ProcessAnswerGate)

    def __post_init__(self) -> None:
        self.store = FailingStore(MemoryStore(VirtualClock()))
        processors = {ServiceMode.SANDBOX: self.sandbox, ServiceMode.PRODUCTION: self.production}
        self.payments = Payments(self.store, RandomIds(seed=1), self.gate, processors)

    async def pay(self, client: Client = SANDBOX_CLIENT) -> Reply:
        return await self.payments.submit(PAYMENT, client, NOW, lambda: "http://gateway.test")


@pytest.mark.decision("D32")
@pytest.mark.parametrize("client", [SANDBOX_CLIENT, PRODUCTION_CLIENT], ids=["S", "P"])
async def test_the_processor_of_the_clients_mode_gets_the_whole_request(client: Client) -> None:
    desk = Desk()

    reply = await desk.pay(client)

    processors = [desk.sandbox, desk.production]
    chosen, other = processors if client is SANDBOX_CLIENT else processors[::-1]
    (request,) = chosen.requests
    assert other.requests == []
    assert request[:2] == (PAYMENT, client)
    assert (request.network_transaction_id, request.received_at) == (reply.awaited_by, NOW)
    assert request.public_address() == "http://gateway.test"


@pytest.mark.decision("D16")
class TestAnswerGate:
    """The gate holds the callback from before the payment is saved until its answer is written."""

    @pytest.mark.parametrize("decision", [TAKEN, REFUSED])
    async def test_a_payment_is_held_until_the_caller_releases_it(self, decision: Reply) -> None:
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
    @pytest.mark.parametrize("after_commit", [False, True])
    async def test_a_payment_that_fails_is_not_held(
        self, error: Exception, after_commit: bool
    ) -> None:
        async def fail() -> Reply:
            raise error

        desk = Desk(FakeProcessor(fail if after_commit else error))

        with pytest.raises(type(error)):
            await desk.pay()

        assert not desk.gate.is_held(desk.sandbox.requests[0].network_transaction_id)


async def test_a_processor_may_wait_after_the_commit_and_still_refuse() -> None:
    """The wait for other systems is outside a unit of work."""
    desk = Desk()
    found: list[object] = []

    async def save(unit: Unit, request: PaymentRequest) -> None:
        await unit.add_transaction(transaction(request.network_transaction_id))

    async def look_and_refuse() -> Reply:
        found.append(await unit_of(desk.store).transaction(SERVICE, "T1"))
        return REFUSED

    desk.sandbox.saves = save
    desk.sandbox.decision = look_and_refuse
    reply = await desk.pay()

    assert reply.code == "402"
    assert found == [transaction(str(reply.awaited_by))]


async def test_a_store_failure_raises_and_saves_nothing() -> None:
    async def add_job(unit: Unit, _request: PaymentRequest) -> None:
        await unit.add_job(job("1"))

    desk = Desk()
    desk.sandbox.saves = add_job
    desk.store.failures = 1

    with pytest.raises(StoreError):
        await desk.pay()

    assert not await unit_of(desk.store).claim_due(after(days=1), 100)
