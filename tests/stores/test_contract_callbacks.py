"""Callbacks in every store: each state is kept, and a callback that waits is never deleted."""

from datetime import datetime
from pathlib import Path

import pytest

from sandbox_sim.ports import Store
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import CallbackRecord, DeliveryState, ReceiverResponse
from sandbox_sim.records.jobs import DELIVERY_KINDS, JobKind
from tests.sample_records import NOW, SERVICE, after, callback, job
from tests.sqlite_files import opened, outside
from tests.units import unit_of

REFUSED = ReceiverResponse(500, "sorry", 3)


def tried(callback_id: str, *answers: ReceiverResponse) -> CallbackRecord:
    """A callback after an attempt with each of these answers."""
    made = callback(callback_id)
    for answer in answers:
        made = made.with_attempt(answer, NOW, Behaviour().schedule)
    return made


@pytest.mark.decision("D30")
@pytest.mark.parametrize(
    ("answers", "state"),
    [
        ([], DeliveryState.PENDING),
        ([REFUSED], DeliveryState.RETRYING),
        ([REFUSED, REFUSED], DeliveryState.RETRYING),
        ([REFUSED, REFUSED, REFUSED], DeliveryState.FAILED),
        ([REFUSED, ReceiverResponse(200, "", 3)], DeliveryState.DELIVERED),
    ],
)
async def test_a_callback_comes_back_in_its_state(
    store: Store, answers: list[ReceiverResponse], state: DeliveryState
) -> None:
    saved = tried("C1", *answers)
    await unit_of(store).save_callback(saved)

    found = await unit_of(store).callback(SERVICE, "C1")

    assert found == saved
    assert found is not None
    assert found.state is state


async def test_a_row_of_a_version_without_retrying_is_read_as_retrying(tmp_path: Path) -> None:
    """An older version writes `pending` between two attempts."""
    path = tmp_path / "state.sqlite3"
    async with opened(path) as store:
        await unit_of(store).save_callback(tried("C1", REFUSED))

    outside(path, "UPDATE callbacks SET state = 'pending'")

    async with opened(path) as store:
        found = await unit_of(store).callback(SERVICE, "C1")
    assert found is not None
    assert found.state is DeliveryState.RETRYING


class TestBringForward:
    """The unit makes planned attempts at callbacks due earlier."""

    async def add(self, store: Store, **due: datetime) -> None:
        for name, due_at in due.items():
            planned = job(name, due_at, kind=JobKind.DELIVER)
            await unit_of(store).add_job(planned)

    async def claimed(self, store: Store, now: datetime) -> list[str]:
        return [each.subject for each in await unit_of(store).claim_due(now, 100)]

    async def test_the_jobs_named_are_due_now_and_no_others(self, store: Store) -> None:
        await self.add(store, C1=after(minutes=5), C2=after(minutes=5), C3=after(minutes=5))

        found = await unit_of(store).bring_forward(["C3", "C1", "unknown"], NOW)

        assert sorted(found) == ["C1", "C3"]
        assert await self.claimed(store, NOW) == ["C1", "C3"]
        assert await self.claimed(store, after(minutes=5)) == ["C2"]

    @pytest.mark.parametrize("kind", DELIVERY_KINDS)
    async def test_deliveries_of_both_modes_are_moved(self, store: Store, kind: JobKind) -> None:
        await unit_of(store).add_job(job("C1", after(minutes=5), kind=kind))

        assert list(await unit_of(store).bring_forward(["C1"], NOW)) == ["C1"]
        assert await self.claimed(store, NOW) == ["C1"]

    async def test_one_that_is_due_already_keeps_its_place(self, store: Store) -> None:
        await self.add(store, C1=after(seconds=-2), C2=after(seconds=-1))

        found = await unit_of(store).bring_forward(["C2", "C1"], NOW)

        assert sorted(found) == ["C1", "C2"]
        assert await self.claimed(store, NOW) == ["C1", "C2"]
        assert await self.claimed(store, after(days=1)) == []

    async def test_a_claimed_job_is_left_alone(self, store: Store) -> None:
        await self.add(store, C1=NOW)
        (claimed,) = await unit_of(store).claim_due(NOW, 1)

        assert list(await unit_of(store).bring_forward(["C1"], NOW)) == []

        await unit_of(store).finish(claimed)

    async def test_a_job_of_another_kind_is_left_alone(self, store: Store) -> None:
        planned = job("C1", after(minutes=5), kind=JobKind.RELEASE)
        await unit_of(store).add_job(planned)

        assert list(await unit_of(store).bring_forward(["C1"], NOW)) == []
        assert await self.claimed(store, NOW) == []

    async def test_none_is_none(self, store: Store) -> None:
        assert list(await unit_of(store).bring_forward([], NOW)) == []

    async def test_whoever_waits_for_the_next_job_hears_of_it(self, store: Store) -> None:
        await self.add(store, C1=after(minutes=5))
        noticed: list[datetime] = []
        store.watch_jobs(noticed.append)

        await unit_of(store).bring_forward(["C1"], NOW)

        assert min(noticed) == NOW
