"""Asks networks for the outcome of attempts that are open. Source: D39.

Each attempt has one next question, `next_ask_at`, and a job at that time. A job that comes before
the time of the next question is left over from a plan that was changed, and only ends. So an
attempt never loses its chain of jobs, and two chains of one attempt become one.

The claim of the job is the lease of the attempt: one server at a time asks, and sends a request
again where the network allows that.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sandbox_sim.domain.jobs import Job
from sandbox_sim.domain.networks.attempts import Attempt, Change, Judgement, may_submit_again
from sandbox_sim.gateway.networks import saved_requests
from sandbox_sim.gateway.networks.background_jobs import BackgroundJobs
from sandbox_sim.gateway.networks.outcome_recorder import OutcomeRecorder
from sandbox_sim.gateway.networks.registry import Networks
from sandbox_sim.gateway.ports import Clock, Store, Unit
from sandbox_sim.gateway.ports.network import (
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
)

log = logging.getLogger("sandbox_sim.networks")


@dataclass(frozen=True, slots=True)
class _Question:
    """What to ask, and whom."""

    network: str
    query: StatusQuery


class StatusAsking:
    """Runs the jobs of kind `ASK_NETWORK`."""

    def __init__(
        self, store: Store, clock: Clock, networks: Networks, recorder: OutcomeRecorder
    ) -> None:
        self._store = store
        self._clock = clock
        self._networks = networks
        self._recorder = recorder
        self.background = BackgroundJobs(store, clock, self._ask)
        self.rechecks = BackgroundJobs(store, clock, self._recheck)

    async def on_due(self, _unit: Unit, job: Job, _now: datetime) -> Callable[[], None]:
        """The handler of `ASK_NETWORK`: the question is asked after the commit."""
        return lambda: self.background.start(job)

    async def on_recheck(self, _unit: Unit, job: Job, _now: datetime) -> Callable[[], None]:
        """The handler of `RECHECK_FINAL`: a final outcome is asked for again after the commit."""
        return lambda: self.rechecks.start(job)

    async def _recheck(self, job: Job) -> None:
        """Ask for a final outcome once more; a network that disagrees makes a contradiction."""
        attempt = await self._store.run(lambda unit: unit.attempt(job.subject))
        if attempt is None or not self._can_ask(attempt):
            await self._store.run(lambda unit: unit.finish(job))
            return
        result = await self._networks.status(attempt.network, _query(attempt))
        await self._store.run(partial(self._record_recheck, job, result))

    async def _record_recheck(self, job: Job, result: StatusResult, unit: Unit) -> None:
        await unit.finish(job)
        attempt = await unit.attempt(job.subject)
        if attempt is None:
            return
        now = self._clock.now()
        judged = await self._recorder.record(unit, attempt, result.report, now)
        await self._recorder.recheck_later(unit, judged.attempt, now)

    async def _ask(self, job: Job) -> None:
        question = await self._store.run(partial(self._question, job))
        if question is None:
            return
        result = await self._networks.status(question.network, question.query)
        again = await self._store.run(partial(self._record, job, result))
        if again is None:
            return
        # What the network answers to a repeat is recorded as ever; if this process dies before
        # that, the job that was added together with the repeat asks for its outcome.
        answer = await self._networks.submit(question.network, again)
        await self._store.run(partial(self._record_repeat, again.attempt_id, answer))

    async def _question(self, job: Job, unit: Unit) -> _Question | None:
        """What to ask for a job; None where it is left over, which ends the job."""
        attempt = await unit.attempt(job.subject)
        if attempt is None or not _is_due(attempt, job) or not self._can_ask(attempt):
            await unit.finish(job)
            return None
        return _Question(attempt.network, _query(attempt))

    def _can_ask(self, attempt: Attempt) -> bool:
        configured = attempt.network in self._networks.by_name
        return configured and self._networks.terms(attempt.network).has_status

    async def _record(self, job: Job, result: StatusResult, unit: Unit) -> SubmitRequest | None:
        """Record what the network says; returns the request if it has to go out again."""
        await unit.finish(job)
        before = await unit.attempt(job.subject)
        if before is None:
            return None
        now = self._clock.now()
        judged = _as_late_as_asked(self._recorder.judge(before, result.report, now), result, now)
        request = await self._repeat(unit, judged.attempt, now)
        if request is not None:
            terms = self._networks.terms(before.network)
            later = now + terms.timeout + terms.schedule.poll_after
            again = judged.attempt.submitted()._replace(next_ask_at=later)
            judged = judged._replace(attempt=again)
        await self._recorder.save(unit, before, judged, now)
        self._log_given_up(before, judged.attempt, now)
        return request

    def _log_given_up(self, before: Attempt, after: Attempt, now: datetime) -> None:
        """Log once that an attempt waits for a person from now on."""
        schedule = self._networks.terms(after.network).schedule
        since = before.asked_at or before.created_at
        given_up = schedule.given_up(after.created_at, now)
        if after.is_open and given_up and not schedule.given_up(before.created_at, since):
            name = after.id, after.network
            log.error("attempt %s at %s has no outcome and waits for a person", *name)

    async def _repeat(self, unit: Unit, attempt: Attempt, now: datetime) -> SubmitRequest | None:
        terms = self._networks.terms(attempt.network)
        if not may_submit_again(attempt, terms, now):
            return None
        return saved_requests.read(await unit.saved_request(attempt.id))

    async def _record_repeat(self, attempt_id: str, answer: SubmitResult, unit: Unit) -> None:
        attempt = await unit.attempt(attempt_id)
        if attempt is not None:
            await self._recorder.record(unit, attempt, answer.report, self._clock.now())


def _query(attempt: Attempt) -> StatusQuery:
    return StatusQuery(
        attempt.id,
        attempt.reference,
        attempt.transaction_id,
        attempt.service_id,
        attempt.operation,
        attempt.network_id,
        attempt.created_at,
    )


def _is_due(attempt: Attempt, job: Job) -> bool:
    return attempt.is_open and attempt.next_ask_at is not None and attempt.next_ask_at <= job.due_at


def _as_late_as_asked(judged: Judgement, result: StatusResult, now: datetime) -> Judgement:
    """The judgement with its next question as late as the network wants it."""
    attempt = judged.attempt
    if result.retry_after is None or attempt.next_ask_at is None or judged.change is Change.ENDED:
        return judged
    later = max(attempt.next_ask_at, now + result.retry_after)
    return judged._replace(attempt=attempt._replace(next_ask_at=later))
