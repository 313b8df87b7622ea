"""Runs the cases against the application: the controls first, then the others.

Two clocks: that of the gateway is stopped and moves by `advance` only. The application has the
time of the machine, so what it has to do by itself is waited for, at most as long as certify.toml
says and never beyond the limit of the run.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from sandbox_sim.certify.application import Application
from sandbox_sim.certify.bench import CertifyBench, MakeGateway, open_bench
from sandbox_sim.certify.case_run import CaseRun
from sandbox_sim.certify.cases import CertifyCase
from sandbox_sim.certify.configuration import CertifyTerms, Configuration
from sandbox_sim.certify.files import in_words
from sandbox_sim.certify.verdicts import CaseVerdict, Result, Run


class Place(NamedTuple):
    """Where a case runs: a gateway, and the application that uses it."""

    bench: CertifyBench
    application: Application


OpenPlace = Callable[[CertifyCase], AbstractContextManager[Place]]


class SideBySide(NamedTuple):
    """How cases run at once. open_place: gives a case a gateway of its own. at_once: how many.

    alone: why a case cannot run beside others; None where it can.
    """

    open_place: OpenPlace
    at_once: int
    alone: Callable[[CertifyCase], str | None]


def plan_side_by_side(
    configuration: Configuration,
    bench: CertifyBench,
    cases: Sequence[CertifyCase],
    make: MakeGateway,
    reach: Callable[[Configuration, CertifyBench], Application],
) -> SideBySide | None:
    """How the cases run at once as certify.toml says; None where they run one after another.

    Each case has a gateway of its own: on a port of its own where the order names its base URL, and
    else behind that of the run, for a service of its own. reach: the application with a gateway.
    """
    told_apart_by = configuration.told_apart_by
    if told_apart_by is None or configuration.at_once == 1:
        return None

    @contextmanager
    def apart(case: CertifyCase) -> Iterator[Place]:
        restarts = case.restarts("gateway")
        with open_bench(configuration, make, restarts=restarts, port=0) as own:
            yield Place(own, reach(configuration, own))

    @contextmanager
    def behind(case: CertifyCase) -> Iterator[Place]:
        mine = configuration.for_service(services[case.name])
        with open_bench(mine, make, restarts=False, port=0, front=bench) as own:
            yield Place(own, reach(mine, own))

    def alone(case: CertifyCase) -> str | None:
        if case.restarts("application"):
            return "it restarts the application"
        if case.restarts("gateway") and told_apart_by == "service_id":
            return "it restarts the gateway, whose port all cases use"
        return None

    service_ids = configuration.services(len(cases))[1:]
    services = dict(zip((case.name for case in cases), service_ids, strict=False))
    return SideBySide(apart if told_apart_by == "gateway" else behind, configuration.at_once, alone)


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

    side_by_side: where it is given, cases run at once, each at a place of its own.
    """
    time = application.time
    begun = time.monotonic()
    here = Place(bench, application)
    until = begun + bench.terms.limit.total_seconds()
    judge = partial(_judged, here=here, until=until, side_by_side=side_by_side)
    results: list[Result] = []
    broken = ""
    for case in (each for each in cases if each.control):
        result = judge(case)
        if result.verdict is not CaseVerdict.PASSED:
            broken = broken or f"the control {case.name} did not pass, so this would say nothing"
        results.append(result)
        done(result)
    others = _in_order([case for case in cases if not case.control], seed)
    judge = partial(judge, broken=broken)
    found: Iterable[Result] = map(judge, others)
    if side_by_side is not None:
        found = _at_once(others, judge, side_by_side)
    for result in found:
        results.append(result)
        done(result)
    return Run(results, seed, timedelta(seconds=time.monotonic() - begun))


def _judged(
    case: CertifyCase,
    *,
    here: Place,
    side_by_side: SideBySide | None,
    until: float,
    broken: str = "",
) -> Result:
    """The result of a case. here: the place of the run, for a case without one of its own."""
    if (unrun := _unrun(here, case, broken)) is not None:
        return unrun
    alone = None if side_by_side is None else side_by_side.alone(case)
    if side_by_side is None or alone is not None:
        return CaseRun(*here, case, until).run()._replace(alone=alone or "")
    with side_by_side.open_place(case) as place:
        return CaseRun(*place, case, until).run()


def _in_order(cases: Sequence[CertifyCase], seed: int | None) -> Sequence[CertifyCase]:
    if seed is None:
        return cases
    return sorted(cases, key=lambda case: sha256(f"{seed} {case.name}".encode()).digest())


def _at_once(
    cases: Sequence[CertifyCase], judge: Callable[[CertifyCase], Result], side_by_side: SideBySide
) -> Iterator[Result]:
    """The results in the order of the cases; those that must run alone run before the others."""
    early = {case.name: judge(case) for case in cases if side_by_side.alone(case)}
    with ThreadPoolExecutor(side_by_side.at_once) as pool:
        rest = pool.map(judge, [case for case in cases if case.name not in early])
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
