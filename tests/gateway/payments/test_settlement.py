"""How a transaction ends: first its status, then the money, then the job for the callback."""

import json
from decimal import Decimal
from operator import methodcaller

import pytest

from sandbox_sim.adapters.clock import VirtualClock
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.adapters.stores.memory.memory_store import MemoryStore
from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.callbacks.callbacks import Callback
from sandbox_sim.domain.callbacks.signature import sign
from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.control.overrides import CallbackBehaviour, Override
from sandbox_sim.domain.jobs import Job, JobKind
from sandbox_sim.domain.ledger import Account
from sandbox_sim.domain.payments.transactions import IllegalTransition, Status, Transaction
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ledger.accounts import Accounts
from sandbox_sim.gateway.payments.settlement import CallbackSettings, Settlement
from tests.records import NOW, SERVICE, after, every, job, transaction

CLIENT = Client("sandbox_key", "sandbox_secret")
THEN = after(seconds=1)


class Desk:
    """A settlement over a memory store."""

    def __init__(
        self,
        notices: CallbackSettings | None = None,
        client: Client = CLIENT,
        *,
        live: bool = False,
    ) -> None:
        self.store = MemoryStore(VirtualClock())
        self.settlement = Settlement(
            RandomIds(seed=1),
            Accounts(live=live),
            {client.client_key: client},
            notices or CallbackSettings(),
        )

    async def take(self, *transactions: Transaction) -> None:
        for each in transactions:
            await self.store.run(methodcaller("add_transaction", each))

    async def fall_due(self, network_id: str = "10000000001") -> None:
        due = job(network_id, THEN)
        await self.store.run(lambda unit: self.settlement.on_due(unit, due, THEN))

    async def end(self, to: Status, *, notify: bool = True) -> Transaction:
        return await self.store.run(
            lambda unit: self.settlement.conclude(unit, transaction(), to, THEN, notify=notify)
        )

    async def transaction(self, network_id: str = "10000000001") -> Transaction:
        found = await self.store.run(lambda u: u.transaction_by_network_id(SERVICE, network_id))
        assert found is not None
        return found

    async def callbacks(self) -> list[Callback]:
        return list(await self.store.run(lambda unit: unit.list_callbacks(every(SERVICE))))

    async def jobs(self) -> list[Job]:
        return list(await self.store.run(lambda unit: unit.claim_due(after(days=1), 100)))


@pytest.mark.spec("states.transactions", "sandbox.3")
@pytest.mark.decision("D16")
class TestFallingDue:
    async def test_a_pending_transaction_succeeds_and_its_callback_is_due_at_once(self) -> None:
        desk = Desk()
        await desk.take(transaction())

        await desk.fall_due()

        assert (await desk.transaction()).timeline == ((Status.PENDING, NOW), ("000", THEN))
        (callback,) = await desk.callbacks()
        (promised,) = await desk.jobs()
        assert promised._replace(number=0) == Job(THEN, JobKind.DELIVER, SERVICE, callback.id)

    @pytest.mark.parametrize("status", [Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED])
    async def test_a_decided_one_stays_as_it_is(self, status: Status) -> None:
        decided = transaction().moved(status, NOW)
        desk = Desk()
        await desk.take(decided)

        await desk.fall_due()

        assert await desk.transaction() == decided
        assert (await desk.callbacks(), await desk.jobs()) == ([], [])

    async def test_one_that_is_gone_is_no_fault(self) -> None:
        desk = Desk()

        await desk.fall_due()

        assert await desk.callbacks() == []

    @pytest.mark.decision("D14")
    async def test_two_of_one_transaction_id_each_end_by_themselves(self) -> None:
        desk = Desk()
        await desk.take(transaction("10000000001"), transaction("10000000002"))

        await desk.fall_due("10000000001")

        assert (await desk.transaction("10000000001")).status is Status.SUCCESSFUL
        assert (await desk.transaction("10000000002")).status is Status.PENDING
        assert [c.network_transaction_id for c in await desk.callbacks()] == ["10000000001"]


@pytest.mark.decision("D16")
class TestBeginning:
    """A transaction begins with its record, what it spends, and the job that settles it."""

    async def begin(self, desk: Desk, begun: Transaction) -> list[Job]:
        return list(await desk.store.run(lambda u: desk.settlement.begin(u, begun, THEN)))

    async def test_it_is_saved_and_falls_due_at_the_time_that_is_given(self) -> None:
        desk = Desk()

        jobs = await self.begin(desk, transaction())

        assert jobs == [Job(THEN, JobKind.SETTLE, SERVICE, "10000000001")]
        assert await desk.transaction() == transaction()
        assert await desk.jobs() == [], "the caller adds the job"

    @pytest.mark.decision("D21")
    @pytest.mark.parametrize("live", [True, False])
    async def test_what_it_spends_is_taken_at_once_where_balances_are_live(
        self, live: bool
    ) -> None:
        desk = Desk(live=live)

        await self.begin(desk, transaction(operation=Operation.PAYOUT))

        balance = await desk.store.run(lambda unit: unit.balance(SERVICE, Account.PAYOUT))
        assert (balance and balance.amount) == (Decimal("9989.50") if live else None)

    async def test_one_that_a_person_decides_has_no_job(self) -> None:
        assert await self.begin(Desk(), transaction(by_hand=True)) == []

    async def test_the_delay_of_an_override_comes_on_top(self) -> None:
        (due,) = await self.begin(Desk(), transaction(override=Override("O1", delay_ms=500)))

        assert due.due_at == after(seconds=1.5)

    @pytest.mark.parametrize("status", [None, Status.FAILED, Status.CANCELLED])
    async def test_one_with_its_callback_before_the_answer_ends_at_once(
        self, status: Status | None
    ) -> None:
        desk = Desk()
        early = Override("O1", status, callback=CallbackBehaviour(before_response=True))

        jobs = await self.begin(desk, transaction(override=early))

        ended = await desk.transaction()
        assert jobs == []
        assert (ended.status, ended.decided_at) == (status or Status.SUCCESSFUL, NOW)
        assert [each.kind for each in await desk.jobs()] == [JobKind.DELIVER]


