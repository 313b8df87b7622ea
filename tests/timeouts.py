"""A time limit for the end of fixtures and of a run; pyproject.toml has the other limits.

pytest-timeout and pytest itself stop their clocks when a test fails, but the fixtures of failed
tests are the ones that hang. Neither shows where a coroutine waits; this module does.
"""

import asyncio
import faulthandler
import io
import os
from collections.abc import Generator
from contextlib import nullcontext

import pytest

LIMIT_S = 60.0

_STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the real stderr, because pytest captures it while tests run."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        config.stash[_STDERR] = os.dup(2)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Print all stacks and end the process when the fixtures of a test do not end."""
    if item.config.getoption("usepdb"):
        return (yield)
    _arm(item.config)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


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
    """Do the same at the end of a run, when threads are joined and exit functions run."""
    _arm(session.config)
    return (yield)


def _arm(config: pytest.Config) -> None:
    faulthandler.dump_traceback_later(LIMIT_S, exit=True, file=config.stash[_STDERR])
