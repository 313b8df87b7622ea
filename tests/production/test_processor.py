"""The processor of mode P: accept, submit, record (D39)."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.ports import StoreError, Unit
from sandbox_sim.ports.network import SubmitResult
from sandbox_sim.production.processor import request_from_json
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet
from tests.production.desk import AVAILABLE, HELD, LOST, NOT_SENT, PAID, PAYOUT, REFUSED, Desk
from tests.sample_records import SERVICE
from tests.turns import turns
from tests.units import unit_of

pytestmark = pytest.mark.decision("D39")


async def kind_of_unit(desk: Desk) -> type[Unit]:
    async def kind(unit: Unit) -> type[Unit]:
        return type(unit)

    return await desk.store.run(kind)


async def test_a_payment_that_the_network_took_is_pending(desk: Desk) -> None:
    reply = await desk.pay()

    assert (reply.code, reply.rule) == ("202", "D39")
    (submitted,) = desk.first.submits
    attempt = await desk.attempt()
    assert (attempt.outcome, attempt.submits) == (Outcome.PENDING, 1)
    assert attempt.reference == submitted.reference
    assert submitted.notification_url == f"http://gateway.test/_networks/first/{attempt.id}"
    assert await desk.status() is Status.PENDING
    assert await desk.callbacks() == []


async def test_an_attempt_is_saved_before_it_is_submitted(desk: Desk) -> None:
    desk.first.blocked = asyncio.Event()

    paying = asyncio.create_task(desk.pay())
    await desk.first.arrived.wait()

    attempt = await desk.attempt()
    assert (attempt.outcome, attempt.submits) == (Outcome.UNKNOWN, 1)
    desk.first.blocked.set()
    await paying


async def test_a_success_is_final_and_has_its_callback(desk: Desk) -> None:
    await desk.pay(PAID)

    found = await desk.transaction()
    (callback,) = await desk.callbacks()
    assert found.status is Status.SUCCESSFUL
    assert callback.mode is ServiceMode.PRODUCTION
    assert "000/SUCCESS" in callback.body
    assert await desk.balances() == {
        "service/55/collection/GHS available": Decimal("10.50"),
        "network/first/clearing/GHS": Decimal("-10.50"),
    }


async def test_a_success_of_another_amount_stays_open(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    echo = Echo(amount=Decimal("10.51"))
    assert (await desk.pay(SubmitResult(Outcome.SUCCEEDED, echo=echo))).code == "202"

    attempt = await desk.attempt()
    assert attempt.is_open
    assert attempt.mismatch == "amount is 10.51 and not 10.50"
    assert caplog.messages == [f"attempt {attempt.id} at first: {attempt.mismatch}"]
    assert await desk.balances() == {}


async def test_a_repeated_transaction_id_is_219_and_nothing_is_sent(desk: Desk) -> None:
    await desk.pay()

    assert (await desk.pay()).code == "219"

    assert len(desk.first.submits) == 1


async def test_one_of_two_duplicates_that_arrive_at_once_is_219(desk: Desk) -> None:
    await desk.fund("50")

    replies = await asyncio.gather(desk.pay(**PAYOUT), desk.pay(**PAYOUT))

    assert sorted(reply.code for reply in replies) == ["202", "219"]
    assert len(desk.first.submits) == 1
    assert (await desk.balances())[HELD] == Decimal("10.50")


async def test_a_payment_that_another_server_saves_meanwhile_is_219_and_holds_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.fund("30")
    await desk.pay(**PAYOUT)
    before = await desk.balances()

    async def not_there_yet(*_asked: object) -> None: ...

    with monkeypatch.context() as earlier:
        earlier.setattr(await kind_of_unit(desk), "transaction", not_there_yet)
        reply = await desk.pay(**PAYOUT)

    assert (reply.code, len(desk.first.submits)) == ("219", 1)
    assert await desk.balances() == before


async def test_a_card_number_is_sent_and_not_saved(desk: Desk) -> None:
    card: dict[str, Any] = {"operation": Operation.CARD, "payment_mode": "CRD"}
    await desk.pay(**card, party="4111111111111111")

    (submitted,) = desk.first.submits
    assert submitted.party == "4111111111111111"
    saved = await unit_of(desk.store).saved_request(submitted.attempt_id)
    assert request_from_json(saved) == replace(submitted, party="", repeated=True)


async def test_a_payout_is_held_and_another_above_the_balance_is_402(desk: Desk) -> None:
    await desk.fund("15")

    first = await desk.pay(**PAYOUT)
    second = await desk.pay(**PAYOUT, transaction_id="T2")

    assert (first.code, second.code) == ("202", "402")
    assert not await desk.has_transaction("T2")
    balances = await desk.balances()
    assert (balances[AVAILABLE], balances[HELD]) == (Decimal("4.50"), Decimal("10.50"))


async def test_a_payment_that_was_not_sent_leaves_neither_transaction_nor_hold(desk: Desk) -> None:
    await desk.fund("15")
    reply = await desk.pay(NOT_SENT, **PAYOUT)

    assert (reply.code, await desk.has_transaction()) == ("500", False)
    assert (await desk.balances())[AVAILABLE] == Decimal(15)
    assert (await desk.pay(**PAYOUT)).code == "202"  # the same transaction_id


async def test_a_refusal_is_answered_in_the_codes_of_the_interface(desk: Desk) -> None:
    await desk.fund("15")
    reply = await desk.pay(REFUSED, **PAYOUT)

    assert (reply.code, reply.message) == ("019", "no such number")
    assert not await desk.has_transaction()
    assert (await desk.balances())[AVAILABLE] == Decimal(15)


async def test_an_answer_that_is_lost_leaves_the_hold(desk: Desk) -> None:
    await desk.fund("15")
    assert (await desk.pay(LOST, **PAYOUT)).code == "202"

    assert (await desk.balances())[HELD] == Decimal("10.50")


async def test_a_second_network_is_tried_only_if_nothing_was_sent() -> None:
    """The second network gets another reference, since the first may have seen the one before."""
    desk = Desk(reference_is_transaction_id=True)
    desk.second.capabilities = desk.first.capabilities
    airtime: dict[str, Any] = {"operation": Operation.AIRTIME}
    desk.first.results.extend([NOT_SENT, LOST])
    await desk.fund_airtime("50")

    await desk.pay(**airtime)
    first, second = await desk.attempts()
    assert (first.outcome, second.outcome) == (Outcome.NOT_SENT, Outcome.PENDING)
    assert (second.network, second.number) == ("second", 2)
    assert first.reference == "T1" != second.reference

    await desk.pay(**airtime, transaction_id="T2")
    assert (len(desk.first.submits), len(desk.second.submits)) == (2, 1)


@pytest.mark.parametrize("answer", [REFUSED, PAID])
async def test_no_other_network_is_tried_after_an_answer(desk: Desk, answer: SubmitResult) -> None:
    desk.first.results.append(answer)
    await desk.fund_airtime("50")

    await desk.pay(operation=Operation.AIRTIME)

    assert (len(desk.first.submits), desk.second.submits) == (1, [])


async def test_five_faults_open_the_breaker_and_the_next_payment_is_500(desk: Desk) -> None:
    desk.first.results.extend([NOT_SENT] * 5)
    for number in range(5):
        await desk.pay(transaction_id=f"T{number}")

    reply = await desk.pay(transaction_id="T9")

    assert (reply.code, len(desk.first.submits)) == ("500", 5)
    assert "circuit breaker" in reply.why
    assert not await desk.has_transaction("T9")


async def test_a_payment_skips_a_network_whose_breaker_is_open(desk: Desk) -> None:
    desk.first.results.extend([NOT_SENT] * 5)
    await desk.fund_airtime("100")
    for number in range(5):
        await desk.pay(operation=Operation.AIRTIME, transaction_id=f"T{number}")
    desk.second.submits.clear()

    reply = await desk.pay(operation=Operation.AIRTIME, transaction_id="T9")

    assert (reply.code, len(desk.first.submits), len(desk.second.submits)) == ("202", 5, 1)
    attempt = await desk.attempt(await desk.transaction("T9"))
    assert (attempt.network, attempt.number) == ("second", 1)


@pytest.mark.parametrize(
    ("operation", "code"), [(Operation.CARD, "000"), (Operation.COLLECT, "202")]
)
async def test_only_a_card_payment_is_answered_with_a_redirect_url(
    desk: Desk, operation: Operation, code: str
) -> None:
    page = "https://network.test/pay/1"
    reply = await desk.pay(SubmitResult(Outcome.PENDING, redirect_url=page), operation=operation)

    assert (reply.code, reply.fields) == (code, {"redirect_url": page} if code == "000" else None)


@pytest.mark.decision("D32")
async def test_a_currency_that_no_network_takes_is_500_and_named(desk: Desk) -> None:
    reply = await desk.pay(currency_code="USD")

    assert (reply.code, reply.rule, desk.first.submits) == ("500", "D32", [])
    assert "currency USD" in reply.why


@pytest.mark.decision("D32")
async def test_a_payment_without_a_route_is_500_with_the_reason(desk: Desk) -> None:
    desk.networks.routes = []

    reply = await desk.pay(operation=Operation.AIRTIME)

    assert (reply.code, reply.rule) == ("500", "D32")
    assert reply.why.startswith("no route leads to a network for airtime and nw ")


@pytest.mark.parametrize("before", [[], [NOT_SENT]], ids=["first network", "second network"])
class TestStoreFailureAfterTheSubmit:
    @pytest.fixture
    async def answered(
        self, desk: Desk, caplog: pytest.LogCaptureFixture, before: list[SubmitResult]
    ) -> Desk:
        """A payment whose network succeeded; the store has been away since."""
        desk.first.results.extend(before)
        await desk.fund_airtime("50")
        network, blocked = desk.second if before else desk.first, asyncio.Event()
        network.blocked = blocked
        network.results.append(PAID)
        paying = asyncio.create_task(desk.pay(operation=Operation.AIRTIME))
        await network.arrived.wait()
        (attempt,) = [each for each in await desk.attempts() if each.is_open]
        desk.store.failures, desk.store.error = 10**9, StoreError("away")
        blocked.set()

        assert (await paying).code == "202"
        assert f"the answer to attempt {attempt.id} is not recorded: away" in caplog.messages
        return desk

    async def test_the_answer_is_recorded_when_the_store_is_back(self, answered: Desk) -> None:
        await turns()
        answered.store.failures = 0
        await answered.processor.close(5)

        assert await answered.status() is Status.SUCCESSFUL
        assert answered.first.queries == answered.second.queries == []

    async def test_the_network_is_asked_if_the_server_stops_before(
        self, answered: Desk, before: list[SubmitResult]
    ) -> None:
        await answered.processor.close(0)
        answered.store.failures = 0
        await turns()

        *_, attempt = await answered.attempts()
        assert attempt.outcome is Outcome.UNKNOWN
        await answered.wait(seconds=15)
        network = answered.second if before else answered.first
        assert len(network.queries) == 1


async def test_the_next_network_is_tried_when_the_store_is_back(desk: Desk) -> None:
    await desk.fund_airtime("50")
    desk.first.blocked = asyncio.Event()
    paying = asyncio.create_task(desk.pay(NOT_SENT, operation=Operation.AIRTIME))
    await desk.first.arrived.wait()
    desk.store.failures = 3
    desk.first.blocked.set()

    assert (await paying).code == "202"
    await desk.processor.close(5)

    assert [each.outcome for each in await desk.attempts()] == [Outcome.NOT_SENT, Outcome.PENDING]
    assert len(desk.second.submits) == 1


async def test_an_answer_to_a_deleted_attempt_is_202_and_logged(
    desk: Desk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_asked: object) -> None: ...

    monkeypatch.setattr(await kind_of_unit(desk), "attempt", gone)

    assert (await desk.pay()).code == "202"

    (submitted,) = desk.first.submits
    name = f"attempt {submitted.attempt_id}"
    assert caplog.messages == [f"the answer to {name} is not recorded: {name} no longer exists"]


async def test_a_client_that_hangs_up_stops_neither_the_submit_nor_its_record(desk: Desk) -> None:
    desk.first.blocked = asyncio.Event()
    paying = asyncio.create_task(desk.pay())
    await desk.first.arrived.wait()

    paying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await paying
    desk.first.blocked.set()
    await desk.processor.close(5)

    assert (await desk.attempt()).outcome is Outcome.PENDING


async def test_units_of_airtime_are_spent_from_their_own_asset(desk: Desk) -> None:
    assert (await desk.pay(operation=Operation.AIRTIME)).code == "402"
    await desk.fund_airtime("50")
    await desk.pay(PAID, operation=Operation.AIRTIME)
    await desk.wait(seconds=15)  # the network decides whether money that leaves fails or succeeds

    balances = await desk.balances()
    assert balances[f"service/{SERVICE}/{Wallet.AIRTIME}/AIRTIME available"] == Decimal("39.50")


@pytest.mark.parametrize("transaction_id", ["..", ".", "%2E%2E", "a/../b", "..;v=1"])
async def test_a_value_that_would_change_the_path_is_refused_and_nothing_is_held(
    transaction_id: str,
) -> None:
    desk = Desk(in_path=frozenset({"transaction_id"}))
    await desk.fund("100")

    reply = await desk.pay(transaction_id=transaction_id, **PAYOUT)

    assert (reply.code, reply.rule) == ("400", "D5")
    assert reply.message is not None
    assert reply.message.startswith("Bad request: transaction_id must not be . or ..")
    assert not await desk.has_transaction(transaction_id)
    assert HELD not in await desk.balances()
    assert desk.first.submits == []


async def test_a_value_of_dots_goes_to_a_network_without_the_value_in_its_path() -> None:
    desk = Desk(in_path=frozenset({"transaction_id"}))
    await desk.fund_airtime("100")

    reply = await desk.pay(transaction_id="..", operation=Operation.AIRTIME)

    assert (reply.code, desk.first.submits) == ("202", [])
    assert [each.transaction_id for each in desk.second.submits] == [".."]


async def test_a_value_that_only_one_network_refuses_is_not_a_bad_request() -> None:
    desk = Desk(in_path=frozenset({"transaction_id"}))
    desk.second.capabilities = replace(
        desk.second.capabilities, operations=frozenset({Operation.SMS})
    )

    reply = await desk.pay(transaction_id="..", operation=Operation.AIRTIME)

    assert (reply.code, reply.rule) == ("500", "D32")


async def test_a_value_with_dots_is_taken_if_it_changes_no_path() -> None:
    assert (await Desk().pay(transaction_id="..")).code == "202"
    assert (await Desk(in_path=frozenset({"transaction_id"})).pay(transaction_id="a..b")).code == (
        "202"
    )
