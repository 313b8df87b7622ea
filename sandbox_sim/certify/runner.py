"""Runs the cases one after the other against the application, on one service of one gateway.

Two clocks: that of the gateway stands still and moves by `advance` only. The application has the
time of the machine, so what it has to do by itself is waited for, at most as long as certify.toml
says and never beyond the limit of the run.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from hashlib import sha256

from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.certify.application import Application
from sandbox_sim.certify.bench import CertifyBench
from sandbox_sim.certify.case_run import CaseRun
from sandbox_sim.certify.cases import CertifyCase
from sandbox_sim.certify.configuration import CertifyTerms
from sandbox_sim.certify.files import in_words
from sandbox_sim.certify.verdicts import CaseVerdict, Result, Run


def run(
    bench: CertifyBench,
    application: Application,
    cases: Sequence[CertifyCase],
    *,
    seed: int | None = None,
    done: Callable[[Result], None] = lambda _: None,
) -> Run:
    """Run the controls, then the other cases. done: called with each result."""
    begun = SystemClock.monotonic()
    until = begun + bench.terms.limit.total_seconds()
    controls = [case for case in cases if case.control]
    others = [case for case in cases if not case.control]
    if seed is not None:
        others.sort(key=lambda case: sha256(f"{seed} {case.name}".encode()).digest())
    results: list[Result] = []
    broken = ""
    for case in (*controls, *others):
        result = (
            _unrun(bench, application, case, broken)
            or CaseRun(bench, application, case, until).run()
        )
        if case.control and result.verdict is not CaseVerdict.PASSED:
            broken = broken or f"the control {case.name} did not pass, so this would say nothing"
        results.append(result)
        done(result)
    return Run(results, seed, timedelta(seconds=SystemClock.monotonic() - begun))


def _unrun(
    bench: CertifyBench, application: Application, case: CertifyCase, broken: str
) -> Result | None:
    """The result of a case that does not begin; None where it does."""
    nothing = timedelta()
    terms = bench.terms
    reason = terms.not_applicable.get(case.name) or application.lacks(case)
    if case.restarts("gateway") and not bench.can_restart:
        reason = "this gateway keeps its records in memory, so it cannot restart"
    if reason:
        return Result(case, CaseVerdict.NOT_APPLICABLE, reason, nothing)
    if broken and not case.control:
        return Result(case, CaseVerdict.INCONCLUSIVE, broken, nothing)
    needed = needs(terms, case)
    if needed > terms.limit:
        reason = (
            f"the application may need {in_words(needed)} of real time for it, and the limit of "
            f"the run is {in_words(terms.limit)}; raise limit"
        )
        return Result(case, CaseVerdict.INCONCLUSIVE, reason, nothing)
    return None


def needs(terms: CertifyTerms, case: CertifyCase) -> timedelta:
    """The real time that the application may take in a case, by what the terms say."""
    own = terms.application
    once = {
        "order": own.places_within,
        "refund": own.places_within,
        "card": 3 * own.reacts_within,
        "becomes": own.reacts_within + 2 * own.polls_every,
        "stays": own.reacts_within + own.polls_every,
        "waits": own.gives_up_after,
    }
    total = timedelta()
    for step in case.steps:
        total += once.get(step.verb, timedelta()) + own.polls_every * (step.wait_polls or 0)
    return total
