"""Several units share one commit, but each of them succeeds or fails by itself."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable
from functools import partial
from operator import methodcaller
from pathlib import Path

import pytest

from sandbox_sim.ports import Topic, Unit
from sandbox_sim.stores.sqlite.sqlite_store import SqliteStore
from tests.sample_records import SERVICE, after, job, posting, postings_of
from tests.sqlite_files import SOON, busy, connection_of, opened
from tests.stores.conftest import Broken
from tests.stores.sqlite.conftest import post, posted
from tests.units import unit_of


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    async with opened(path) as store:
        yield store


@pytest.fixture
async def statements(store: SqliteStore) -> list[str]:
    """Every statement that the database executes from now on."""
    seen: list[str] = []

    async def listen(unit: Unit) -> None:
        connection_of(unit).set_trace_callback(seen.append)

    await store.run(listen)
    seen.clear()
    return seen


def submit(
    store: SqliteStore, subjects: list[str], broken: frozenset[str] = frozenset()
) -> list[asyncio.Task[str]]:
    """Submit a unit for each subject, in this order. Units of `broken` subjects raise."""

    async def work(subject: str, unit: Unit) -> str:
        await post(subject, unit)
        if subject in broken:
            raise Broken(subject)
        return subject

    return [asyncio.create_task(store.run(partial(work, each))) for each in subjects]


FIFTY = [str(number) for number in range(50)]


class TestOneCommit:
    @pytest.mark.parametrize(("count", "commits"), [(50, 1), (1000, 4)])
    async def test_units_that_wait_together_share_a_commit_in_their_order(
        self, store: SqliteStore, count: int, commits: int
    ) -> None:
        """A caller gets its answer only after its unit is saved."""
        answers_at_commit: list[int] = []
        tasks: list[asyncio.Task[str]] = []

        def listen(statement: str) -> None:
            if statement == "COMMIT":
                answers_at_commit.append(sum(task.done() for task in tasks))

        async def trace(unit: Unit) -> None:
            connection_of(unit).set_trace_callback(listen)

        await store.run(trace)
        answers_at_commit.clear()
        subjects = [str(number) for number in range(count)]
        async with busy(store):
            tasks = submit(store, subjects)

        assert await asyncio.gather(*tasks) == subjects
        # One for the unit that kept the store busy, and these for all the others.
        assert len(answers_at_commit) == 1 + commits
        assert answers_at_commit[:2] == [0, 0]
        assert all(done <= 256 * number for number, done in enumerate(answers_at_commit))
        assert await posted(store) == subjects

    async def test_a_unit_reads_the_writes_of_earlier_units(self, store: SqliteStore) -> None:
        async def count(unit: Unit) -> int:
            await unit.add_transfer(posting("1"))
            return len(await postings_of(unit, SERVICE))

        async with busy(store):
            tasks = [asyncio.create_task(store.run(count)) for _ in range(10)]

        assert await asyncio.gather(*tasks) == list(range(1, 11))


async def test_the_log_is_copied_after_the_commits_that_made_it_long(
    store: SqliteStore, statements: list[str], path: Path
) -> None:
    """SQLite appends commits to a log. A copy takes time; without it the log grows for ever."""
    sizes = []
    for _ in range(2):
        for _ in range(25):
            await asyncio.gather(*submit(store, FIFTY))
        sizes.append(path.with_name(f"{path.name}-wal").stat().st_size)
    await posted(store)

    copies = [at for at, each in enumerate(statements) if "checkpoint" in each]
    assert len(copies) == 5  # a posting changes two rows
    assert [statements[at - 1] for at in copies] == ["COMMIT"] * 5
    assert sizes[0] == sizes[1]


class TestFailingUnit:
    @pytest.mark.parametrize(
        "broken",
        [{"0"}, {"25"}, {"49"}, {"3", "4", "47"}, set(FIFTY)],
        ids=["the first", "one between", "the last", "several", "all"],
    )
    async def test_a_failing_unit_does_not_fail_the_others(
        self, store: SqliteStore, broken: set[str]
    ) -> None:
        async with busy(store):
            tasks = submit(store, FIFTY, frozenset(broken))
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)

        for subject, outcome in zip(FIFTY, outcomes, strict=True):
            if subject in broken:
                assert isinstance(outcome, Broken)
                assert outcome.args == (subject,)
            else:
                assert outcome == subject
        assert await posted(store) == [each for each in FIFTY if each not in broken]

    async def test_watchers_get_the_jobs_of_the_other_units_only(self, store: SqliteStore) -> None:
        noticed: list[str] = []
        store.watch_jobs(lambda due_at: noticed.append(f"{due_at:%H:%M}"))

        async def add(minutes: int, unit: Unit) -> None:
            await unit.add_job(job(due_at=after(minutes=minutes)))
            if minutes == 1:
                raise Broken

        async with busy(store):
            tasks = [asyncio.create_task(store.run(partial(add, minutes))) for minutes in (3, 1, 2)]
        await asyncio.gather(*tasks, return_exceptions=True)

        assert min(noticed) == "09:02"

    async def test_a_unit_may_raise_before_it_does_anything(self, store: SqliteStore) -> None:
        def refuse(_unit: Unit) -> Awaitable[str]:
            raise Broken

        async with busy(store):
            tasks = [*submit(store, ["a"]), asyncio.create_task(store.run(refuse))]
            tasks += submit(store, ["b"])
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)

        assert [type(outcome) for outcome in outcomes] == [str, Broken, str]
        assert await posted(store) == ["a", "b"]


@pytest.mark.parametrize("broken", [frozenset[str](), frozenset({"0", "20"})])
async def test_a_cancelled_caller_does_not_cancel_its_unit(
    store: SqliteStore, broken: frozenset[str]
) -> None:
    """A client that closes its connection does not undo its request, and its error is dropped."""
    async with busy(store):
        tasks = submit(store, FIFTY, broken)
        await asyncio.sleep(0)
        for number in (0, 20, 49):
            tasks[number].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    for number, outcome in enumerate(outcomes):
        if number in {0, 20, 49}:
            assert isinstance(outcome, asyncio.CancelledError)
        else:
            assert outcome == FIFTY[number]
    assert await posted(store) == [each for each in FIFTY if each not in broken]


class TestClosing:
    @pytest.mark.parametrize("number", [1, 50, 256, 600])
    async def test_a_close_runs_the_units_submitted_before(self, path: Path, number: int) -> None:
        subjects = [str(each) for each in range(number)]
        async with opened(path) as store:
            async with busy(store):
                tasks = submit(store, subjects)
                await asyncio.sleep(0)
                closing = asyncio.create_task(store.close())
            await closing
            assert [task.result() for task in tasks] == subjects

        async with opened(path) as store:
            assert await posted(store) == subjects

    async def test_a_close_ends_the_thread(self, path: Path) -> None:
        def threads() -> list[str]:
            return [each.name for each in threading.enumerate() if each.name == "sqlite"]

        async with opened(path):
            assert threads() == ["sqlite"]
        assert threads() == []


async def test_a_watcher_that_reads_the_store_never_waits_for_the_next_announcement(
    store: SqliteStore,
) -> None:
    """The watcher's read may share a commit with an announcement that waits for the watcher."""
    notices: list[None] = []
    announce = methodcaller("announce", Topic.RULES)
    later: list[asyncio.Task[None]] = []

    async def notice() -> None:
        notices.append(None)
        if len(notices) == 1:
            async with busy(store):
                reading = asyncio.create_task(unit_of(store).user_rules())
                later.append(asyncio.create_task(store.run(announce)))
                await asyncio.sleep(0)
            await reading

    store.watch_topic(Topic.RULES, notice)
    async with asyncio.timeout(SOON):
        await store.run(announce)
        await later[0]

    assert len(notices) == 2
