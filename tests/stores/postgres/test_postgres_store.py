"""Behaviour of the Postgres store alone: several stores on one database act as one."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import chain, pairwise
from operator import methodcaller
from typing import Any

import asyncpg
import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.ledger.ledger_control import AuditResult, Ledger
from sandbox_sim.ports import Store, StoreError, Unit
from sandbox_sim.records.ledger import Reason
from sandbox_sim.records.messages import HistoryQuery
from sandbox_sim.records.transactions import Status
from sandbox_sim.stores.postgres import postgres_store
from sandbox_sim.stores.postgres.postgres_connection import CONNECTIONS, migrate
from sandbox_sim.stores.sql.ledger import SqlLedger
from sandbox_sim.stores.sql.messages import DELETE_OLDEST
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.vocabulary import Wallet
from tests import postgres
from tests.live_records import PAYOUT, paid_in
from tests.sample_records import (
    NOW,
    SERVICE,
    account_of,
    after,
    delivery,
    entry,
    every,
    job,
    message,
    posting,
    postings_of,
    signed,
    transaction,
    violations,
)
from tests.stores.conftest import OpenPostgres, claim
from tests.units import unit_of


class TestSeveralStores:
    async def test_stores_that_open_at_once_create_the_tables_once(
        self, open_postgres: OpenPostgres, url: str
    ) -> None:
        await postgres.execute(url, "DROP SCHEMA IF EXISTS sandbox_sim CASCADE")

        stores: list[Store] = list(await asyncio.gather(*(open_postgres() for _ in range(4))))

        await unit_of(stores[0]).add_transaction(transaction())
        for store in stores:
            found = await unit_of(store).transaction(SERVICE, "T1")
            assert found == transaction()

    @pytest.mark.decision("D40")
    async def test_stores_that_clean_up_at_once_keep_as_many_as_one(
        self, open_postgres: OpenPostgres
    ) -> None:
        stores = [await open_postgres(keep_transactions=3) for _ in range(2)]
        for number in range(9):
            final = transaction(
                f"{number:011d}", transaction_id=f"T{number}", status=Status.SUCCESSFUL
            )
            await unit_of(stores[0]).add_transaction(final)
        now = after(hours=1)

        last = [await store.run(lambda unit: unit.last_to_drop(3, now)) for store in stores]
        for number in range(6):
            drop = methodcaller("drop_transactions", last[number % 2], 2, now)
            await stores[number % 2].run(drop)

        assert len(await unit_of(stores[0]).list_transactions(every(SERVICE))) == 3

    async def test_a_migration_that_meets_a_deadlock_is_repeated(
        self, open_postgres: OpenPostgres, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The other replica may run the previous release and hold locks on the tables."""
        conflicts = [asyncpg.DeadlockDetectedError("deadlock detected")]

        async def meet_deadlock(connection: Any) -> None:
            if conflicts:
                raise conflicts.pop()
            await migrate(connection)

        monkeypatch.setattr(postgres_store, "migrate", meet_deadlock)

        store = await open_postgres()

        assert conflicts == []
        assert await unit_of(store).next_due() is None

    async def test_each_job_is_claimed_by_one_store(self, one: Store, other: Store) -> None:
        async def add_jobs(unit: Unit) -> None:
            for number in range(200):
                await unit.add_job(job(str(number)))

        async def worker(store: Store) -> list[str]:
            found: list[str] = []
            while claimed := await claim(store, 7):
                assert len(claimed) <= 7
                found += [each.subject for each in claimed]
            return found

        await one.run(add_jobs)
        # Each store claims some, on a slow machine too; either may claim the rest.
        first = [[each.subject for each in await claim(store, 7)] for store in (one, other)]
        rest = await asyncio.gather(*(worker(store) for store in (one, other) * 4))

        assert [len(found) for found in first] == [7, 7]
        assert sorted(chain(*first, *rest)) == sorted(map(str, range(200)))

    @pytest.mark.spec("sandbox.10")
    async def test_stores_that_charge_at_once_never_overdraw_an_account(
        self, one: Store, other: Store
    ) -> None:
        accounts = Accounts(sms_initial_units=30)

        def charge(unit: Unit) -> Awaitable[int | None]:
            return accounts.charge(unit, SERVICE, 1, "M1", NOW)

        left = await asyncio.gather(*(store.run(charge) for store in (one, other) * 25))

        assert Counter(left) == Counter([*[None] * 20, *range(30)])
        balance = await unit_of(other).balance(account_of(SERVICE, Wallet.SMS))
        postings = await one.run(lambda unit: postings_of(unit, SERVICE))
        assert balance is not None
        assert balance.amount == sum(map(signed, postings)) == 0
        assert [each.reason for each in postings].count(Reason.OPENING) == 1

    @pytest.mark.decision("D26")
    @pytest.mark.decision("D39")
    async def test_an_audit_reads_one_moment_while_another_store_posts(
        self, one: Store, other: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No query of the audit sees a transfer that is committed between two of them."""
        read = SqlLedger.live_sums

        async def post_and_read(unit: SqlLedger) -> Any:
            await unit_of(other).add_transfer(paid_in("2", PAYOUT))
            return await read(unit)

        monkeypatch.setattr(SqlLedger, "live_sums", post_and_read)
        clock = VirtualClock()
        ledger = Ledger(one, clock, Accounts(), live=True)

        assert [await ledger.audit() for _ in range(2)] == [AuditResult((), 0), AuditResult((), 1)]

    async def test_messages_keep_an_order_without_gaps(self, one: Store, other: Store) -> None:
        sends = [
            [message(f"M{number}-{place}", batch_id=f"B{number}") for place in range(3)]
            for number in range(20)
        ]
        await asyncio.gather(
            *(
                unit_of(store).add_messages(send)
                for store, send in zip((one, other) * 10, sends, strict=True)
            )
        )

        page, total = await unit_of(one).history(HistoryQuery(SERVICE, limit=60))

        assert (len(page), total) == (60, 60)
        batches = [found.batch_id for found in page]
        assert all(batches.count(batch) == 3 for batch in batches)
        assert sum(a != b for a, b in pairwise(batches)) == 19

    @pytest.mark.decision("D18")
    async def test_stores_never_reserve_the_same_numbers(self, open_postgres: OpenPostgres) -> None:
        stores = [await open_postgres() for _ in range(3)]

        reserved = [unit_of(store).reserve(5, 10) for store in stores * 10]

        assert sorted(await asyncio.gather(*reserved)) == list(range(5, 305, 10))

    async def test_the_size_of_the_inboxes_is_counted_for_every_writer(
        self, one: Store, other: Store, url: str
    ) -> None:
        """A server of an earlier version writes to the table `inbox`, and to no other."""
        messages = [delivery("x" * 1000 * number, id=f"D{number}") for number in range(20)]
        await asyncio.gather(
            *(
                unit_of(store).add_inbox_message(f"box {each.id}", each)
                for store, each in zip((one, other) * 10, messages, strict=True)
            )
        )
        await asyncio.gather(
            unit_of(one).clear_inbox("box D3"), unit_of(other).clear_inbox("box D4")
        )
        await postgres.execute(
            url,
            "INSERT INTO sandbox_sim.inbox (name, id, at, document, size) "
            "SELECT name, id, at, document, 5000 FROM sandbox_sim.inbox WHERE name = 'box D5'",
            "DELETE FROM sandbox_sim.inbox WHERE name IN ('box D6', 'box D7', 'none')",
        )

        ((kept, summed),) = await postgres.execute(
            url,
            "SELECT (SELECT sum(kept) FROM sandbox_sim.inbox_bytes), "
            "(SELECT sum(size) FROM sandbox_sim.inbox)",
        )

        assert kept == summed > 0


class TestUnitsInConflict:
    async def test_a_unit_that_meets_a_deadlock_is_repeated(self, one: Store, other: Store) -> None:
        """Each unit waits for a lock of the other. Postgres fails one, and the store repeats it."""
        has_first = {55: asyncio.Event(), 56: asyncio.Event()}
        tries: list[int] = []

        async def work(unit: Unit, first: int, second: int) -> None:
            tries.append(first)
            await unit.balance(account_of(first, Wallet.SMS))
            has_first[first].set()
            await has_first[second].wait()
            await unit.balance(account_of(second, Wallet.SMS))
            await unit.add_transfer(posting("1", service_id=first))

        await asyncio.gather(
            one.run(partial(work, first=55, second=56)),
            other.run(partial(work, first=56, second=55)),
        )

        assert len(tries) == 3
        for service_id in (55, 56):
            assert len(await one.run(partial(postings_of, service_id=service_id))) == 1

    async def test_a_batch_that_waits_for_an_account_is_repeated_with_fewer_jobs(
        self, one: Store, other: Store
    ) -> None:
        for number in range(20):
            await unit_of(one).add_job(job(str(number)))
        held, enough = asyncio.Event(), asyncio.Event()
        sizes: list[int] = []

        async def hold(unit: Unit) -> None:
            await unit.balance(account_of(SERVICE, Wallet.SMS))
            held.set()
            await enough.wait()

        async def batch(unit: Unit) -> None:
            jobs = await unit.claim_due(NOW, 16)
            sizes.append(len(jobs))
            if len(jobs) == 1:
                enough.set()
            await unit.balance(account_of(SERVICE, Wallet.SMS))
            for each in jobs:
                await unit.finish(each)

        holding = asyncio.create_task(one.run(hold))
        await held.wait()
        await other.run(batch)
        await holding

        assert sizes == [16, 4, 1]
        assert len(await claim(one)) == 19

    @pytest.mark.parametrize("action", ["reset", "save", "restore"])
    async def test_a_reset_or_snapshot_waits_for_running_units(
        self, one: Store, other: Store, action: str
    ) -> None:
        """Otherwise a unit could read a balance before the reset and write a wrong one after it."""
        actions: dict[str, Callable[[Unit], Awaitable[object]]] = {
            "reset": lambda unit: unit.reset(None),
            "save": lambda unit: unit.save_snapshot("now", None, NOW),
            "restore": lambda unit: unit.restore_snapshot("before", NOW),
        }
        read, go_on = asyncio.Event(), asyncio.Event()

        async def charge(unit: Unit) -> None:
            await unit.balance(account_of(SERVICE, Wallet.SMS))
            read.set()
            await go_on.wait()
            await unit.add_transfer(posting("-1"))

        await unit_of(one).add_transfer(posting("500"))
        await unit_of(one).save_snapshot("before", None, NOW)
        charging = asyncio.create_task(one.run(charge))
        await read.wait()
        alone = asyncio.gather(*(store.run(actions[action]) for store in (one, other)))
        done, _ = await asyncio.wait({alone}, timeout=0.05)
        assert not done

        go_on.set()
        await asyncio.gather(charging, alone)

        assert await one.run(violations) == ()

    async def test_a_unit_that_ignores_an_error_of_postgres_fails(self, one: Store) -> None:
        async def work(unit: Unit) -> str:
            await unit.add_transaction(transaction())
            try:
                await unit.add_transaction(transaction())
            except Exception:  # this unit ignores every error
                return "saved"
            return "both"

        with pytest.raises(StoreError, match="rolled back"):
            await one.run(work)
        assert await unit_of(one).transaction(SERVICE, "T1") is None


async def test_units_get_a_connection_in_the_order_in_which_they_ask(one: Store) -> None:
    order: list[int] = []
    began: list[int] = []

    async def work(number: int, unit: Unit) -> None:
        began.append(number)
        await unit.next_due()

    async def ask(number: int) -> None:
        for _ in range(number):  # each in another turn of the loop
            await asyncio.sleep(0)
        order.append(number)
        await one.run(partial(work, number))

    await asyncio.gather(*(one.run(lambda unit: unit.next_due()) for _ in range(CONNECTIONS)))
    await asyncio.gather(*(ask(number) for number in range(150)))

    assert began == order


@pytest.mark.parametrize("mode", ServiceMode)
async def test_the_oldest_requests_are_deleted_without_a_sort_of_all(
    one: Store, url: str, mode: ServiceMode
) -> None:
    await unit_of(one).add_entries([entry(f"R{n}", mode=mode) for n in range(2000)])
    statement = DELETE_OLDEST[mode].replace("?", "{}").format(SERVICE, 50)

    plan = await postgres.execute(
        url, "SET search_path TO sandbox_sim", "ANALYZE requests", f"EXPLAIN {statement}"
    )

    assert "Sort" not in str(plan)