@pytest.mark.decision("D31")
class TestConcluding:
    @pytest.mark.parametrize("status", [Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED])
    @pytest.mark.parametrize("notify", [True, False])
    async def test_a_callback_goes_out_only_where_it_is_asked_for(
        self, status: Status, notify: bool
    ) -> None:
        desk = Desk()
        await desk.take(transaction())

        decided = await desk.end(status, notify=notify)

        assert await desk.transaction() == decided
        assert decided.status is status
        assert len(await desk.callbacks()) == len(await desk.jobs()) == int(notify)

    async def test_what_is_decided_cannot_be_decided_again(self) -> None:
        desk = Desk()
        await desk.take(transaction())
        decided = (await desk.end(Status.CANCELLED)).moved

        with pytest.raises(IllegalTransition):
            decided(Status.SUCCESSFUL, THEN)


@pytest.mark.spec("delivery.1")
@pytest.mark.decision("D27", "D29")
class TestTheCallback:
    async def written(self, desk: Desk, **fields: str) -> Callback:
        await desk.take(transaction(**fields))
        await desk.fall_due()
        (callback,) = await desk.callbacks()
        return callback

    async def test_it_tells_the_new_status_to_the_address_of_the_request(self) -> None:
        callback = await self.written(Desk(), callback_url="http://shop.test/hook")

        assert json.loads(callback.body)["trans_status"] == "000/SUCCESS"
        assert (callback.url, callback.transaction_id) == ("http://shop.test/hook", "T1")

    async def test_it_is_signed_with_the_secret_key_of_the_client(self) -> None:
        callback = await self.written(Desk())

        assert callback.signature == sign(callback.body.encode(), "sandbox_secret")

    async def test_signing_is_a_setting(self) -> None:
        assert (await self.written(Desk(CallbackSettings(signed=False)))).signature is None

    async def test_a_client_that_is_no_longer_configured_has_no_key_to_sign_with(self) -> None:
        assert (await self.written(Desk(), client_key="former")).signature is None

    @pytest.mark.parametrize(
        ("profile", "of_client", "url", "chosen"),
        [
            (Profile.TRANS, None, "http://shop.test/hook", Profile.TRANS),
            (Profile.FLAT, None, "http://shop.test/hook", Profile.FLAT),
            (Profile.FLAT, Profile.SUPERSET, "http://shop.test/hook", Profile.SUPERSET),
            (Profile.FLAT, Profile.SUPERSET, "http://shop.test/wc-api/x", Profile.EVENT),
        ],
        ids=["default", "server", "credentials before server", "address before credentials"],
    )
    async def test_the_profile_is_of_the_address_then_the_credentials_then_the_server(
        self, profile: Profile, of_client: Profile | None, url: str, chosen: Profile
    ) -> None:
        notices = CallbackSettings(profile, {"*/wc-api/*": Profile.EVENT})
        desk = Desk(notices, Client("sandbox_key", "sandbox_secret", callback_profile=of_client))

        assert (await self.written(desk, callback_url=url)).profile is chosen


@pytest.mark.decision("D21")
class TestMoney:
    @pytest.mark.parametrize("live", [True, False])
    async def test_collected_money_arrives_with_success_where_balances_are_live(
        self, live: bool
    ) -> None:
        desk = Desk(live=live)
        await desk.take(transaction())

        await desk.fall_due()

        balance = await desk.store.run(lambda unit: unit.balance(SERVICE, Account.COLLECTION))
        assert (balance and balance.amount) == (Decimal("100010.50") if live else None)

    async def test_spent_money_comes_back_where_the_transaction_does_not_succeed(self) -> None:
        desk = Desk(live=True)
        payout = transaction(operation=Operation.PAYOUT)
        await desk.take(payout)
        await desk.store.run(lambda u: desk.settlement.conclude(u, payout, Status.CANCELLED, THEN))

        entries = await desk.store.run(lambda unit: unit.postings(SERVICE))
        assert [(entry.reason, entry.amount) for entry in entries] == [
            ("opening", Decimal(10000)),
            ("returned", Decimal("10.50")),
        ]
