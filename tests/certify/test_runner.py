"""Cases side by side: each on its own gateway, and reported in their order."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait as wait_for
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from sandbox_sim.certify.application import ApplicationHangs
from sandbox_sim.certify.bench import open_bench
from sandbox_sim.certify.cases import CertifyCase, PlacedOrder
from sandbox_sim.certify.runner import CaseEnvironment, ParallelRuns, run
from sandbox_sim.testing import SandboxGateway
from tests.certify.applications import Forgetful, case_of, configuration

AT_ONCE = 3
CONFIGURATION = configuration(gateway={"port": 0}, order={"command": "{reference} {gateway}"})


class Meeting(Forgetful):
    """An application that places orders once as many cases ask for one as run at once."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(AT_ONCE)
        self.urls: set[str] = set()
        self.calls: list[str] = []

    def at(self, url: str) -> "Meeting":
        self.urls.add(url)
        return self

    def place(self, order: PlacedOrder, reference: str, within: timedelta) -> str:
        self.barrier.wait(within.total_seconds())
        self.calls.append("order")
        return reference

    def restart(self) -> None:
        self.calls.append("restart")


def test_cases_run_at_once_and_are_reported_in_the_order_of_the_seed() -> None:
    application = Meeting()
    cases = [case_of(name=name) for name in ("a", "b", "c", "d", "e")]
    cases.append(case_of({"restart": "application"}, name="f"))

    @contextmanager
    def open_environment(_: CertifyCase) -> Iterator[CaseEnvironment]:
        with open_bench(CONFIGURATION, SandboxGateway, restarts=False, port=0) as bench:
            yield CaseEnvironment(bench, application.at(bench.gateway_url))

    def alone(case: CertifyCase) -> str | None:
        return "it restarts" if case.restarts("application") else None

    reported: list[str] = []
    with open_bench(CONFIGURATION, SandboxGateway, restarts=False) as bench:
        found = run(
            *(bench, application, [*cases, case_of(name="g")]),
            seed=5,
            on_result=lambda result: reported.append(result.case.name),
            parallel=ParallelRuns(open_environment, AT_ONCE, alone),
        )

    assert [each.reason for each in found.results] == [""] * 7
    assert [each.case.name for each in found.results if each.alone == "it restarts"] == ["f"]
    assert application.calls == ["restart", *["order"] * 6]
    assert len(application.urls) == 6
    assert reported == [each.case.name for each in found.results]
    assert reported != sorted(reported)


class Slow(Forgetful):
    """An application in whose time each order takes a minute."""

    def __init__(self) -> None:
        self.time = self
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def wait(self, seconds: float, work: Future[Any] | None = None) -> None:
        if work is not None:
            wait_for([work])

    def place(self, order: PlacedOrder, reference: str, within: timedelta) -> str:
        self.seconds += 60
        raise ApplicationHangs("no answer")


def test_no_case_begins_after_the_limit_of_the_run() -> None:
    cases = [case_of(name=name) for name in ("a", "b", "c", "d")]
    with open_bench(configuration(gateway={"port": 0}, limit="2m"), SandboxGateway) as bench:
        found = run(bench, Slow(), cases)

    assert [each.reason for each in found.results] == [
        *["the application hangs: no answer"] * 2,
        *["the limit of the run, 2m, is used up"] * 2,
    ]
    assert found.took == timedelta(minutes=2)
