"""Time limits where pytest-timeout sets none: for a test that it cannot end, and for what follows.

pytest-timeout and pytest itself stop their clocks when a test fails, but the fixtures of failed
tests are the ones that hang. Neither shows where a coroutine waits; this module does.
"""

import asyncio
import faulthandler
import io
import os
from collections.abc import Generator
from contextlib import nullcontext
from time import monotonic

import pytest

# For a test that pytest-timeout does not end, beyond the `--timeout` of the run.
BEYOND_TIMEOUT_S = 240.0
# A new limit ends a thread and starts another. On a busy machine that takes longer than most tests,
# so they share one, which begins again after this time.
SHARED_FOR_S = 30.0
# For the fixtures of a test that failed, and for the end of a run.
LIMIT_S = 60.0
_STDERR = pytest.StashKey[int]()
_SHARED_UNTIL = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the real stderr, because pytest captures it while tests run."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        config.stash[_STDERR] = os.dup(2)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Print all stacks and end the process when a test does not end."""
    if monotonic() > item.config.stash.get(_SHARED_UNTIL, 0):
        timeout = item.config.getoption("timeout") or float(item.config.getini("timeout"))
        _limit(item.config, timeout + BEYOND_TIMEOUT_S)
        item.config.stash[_SHARED_UNTIL] = monotonic() + SHARED_FOR_S


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Do so when the fixtures of a failed test do not end; pytest has cancelled its limit."""
    _limit(node.config, LIMIT_S)
    node.config.stash[_SHARED_UNTIL] = 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show where each task waits when a test takes too long."""
    report = yield
    if call.excinfo is not None and "pytest-timeout" in str(call.excinfo.value):
        shown = io.StringIO()
        for entry in call.excinfo.traceback:
            loop = entry.locals.get("self")
            if isinstance(loop, asyncio.AbstractEventLoop):
                for task in asyncio.all_tasks(loop):
                    task.print_stack(file=shown)
                break
        report.sections.append(("asyncio tasks", shown.getvalue()))
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Do so at the end of a run, when threads are joined and exit functions run."""
    _limit(session.config, LIMIT_S)
    return (yield)


def _limit(config: pytest.Config, seconds: float) -> None:
    faulthandler.dump_traceback_later(seconds, exit=True, file=config.stash[_STDERR])
