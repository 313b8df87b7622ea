"""A unit assumes that a `transaction_id` is new; if it is used, the unit runs again with a lock."""

from typing import Any

import pytest

from sandbox_sim.callbacks.delivery_queue import ProcessAnswerGate
from sandbox_sim.ports import Store, Unit
from sandbox_sim.records.transactions import TransactionRecord
from sandbox_sim.values.vocabulary import Wallet
from tests import postgres
from tests.sample_records import SERVICE, account_of, after, job, transaction
from tests.stores.conftest import OpenPostgres, claim
from tests.stores.postgres.postgres_servers import taken_over

FIRST, SECOND = transaction("10000000001"), transaction("10000000002")


async def pay(unit: Unit, record: TransactionRecord = FIRST) -> str | None:
    """Look for the `transaction_id`, and add a transaction and its job in any case."""
    found = await unit.network_id_of(SERVICE, "T1")
    await unit.add_transaction(record)
    await unit.add_job(job(record.network_transaction_id))
    return found


async def ids_found_by(store: Store, *, adds: bool) -> list[str | None]:
    """What a unit finds each time that it runs. adds: whether it adds a transaction."""
    seen: list[str | None] = []

    async def submit(unit: Unit) -> None:
        seen.append(await unit.network_id_of(SERVICE, "T1"))
        if adds:
            await unit.add_transaction(SECOND)

    await store.run(submit)
    return seen


async def ids(url: str) -> list[str]:
    """The network ids of all transactions and the subjects of all jobs, in order."""
    found = await postgres.execute(
        url,
        "SELECT network_transaction_id FROM sandbox_sim.transactions "
        "UNION ALL SELECT subject FROM sandbox_sim.jobs ORDER BY 1",
    )
    return [name for (name,) in found]


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first word of each statement that a unit of work sends from now on."""
    from asyncpg import Connection  # noqa: PLC0415 -- it may be missing

    words: list[str] = []

    def note(method: str) -> None:
        original = getattr(Connection, method)

        def noted(self: object, query: str, *values: Any, **options: Any) -> Any:
            words.append(query.split(maxsplit=1)[0])
            return original(self, query, *values, **options)

        monkeypatch.setattr(Connection, method, noted)

    for method in ("execute", "executemany", "fetch"):
        note(method)
    return words


async def test_a_payment_a_rejected_payment_and_a_status_query_take_one_statement_each(
    one: Store, statements: list[str], url: str
) -> None:
    await one.run(lambda unit: unit.network_id_of(SERVICE, "T2"))
    assert statements == ["WITH"]
    assert await ids(url) == []

    statements.clear()
    await one.run(pay)
    assert statements == ["WITH"]
    assert await ids(url) == [FIRST.network_transaction_id] * 2

    statements.clear()
    await one.run(lambda unit: unit.transaction(SERVICE, "T1"))
    assert statements == ["SELECT"]


@pytest.mark.decision("D14")
@pytest.mark.parametrize("adds", [False, True], ids=["rejected", "added"])
async def test_a_unit_finds_a_transaction_id_that_another_server_has_used(
    one: Store, other: Store, adds: bool
) -> None:
    await other.run(pay)

    assert await ids_found_by(one, adds=adds) == [None, FIRST.network_transaction_id]


@pytest.mark.decision("D14")
async def test_a_unit_finds_a_transaction_id_of_this_server_in_its_first_run(one: Store) -> None:
    await one.run(pay)

    assert await ids_found_by(one, adds=True) == [FIRST.network_transaction_id]


async def test_a_failed_payment_leaves_no_record(one: Store, url: str) -> None:
    async def fail(unit: Unit) -> None:
        await pay(unit)
        raise KeyError

    with pytest.raises(KeyError):
        await one.run(fail)

    assert await ids(url) == []


async def test_a_unit_reads_its_payment_before_the_commit(one: Store, url: str) -> None:
    async def pay_and_read(unit: Unit) -> TransactionRecord | None:
        await pay(unit)
        return await unit.transaction_by_network_id(SERVICE, FIRST.network_transaction_id)

    assert await one.run(pay_and_read) == FIRST
    assert await ids(url) == [FIRST.network_transaction_id] * 2


@pytest.mark.decision("D14")
@pytest.mark.parametrize("locks", [False, True], ids=["adds", "locks"])
async def test_a_unit_runs_again_if_another_server_saves_its_transaction_id_first(
    one: Store, other: Store, locks: bool, url: str
) -> None:
    seen: list[str | None] = []

    async def submit(unit: Unit) -> None:
        seen.append(await unit.network_id_of(SERVICE, "T1"))
        if seen == [None]:
            await other.run(pay)
        if locks:
            await unit.balance(account_of(SERVICE, Wallet.SMS))
        if seen[-1] is None:
            await unit.add_transaction(SECOND)

    await one.run(submit)

    assert seen == [None, FIRST.network_transaction_id]
    assert await ids(url) == [FIRST.network_transaction_id] * 2


@pytest.mark.decision("D16")
@pytest.mark.parametrize("reads", [False, True], ids=["adds", "reads"])
async def test_the_job_of_a_payment_waits_for_the_answer(
    open_postgres: OpenPostgres, reads: bool
) -> None:
    gate = ProcessAnswerGate()
    answering, other = await open_postgres(gate=gate), await open_postgres()
    gate.hold(FIRST.network_transaction_id)

    async def work(unit: Unit) -> None:
        await pay(unit)
        if reads:
            await unit.next_due()

    await answering.run(work)
    assert await claim(other) == await claim(answering) == []

    gate.release(FIRST.network_transaction_id)

    assert (await taken_over(other)).subject == FIRST.network_transaction_id


async def test_a_payment_notifies_the_watchers_of_jobs_and_writes(one: Store) -> None:
    noticed: list[object] = []
    one.watch_jobs(noticed.append)
    one.watch(lambda: noticed.append("wrote"))

    async def pay_later(unit: Unit) -> None:
        await unit.network_id_of(SERVICE, "T1")
        await unit.add_transaction(FIRST)
        await unit.add_job(job("10000000001", after(days=1)))

    await one.run(pay_later)

    assert noticed == ["wrote", after(days=1)]
