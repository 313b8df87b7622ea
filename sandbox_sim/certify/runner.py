"""Runs the cases against the application: the controls first, then the others.

Two clocks: that of the gateway is stopped and moves by `advance` only. The application has the
time of the machine, so what it has to do by itself is waited for, at most as long as certify.toml
says and never beyond the limit of the run.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from sandbox_sim.certify.application import Application
from sandbox_sim.certify.bench import CertifyBench
from sandbox_sim.certify.case_run import CaseRun
from sandbox_sim.certify.cases import CertifyCase
from sandbox_sim.certify.configuration import CertifyTerms
from sandbox_sim.certify.files import in_words
from sandbox_sim.certify.verdicts import CaseVerdict, Result, Run


class Place(NamedTuple):
    """Where a case runs: a gateway, and the application that uses it."""

    bench: CertifyBench
    application: Application


OpenPlace = Callable[[CertifyCase], AbstractContextManager[Place]]


class SideBySide(NamedTuple):
    """How cases run at once. open_place: gives a case a gateway of its own. at_once: how many."""

    open_place: OpenPlace
    at_once: int


def run(
    bench: CertifyBench,
    application: Application,
    cases: Sequence[CertifyCase],
    *,
    seed: int | None = None,
    done: Callable[[Result], None] = lambda _: None,
    side_by_side: SideBySide | None = None,
) -> Run:
    """Run the controls, then the other cases. done: called with each result, in their order.

    side_by_side: where it is given, cases run at once, except those that restart the application.
    """
    time = application.time
    begun = time.monotonic()
    here = Place(bench, application)
    until = begun + bench.terms.limit.total_seconds()
    judge = partial(_judged, here=here, until=until)
    judge_here = partial(judge, open_place=lambda _: nullcontext(here))
    results: list[Result] = []
    broken = ""
    for case in (each for each in cases if each.control):
        result = judge_here(case)
        if result.verdict is not CaseVerdict.PASSED:
            broken = broken or f"the control {case.name} did not pass, so this would say nothing"
        results.append(result)
        done(result)
    others = _in_order([case for case in cases if not case.control], seed)
    found: Iterator[Result] = map(partial(judge_here, broken=broken), others)
    if side_by_side is not None:
        judge_apart = partial(judge, open_place=side_by_side.open_place, broken=broken)
        found = _at_once(
            others, partial(judge_here, broken=broken), judge_apart, side_by_side.at_once
        )
    for result in found:
        results.append(result)
        done(result)
    return Run(results, seed, timedelta(seconds=time.monotonic() - begun))


def _judged(
    case: CertifyCase,
    *,
    here: Place,
    open_place: OpenPlace,
    until: float,
    broken: str = "",
) -> Result:
    """The result of a case, at a place of its own where it runs. here: the place of the run."""
    if (unrun := _unrun(here, case, broken)) is not None:
        return unrun
    with open_place(case) as place:
        return CaseRun(*place, case, until).run()


def _in_order(cases: Sequence[CertifyCase], seed: int | None) -> Sequence[CertifyCase]:
    if seed is None:
        return cases
    return sorted(cases, key=lambda case: sha256(f"{seed} {case.name}".encode()).digest())


def _at_once(
    cases: Sequence[CertifyCase],
    judge: Callable[[CertifyCase], Result],
    judge_apart: Callable[[CertifyCase], Result],
    at_once: int,
) -> Iterator[Result]:
    """The results in the order of the cases; those that restart the application run before."""
    early = {case.name: judge(case) for case in cases if case.restarts("application")}
    with ThreadPoolExecutor(at_once) as pool:
        rest = pool.map(judge_apart, [case for case in cases if case.name not in early])
        for case in cases:
            yield early.get(case.name) or next(rest)


def _unrun(place: Place, case: CertifyCase, broken: str) -> Result | None:
    """The result of a case that does not begin; None where it does."""
    bench, application = place
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
