"""Payments that the payer approves on the handset: the prompts, the messages and the answers."""

from datetime import timedelta

import pytest

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.operations import PAYMENTS, Operation
from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.payments import approval
from sandbox_sim.payments.approval import Handsets, PromptDecision, approval_override
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.overrides import CallbackBehaviour, Override
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.stores.memory.memory_store import MemoryStore
from tests.records.samples import payment
from tests.sample_records import NOW, SERVICE, after, message, transaction
from tests.units import unit_of

pytestmark = pytest.mark.decision("D33")

NUMBER, IN_233 = "0244000001", "233244000001"
TIMEOUT = timedelta(seconds=120)
ASKED = Override("approval", Status.CANCELLED, delay_ms=120_000)


def waiting(number: int, **fields: object) -> TransactionRecord:
    """A payment that waits for its payer."""
    network_id = f"1000000000{number}"
    return transaction(network_id, transaction_id=network_id, override=ASKED, **fields)


class Phone:
    """The handset of NUMBER over a memory store."""

    def __init__(self) -> None:
        self.clock, behaviour = VirtualClock(), BehaviourHolder(Behaviour())
        self.store = MemoryStore(self.clock)
        settlement = Settlement(RandomIds(seed=1), Accounts(), {}, behaviour)
        self.handsets = Handsets(self.store, self.clock, settlement, behaviour)

    async def gets(self, *payments: TransactionRecord) -> None:
        for each in payments:
            await unit_of(self.store).add_transaction(each)

    async def prompts(self) -> list[str]:
        found = (await self.handsets.view(NUMBER)).prompts
        return [each.transaction.network_transaction_id[-1] for each in found]

    async def answer(self, decision: PromptDecision) -> tuple[bool, Status]:
        answered = await self.handsets.answer(NUMBER, SERVICE, "10000000001", decision)
        assert answered is not None
        return answered.was_waiting, answered.transaction.status


@pytest.fixture
def phone() -> Phone:
    return Phone()


def test_collections_and_deposits_from_a_phone_need_approval() -> None:
    asked = {each for each in PAYMENTS if approval_override(payment(each), TIMEOUT, None)}

    assert asked == {Operation.COLLECT, Operation.DEPOSIT}
    assert approval_override(payment(), TIMEOUT, None) == ASKED


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        (
            Override("O1", delay_ms=5, callback=CallbackBehaviour(duplicate=2)),
            ASKED._replace(id="approval O1", callback=CallbackBehaviour(duplicate=2)),
        ),
        (Override("O1", Status.SUCCESSFUL), None),
        (Override("O1", callback=CallbackBehaviour(before_response=True)), None),
    ],
)
def test_approval_keeps_an_override_that_does_not_decide_the_outcome(
    override: Override, expected: Override | None
) -> None:
    assert approval_override(payment(), TIMEOUT, override) == expected


@pytest.mark.parametrize(
    ("decision", "status"),
    [(PromptDecision.APPROVE, Status.SUCCESSFUL), (PromptDecision.DECLINE, Status.FAILED)],
)
@pytest.mark.parametrize("party", [NUMBER, IN_233])
@pytest.mark.parametrize(("seconds", "in_time"), [(119.9, True), (120, False)])
async def test_an_answer_decides_once_and_until_the_prompt_times_out(
    phone: Phone,
    decision: PromptDecision,
    status: Status,
    party: str,
    seconds: float,
    in_time: bool,
) -> None:
    await phone.gets(waiting(1, party=party))
    phone.clock.move_to(after(seconds=seconds))

    was_waiting, found = await phone.answer(decision)

    assert (was_waiting, found is status) == (in_time, in_time)
    assert await phone.answer(PromptDecision.APPROVE) == (False, found)


async def test_the_prompts_of_a_number_among_the_newest_records_are_shown_oldest_first(
    phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = waiting(3).with_status(Status.SUCCESSFUL, NOW)
    plain = transaction("10000000004", transaction_id="T4")
    await phone.gets(waiting(1), waiting(2, party=IN_233), decided, plain, waiting(5, party="Ama"))
    assert await phone.prompts() == ["1", "2"]

    monkeypatch.setattr(approval, "_MAX_READ", 6)
    monkeypatch.setattr(approval, "_PAGE_SIZE", 3)
    await phone.gets(*(waiting(number) for number in (0, 6, 7, 8, 9)))
    assert await phone.prompts() == ["0", "6", "7", "8", "9"]


async def test_the_handset_shows_the_newest_fifty_messages_of_its_number(phone: Phone) -> None:
    sent = [message(f"M{number}") for number in range(51)]
    await unit_of(phone.store).add_messages(sent)
    other = message("other", customer_number="233244000002")
    await unit_of(phone.store).add_messages([other])

    shown = [each.processing_id for each in (await phone.handsets.view(NUMBER)).messages]

    assert len(shown) == 50
    assert {"M0", "other"}.isdisjoint(shown)
