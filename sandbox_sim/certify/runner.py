"""Runs the cases against the application: the controls first, then the others.

There are two clocks. That of the gateway is frozen and moves by `advance` only. The application has
the time of the machine: the runner waits for its actions as long as certify.toml says, but never
beyond the time limit of the run.
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
from sandbox_sim.certify.files import format_duration
from sandbox_sim.certify.verdicts import CaseVerdict, Result, Run


class CaseEnvironment(NamedTuple):
    """What a case runs with: a gateway, and the application that uses it."""

    bench: CertifyBench
    application: Application


OpenEnvironment = Callable[[CertifyCase], AbstractContextManager[CaseEnvironment]]


class ParallelRuns(NamedTuple):
    """How cases run at once. at_once: how many.

    open_environment: opens a gateway for one case.
    alone: why a case cannot run beside others; None if it can.
    """

    open_environment: OpenEnvironment
    at_once: int
    alone: Callable[[CertifyCase], str | None]


def plan_parallel_runs(
    configuration: Configuration,
    bench: CertifyBench,
    cases: Sequence[CertifyCase],
    make: MakeGateway,
    reach: Callable[[Configuration, CertifyBench], Application],
) -> ParallelRuns | None:
    """How the cases run at once by certify.toml; None if they run one after another.

    Each case has its own gateway. If the orders name the base URL of the gateway, it has its own
    port; otherwise it has its own service, and the port of the run passes its requests on.
    reach: returns the application that uses a gateway.
    """
    if configuration.isolated_by is None or configuration.at_once == 1:
        return None

    service_ids = configuration.services(len(cases))[1:]  # none if each case has its own port
    services = dict(zip((case.name for case in cases), service_ids, strict=False))
    front = bench if services else None

    @contextmanager
    def open_environment(case: CertifyCase) -> Iterator[CaseEnvironment]:
        own = configuration.for_service(services[case.name]) if services else configuration
        restarts = case.restarts("gateway")
        with open_bench(own, make, restarts=restarts, port=0, front=front) as apart:
            yield CaseEnvironment(apart, reach(own, apart))

    def alone(case: CertifyCase) -> str | None:
        if case.restarts("application"):
            return "it restarts the application"
        if case.restarts("gateway") and services:
            return "it restarts the gateway, whose port all cases use"
        return None

    return ParallelRuns(open_environment, configuration.at_once, alone)


def run(
    bench: CertifyBench,
    application: Application,
    cases: Sequence[CertifyCase],
    *,
    seed: int | None = None,
    on_result: Callable[[Result], None] = lambda _: None,
    parallel: ParallelRuns | None = None,
) -> Run:
    """Run the controls, then the other cases.

    on_result: called with each result, in the order of the cases. parallel: how cases run at once;
    None: they run one after another.
    """
    time = application.time
    begun = time.monotonic()
    shared = CaseEnvironment(bench, application)
    deadline = begun + bench.terms.limit.total_seconds()
    run_one = partial(_run_case, shared=shared, deadline=deadline, parallel=parallel)
    results: list[Result] = []
    failed_control = ""
    for case in (each for each in cases if each.control):
        result = run_one(case)
        if result.verdict is not CaseVerdict.PASSED and not failed_control:
            failed_control = f"the control {case.name} did not pass, so this would say nothing"
        results.append(result)
        on_result(result)
    others = [case for case in cases if not case.control]
    if seed is not None:
        others.sort(key=lambda case: sha256(f"{seed} {case.name}".encode()).digest())
    run_one = partial(run_one, failed_control=failed_control)
    following: Iterable[Result] = map(run_one, others)
    if parallel is not None:
        following = _run_parallel(others, run_one, parallel)
    for result in following:
        results.append(result)
        on_result(result)
    return Run(results, seed, timedelta(seconds=time.monotonic() - begun))


def _run_case(
    case: CertifyCase,
    *,
    shared: CaseEnvironment,
    parallel: ParallelRuns | None,
    deadline: float,
    failed_control: str = "",
) -> Result:
    """Run a case, and return its result.

    shared: the environment of the run, for a case that has no environment of its own.
    """
    if (result := _result_without_run(shared, case, failed_control)) is not None:
        return result
    alone = None if parallel is None else parallel.alone(case)
    if parallel is None or alone is not None:
        return CaseRun(*shared, case, deadline).run()._replace(alone=alone or "")
    with parallel.open_environment(case) as environment:
        return CaseRun(*environment, case, deadline).run()


def _run_parallel(
    cases: Sequence[CertifyCase], run_one: Callable[[CertifyCase], Result], parallel: ParallelRuns
) -> Iterator[Result]:
    """Yield the results in the order of the cases. Cases that must run alone run first."""
    early = {case.name: run_one(case) for case in cases if parallel.alone(case)}
    with ThreadPoolExecutor(parallel.at_once) as pool:
        rest = pool.map(run_one, [case for case in cases if case.name not in early])
        for case in cases:
            yield early.get(case.name) or next(rest)


def _result_without_run(
    environment: CaseEnvironment, case: CertifyCase, failed_control: str
) -> Result | None:
    """The result of a case that cannot run; None if it can."""
    bench, application = environment
    terms = bench.terms
    reason = terms.not_applicable.get(case.name) or application.why_not_applicable(case)
    if case.restarts("gateway") and not bench.can_restart:
        reason = "this gateway keeps its records in memory, so it cannot restart"
    if reason:
        return Result(case, CaseVerdict.NOT_APPLICABLE, reason)
    if failed_control and not case.control:
        return Result(case, CaseVerdict.INCONCLUSIVE, failed_control)
    needed_time = time_needed(terms, case)
    if needed_time > terms.limit:
        needed, limit = format_duration(needed_time), format_duration(terms.limit)
        reason = (
            f"the application may need {needed} of real time for it, and the limit of the run is "
            f"{limit}; raise limit"
        )
        return Result(case, CaseVerdict.INCONCLUSIVE, reason)
    return None


def time_needed(terms: CertifyTerms, case: CertifyCase) -> timedelta:
    """The real time that the application may take in a case, by the terms."""
    application = terms.application
    times = {
        "order": application.order_timeout,
        "refund": application.order_timeout,
        "card": 3 * application.reacts_within,
        "becomes": application.reacts_within + 2 * application.polls_every,
        "stays": application.reacts_within + application.polls_every,
        "waits": application.gives_up_after,
    }
    needed = (
        times.get(each.verb, timedelta()) + application.polls_every * (each.wait_polls or 0)
        for each in case.steps
    )
    return sum(needed, timedelta())
