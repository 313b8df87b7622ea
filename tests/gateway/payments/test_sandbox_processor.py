"""The processor of mode S: which records each outcome saves (D15, D16)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.adapters.stores.memory.memory_store import MemoryStore
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.msisdn import Allowlist
from sandbox_sim.domain.payments.payment_rules import Sandbox
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.callbacks.answer_gate import ProcessAnswerGate
from sandbox_sim.gateway.control.override_selection import Overrides
from sandbox_sim.gateway.control.user_rules import UserRules
from sandbox_sim.gateway.control.wait_for_records import Waiters
from sandbox_sim.gateway.ledger.accounts import Accounts
from sandbox_sim.gateway.payments.sandbox_processor import (
    IN_233_FORM,
    REPEATED,
    SandboxProcessor,
)
from sandbox_sim.gateway.payments.settlement import CallbackSettings, Settlement
from sandbox_sim.gateway.ports import Accepted, PaymentRequest, Rejected
from tests.records import NOW, SERVICE, after, every, transaction

CLIENT = Client("sandbox_key", "sandbox_secret")
CARD = {"operation": Operation.CARD, "nw": "VIS", "party": "4111111111111111"}


class Desk:
    """A sandbox processor over a memory store."""

    def __init__(
        self,
        *,
        auto_complete: timedelta = timedelta(seconds=3),
        sandbox: Sandbox = Sandbox(),  # noqa: B008 -- frozen
    ) -> None:
        clock, ids, accounts = VirtualClock(), RandomIds(seed=1), Accounts()
        self.store = MemoryStore(clock)
        settlement = Settlement(ids, accounts, {CLIENT.client_key: CLIENT}, CallbackSettings())
        overrides = Overrides(self.store, UserRules(self.store, clock, ids), Waiters(clock))
        self.processor = SandboxProcessor(
            *(ids, accounts, ProcessAnswerGate(), overrides, settlement),
            sandbox=sandbox,
            settle_delay=timedelta(seconds=1),
            auto_complete=auto_complete,
        )

    async def process(self, network_id: str = "10000000001", **fields: Any) -> Accepted | Rejected:
        payment = transaction(**fields).payment
        request = PaymentRequest(payment, CLIENT, network_id, NOW, lambda: "http://gateway.test")
        return await self.store.run(lambda unit: self.processor.process(unit, request))

    async def jobs(self) -> list[Job]:
        claimed = await self.store.run(lambda unit: unit.claim_due(after(days=1), 100))
        return [each._replace(number=0) for each in claimed]

    async def transactions(self) -> Sequence[Transaction]:
        return await self.store.run(lambda unit: unit.list_transactions(every(SERVICE)))


async def test_an_accepted_payment_is_pending_and_falls_due_after_the_delay() -> None:
    desk = Desk()

    decision = await desk.process()

    assert isinstance(decision, Accepted)
    assert (decision.outcome.code, decision.fields, decision.warnings) == ("202", None, ())
    assert await desk.jobs() == [Job(after(seconds=1), JobKind.SETTLE, SERVICE, "10000000001")]
    assert [each.status for each in await desk.transactions()] == [Status.PENDING]


@pytest.mark.spec("endpoint.4")
async def test_a_payout_is_answered_with_a_status_field() -> None:
    decision = await Desk().process(operation=Operation.PAYOUT)

    assert isinstance(decision, Accepted)
    assert decision.fields == {"status": "success"}


@pytest.mark.decision("D20")
@pytest.mark.parametrize(
    ("auto_complete", "due"), [(3, [after(seconds=3)]), (0, [])], ids=["by time", "by a person"]
)
async def test_a_card_payment_has_a_page_and_completes_by_itself_unless_that_is_off(
    auto_complete: int, due: list[object]
) -> None:
    desk = Desk(auto_complete=timedelta(seconds=auto_complete))

    decision = await desk.process(**CARD)

    assert isinstance(decision, Accepted)
    assert decision.fields is not None
    address = str(decision.fields["redirect_url"])
    assert address.startswith("http://gateway.test/_sandbox/pay/")
    page = await desk.store.run(lambda unit: unit.card_page(address.rpartition("/")[2]))
    assert page is not None
    assert [each.due_at for each in await desk.jobs()] == due


@pytest.mark.decision("D15", "D16")
async def test_a_simulated_decline_leaves_a_failed_transaction() -> None:
    desk = Desk()

    decision = await desk.process(party="0244000009")

    assert isinstance(decision, Rejected)
    assert decision.outcome.code == "015"
    assert [each.timeline for each in await desk.transactions()] == [
        ((Status.PENDING, NOW), (Status.FAILED, NOW))
    ]


@pytest.mark.decision("D15")
async def test_any_other_rejection_leaves_nothing() -> None:
    desk = Desk()

    decision = await desk.process(party="0540000001")

    assert isinstance(decision, Rejected)
    assert decision.outcome.code == "019"
    assert await desk.transactions() == []


@pytest.mark.decision("D14")
async def test_a_repeated_transaction_id_is_taken_with_a_warning() -> None:
    desk = Desk()
    await desk.process()

    decision = await desk.process("10000000002")

    assert isinstance(decision, Accepted)
    assert decision.warnings == (REPEATED,)


@pytest.mark.decision("D11")
async def test_the_233_form_has_a_warning_where_it_is_taken() -> None:
    taking = Sandbox(allowlist=Allowlist(accept_international=True))
    taken = await Desk(sandbox=taking).process(party="233244000001")
    refused = await Desk().process(party="233244000001")

    assert (taken.outcome.code, taken.warnings) == ("202", (IN_233_FORM,))
    assert (refused.outcome.code, refused.warnings) == ("019", ())
