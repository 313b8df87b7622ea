"""Runs the cases one after the other against the application, on one service of one gateway.

Two clocks: that of the gateway stands still and moves by `advance` only. The application has the
time of the machine, so what it has to do by itself is waited for, at most as long as certify.toml
says and never beyond the limit of the run.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from hashlib import sha256

from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.certify.application import Application, ConfiguredApplication
from sandbox_sim.certify.bench import CertifyBench
from sandbox_sim.certify.case_run import CaseRun
from sandbox_sim.certify.cases import CertifyCase, Placed
from sandbox_sim.certify.configuration import Configuration
from sandbox_sim.certify.files import in_words
from sandbox_sim.certify.verdicts import CaseVerdict, Result, Run


def run(
    bench: CertifyBench,
    cases: Sequence[CertifyCase],
    *,
    application: Application | None = None,
    seed: int | None = None,
    done: Callable[[Result], None] = lambda _: None,
) -> Run:
    """Run the controls, then the other cases. done: called with each result.

    application: the one of the configuration where it is not given.
    """
    asked = application or ConfiguredApplication(bench.configuration, bench.gateway_url)
    begun = SystemClock.monotonic()
    until = begun + bench.configuration.limit.total_seconds()
    controls = [case for case in cases if case.control]
    others = [case for case in cases if not case.control]
    if seed is not None:
        others.sort(key=lambda case: sha256(f"{seed} {case.name}".encode()).digest())
    results: list[Result] = []
    broken = ""
    for case in (*controls, *others):
        result = (
            _unrun(bench.configuration, case, broken) or CaseRun(bench, asked, case, until).run()
        )
        if case.control and result.verdict is not CaseVerdict.PASSED:
            broken = broken or f"the control {case.name} did not pass, so this would say nothing"
        results.append(result)
        done(result)
    return Run(results, seed, timedelta(seconds=SystemClock.monotonic() - begun))


def _unrun(configuration: Configuration, case: CertifyCase, broken: str) -> Result | None:
    """The result of a case that does not begin; None where it does."""
    nothing = timedelta()
    if reason := _not_applicable(configuration, case):
        return Result(case, CaseVerdict.NOT_APPLICABLE, reason, nothing)
    if broken and not case.control:
        return Result(case, CaseVerdict.INCONCLUSIVE, broken, nothing)
    needed = needs(configuration, case)
    if needed > configuration.limit:
        reason = (
            f"the application may need {in_words(needed)} of real time for it, and the limit of "
            f"the run is {in_words(configuration.limit)}; raise limit"
        )
        return Result(case, CaseVerdict.INCONCLUSIVE, reason, nothing)
    return None


def _not_applicable(configuration: Configuration, case: CertifyCase) -> str | None:
    """Why a case does not apply; None where it does."""
    if case.name in configuration.not_applicable:
        return configuration.not_applicable[case.name]
    if case.sms and configuration.application.receipts != "sms":
        return 'application.receipts in certify.toml is not "sms"'
    restarts = any(step.restart == "application" for step in case.steps)
    if restarts and configuration.application.restart is None:
        return "certify.toml has no application.restart"
    orders = [step.order for step in case.steps if step.order is not None]
    for name in ("phone", "amount"):
        differs = {getattr(each, name) for each in orders} != {Placed.model_fields[name].default}
        if differs and not configuration.order.names(name):
            return f"the order in certify.toml has no {{{name}}}"
    return None


def needs(configuration: Configuration, case: CertifyCase) -> timedelta:
    """The real time that the application may take in a case, by what certify.toml says of it."""
    own = configuration.application
    once = {
        "order": own.places_within,
        "becomes": own.reacts_within + 2 * own.polls_every,
        "stays": own.reacts_within + own.polls_every,
        "waits": own.gives_up_after,
    }
    total = timedelta()
    for step in case.steps:
        total += once.get(step.verb, timedelta()) + own.polls_every * (step.wait_polls or 0)
    return total
