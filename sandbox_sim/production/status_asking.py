"""Asks networks for the outcome of attempts that are open. Source: D39.

An attempt has one next status query, at `next_ask_at`, and a job at that time. A job that runs
before that time is left over from an earlier schedule, and just ends. So an attempt never loses its
chain of jobs, and two chains of one attempt become one. A final attempt has such a query only
because of a hint, up to three times until the network gives an outcome, and a separate chain of
jobs that rechecks it once a day.

The claim of the job is the lease of the attempt: one server at a time asks, and repeats the request
if the network allows that. A replica may have a network that this server has not got yet: then this
server plans the job again, until the replica claims it.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sandbox_sim.ports import Clock, Store, StoreError, Unit
from sandbox_sim.ports.network import StatusQuery, StatusResult, SubmitRequest, SubmitResult
from sandbox_sim.production import processor
from sandbox_sim.production.background_jobs import BackgroundJobs
from sandbox_sim.production.decisions import CannotAsk, describe_answer
from sandbox_sim.production.outcome_recorder import OutcomeRecorder, after_submit
from sandbox_sim.production.registry import Networks
from sandbox_sim.records.attempts import (
    LONGEST_PAUSE,
    RECHECK_INTERVAL,
    Attempt,
    Change,
    Judgement,
    find_undecided,
    latest_ask,
    may_submit_again,
    repeats_end_at,
)
from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.reports import Outcome

# How often it is checked, in real time, whether the machine's clock was set back, and by how much.
CLOCK_CHECK_INTERVAL_S: Final = 5.0

LEAST_SET_BACK: Final = timedelta(minutes=1)


log = logging.getLogger("sandbox_sim.networks")


@dataclass(eq=False, repr=False)
class StatusAsking:
    """Runs the jobs `ASK_NETWORK` in `background`, and `RECHECK_FINAL` in `rechecks`."""

    store: Store
    clock: Clock
    networks: Networks
    recorder: OutcomeRecorder

    def __post_init__(self) -> None:
        self.background = BackgroundJobs(self.store, self.clock, self._ask)
        self.rechecks = BackgroundJobs(self.store, self.clock, self._recheck)

    async def run_forever(self) -> None:
        """Bring status queries forward after the machine's clock was set back; never returns.

        They would wait for as long as it was set back.
        """
        began = self._boot_time()
        while True:
            await self.clock.wait_at_most(asyncio.Event(), CLOCK_CHECK_INTERVAL_S)
            back = began - self._boot_time()
            if back >= LEAST_SET_BACK:
                log.error(
                    "the clock of the machine was set back by %s: what was planned before waits up "
                    "to that long, status queries for an hour at most; see transactions list",
                    timedelta(seconds=round(back.total_seconds())),
                )
                try:
                    await self.reschedule_late_queries()
                except StoreError as error:
                    log.error("status queries wait for the store: %s", error)  # noqa: TRY400
                    continue
            began -= back

    def _boot_time(self) -> datetime:
        """When real time was 0; it changes only if the machine's clock is set."""
        return self.clock.machine_now() - timedelta(seconds=self.clock.monotonic())

    async def reschedule_late_queries(self) -> None:
        """Bring status queries forward that are later than any schedule allows.

        Earlier releases accepted any time that a network named, such as the year 2099, and the
        machine's clock may have been set back.
        """
        late = self.clock.now() + LONGEST_PAUSE
        jobs = await self.store.run(lambda unit: unit.jobs_after(late))
        for attempt_id in {each.subject for each in jobs if each.kind is JobKind.ASK_NETWORK}:
            await self.store.run(partial(self._reschedule_if_late, attempt_id))

    async def _reschedule_if_late(self, attempt_id: str, unit: Unit) -> None:
        attempt, now = await unit.attempt(attempt_id), self.clock.now()
        if attempt is None or not attempt.is_open or attempt.next_ask_at is None:
            return
        latest = latest_ask(attempt, self.networks.terms(attempt.network), now)
        if attempt.next_ask_at > latest:
            earlier = Judgement(attempt._replace(next_ask_at=latest), Change.NOTHING)
            await self.recorder.save(unit, attempt, earlier, now)

    async def ask_now(self, attempt: Attempt) -> StatusResult | None:
        """Ask for the status of an attempt, for a person; None if that is not possible.

        Does not save it.
        """
        if not self._can_ask(attempt):
            return None
        return await self.networks.status(attempt.network, _status_query(attempt), by_hand=True)

    async def ask_by_hand(self, network_transaction_id: str, service_id: int | None) -> str | None:
        """Ask the network of a transaction now and save its answer; returns it in words.

        service_id: None for a transaction of any service. Returns None if there is no attempt.
        The request is never sent again. Raises `CannotAsk`.
        """
        attempts = await self.store.run(lambda unit: unit.attempts_of(network_transaction_id))
        if not attempts or service_id not in {None, attempts[0].service_id}:
            return None
        attempt = find_undecided(attempts)
        result = await self.ask_now(attempt)
        if result is None:
            raise CannotAsk(
                f"{describe_answer(attempt.network, None)}: it has no status query, or is not "
                f"configured. Look for reference {attempt.reference} in its own list, and settle"
            )
        await self.store.run(partial(self._record_by_hand, attempt.id, result))
        return describe_answer(attempt.network, result.report)

    async def _record_by_hand(self, attempt_id: str, result: StatusResult, unit: Unit) -> None:
        attempt = await unit.attempt(attempt_id)
        if attempt is not None:
            await self.record(unit, attempt, result)

    async def record(self, unit: Unit, before: Attempt, result: StatusResult) -> Judgement:
        """Save the status of an attempt that was read in this unit."""
        now = self.clock.now()
        judged = self._judge(before, result, now)
        await self.recorder.save(unit, before, judged, now)
        return judged

    async def _recheck(self, job: Job) -> None:
        """Ask for a final outcome once more; a network that disagrees makes a contradiction."""
        attempt = await self.store.run(lambda unit: unit.attempt(job.subject))
        if attempt is None or not self._can_ask(attempt):
            await self.store.run(partial(self._end_recheck, job, attempt))
            return
        result = await self.networks.status(attempt.network, _status_query(attempt))
        await self.store.run(partial(self._record_recheck, job, result))

    async def _end_recheck(self, job: Job, attempt: Attempt | None, unit: Unit) -> None:
        """End a job that cannot ask; another server may have the network, until the next is due."""
        await unit.finish(job)
        if attempt is None or attempt.decided_at is None or self._has_network(attempt):
            return
        later, began = self.clock.now() + LONGEST_PAUSE, attempt.decided_at
        if (later - began) // RECHECK_INTERVAL == (job.due_at - began) // RECHECK_INTERVAL:
            await unit.add_job(job._replace(due_at=later))

    async def _record_recheck(self, job: Job, result: StatusResult, unit: Unit) -> None:
        await unit.finish(job)
        attempt = await unit.attempt(job.subject)
        if attempt is None:
            return
        now = self.clock.now()
        judged = await self.recorder.record(unit, attempt, result.report, now)
        await self.recorder.schedule_recheck(unit, judged.attempt, now)

    async def _ask(self, job: Job) -> None:
        attempt = await self.store.run(partial(self._attempt_to_ask, job))
        if attempt is None:
            return
        result = await self.networks.status(attempt.network, _status_query(attempt))
        repeat = await self.store.run(partial(self._record, job, result))
        if repeat is None:
            return
        # If this process dies before the answer to the repeat is recorded, or the commit took too
        # long, the job that was added together with the repeat asks for the outcome.
        if self.clock.now() >= repeats_end_at(attempt, self.networks.terms(attempt.network)):
            log.warning("attempt %s is not repeated: the store took too long", attempt.id)
            return
        answer = await self.networks.submit(attempt.network, repeat)
        await self.store.run(partial(self._record_repeat, attempt.id, answer))

    async def _attempt_to_ask(self, job: Job, unit: Unit) -> Attempt | None:
        """The attempt of a job; ends the job and returns None if it is left over."""
        attempt = await unit.attempt(job.subject)
        if attempt is None or not _is_due(attempt, job):
            await unit.finish(job)
            return None
        if not self._can_ask(attempt):
            await unit.finish(job)
            if not self._has_network(attempt):
                await self._requeue_for_other_server(unit, attempt)
            return None
        if not attempt.is_open:
            # A hint that comes from now on needs another query.
            await unit.save_attempt(attempt._replace(asked_at=self.clock.now()))
        return attempt

    async def _requeue_for_other_server(self, unit: Unit, attempt: Attempt) -> None:
        """Plan the query again, for a server that has the network of the attempt."""
        now, schedule = self.clock.now(), self.networks.terms(attempt.network).schedule
        later = schedule.next_ask(attempt.created_at, attempt.polls, now, 0.0)
        postponed = Judgement(attempt._replace(next_ask_at=later), Change.NOTHING)
        await self.recorder.save(unit, attempt, postponed, now)

    def _can_ask(self, attempt: Attempt) -> bool:
        return self._has_network(attempt) and self.networks.terms(attempt.network).has_status

    def _has_network(self, attempt: Attempt) -> bool:
        """Whether this server has the network of an attempt."""
        return attempt.network in self.networks.by_name

    async def _record(self, job: Job, result: StatusResult, unit: Unit) -> SubmitRequest | None:
        """Record the status; returns the request if it must be sent again."""
        await unit.finish(job)
        before = await unit.attempt(job.subject)
        if before is None:
            return None
        now = self.clock.now()
        is_for_hint = not before.is_open and _is_due(before, job)
        if is_for_hint:
            before = before._replace(next_ask_at=None)
        judged = self._judge(before, result, now)
        terms, repeat = self.networks.terms(before.network), None
        if may_submit_again(judged.attempt, terms, now):
            repeat = processor.request_from_json(await unit.saved_request(before.id))
        if repeat is not None:
            judged = judged._replace(attempt=after_submit(judged.attempt, terms, now))
        await self.recorder.save(unit, before, judged, now)
        self._log_given_up(before, judged.attempt, now)
        is_unanswered = result.found and result.outcome is Outcome.UNKNOWN
        later = job.rescheduled(now)
        if is_for_hint and is_unanswered and not later.is_listed:
            await unit.save_attempt(judged.attempt._replace(next_ask_at=later.due_at))
            await unit.add_job(later)
        return repeat

    def _judge(self, before: Attempt, result: StatusResult, now: datetime) -> Judgement:
        """Judge a status; the next query is as late as the network asked for, within bounds."""
        judged = self.recorder.judge(before, result.report, now)
        attempt, pause = judged.attempt, result.retry_after
        if pause is None or attempt.next_ask_at is None or judged.change is Change.ENDED:
            return judged
        bounded = min(pause, self.networks.terms(attempt.network).schedule.longest_pause)
        later = max(attempt.next_ask_at, now + bounded)
        return judged._replace(attempt=attempt._replace(next_ask_at=later))

    def _log_given_up(self, before: Attempt, after: Attempt, now: datetime) -> None:
        """Log that an attempt waits for a person, the first time that it does."""
        schedule = self.networks.terms(after.network).schedule
        since = before.asked_at or before.created_at
        is_given_up = schedule.is_given_up(after.created_at, now)
        if after.is_open and is_given_up and not schedule.is_given_up(before.created_at, since):
            name = after.id, after.network
            log.error("attempt %s at %s has no outcome and waits for a person", *name)

    async def _record_repeat(self, attempt_id: str, answer: SubmitResult, unit: Unit) -> None:
        attempt = await unit.attempt(attempt_id)
        if attempt is not None:
            await self.recorder.record(unit, attempt, answer.report, self.clock.now())


def _status_query(attempt: Attempt) -> StatusQuery:
    return StatusQuery(
        *(attempt.id, attempt.reference, attempt.transaction_id, attempt.service_id),
        *(attempt.operation, attempt.network_id, attempt.created_at),
    )


def _is_due(attempt: Attempt, job: Job) -> bool:
    """Whether a job is for the next query of its attempt, and not left over."""
    if attempt.next_ask_at is None:
        return False
    # For a final attempt, a job from before the end must not ask a second time.
    return (
        attempt.next_ask_at <= job.due_at if attempt.is_open else attempt.next_ask_at == job.due_at
    )
