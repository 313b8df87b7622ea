"""A test run that hangs shows where it hangs, and ends."""

import pytest

from tests import timeouts

CONFTEST = "from tests import timeouts; timeouts.LIMIT_S = 0.1"


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inner test runs load only the plugins that they name: loading all takes seconds."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


FIXTURE_AFTER_A_FAILURE = """
import threading, pytest

@pytest.fixture
def endless():
    yield
    threading.Event().wait()

def test_it(endless):
    raise AssertionError
"""
THREAD_AT_THE_EXIT = """
import threading

def endless():
    threading.Event().wait()

def test_it():
    threading.Thread(target=endless).start()
"""


@pytest.mark.parametrize(
    "code", [FIXTURE_AFTER_A_FAILURE, THREAD_AT_THE_EXIT], ids=["fixture", "thread"]
)
def test_what_hangs_after_a_test_ends_the_process_and_shows_all_stacks(
    pytester: pytest.Pytester, code: str
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(code)

    result = pytester.runpytest_subprocess("-p", "tests.timeouts", timeout=30)

    assert result.ret == 1
    result.stderr.fnmatch_lines(["Timeout (0:00:00.100000)!"])
    result.stderr.fnmatch_lines(["*in endless"])


ASYNC_TEST = """
import asyncio

async def test_it():
    await asyncio.Event().wait()
"""


def test_a_coroutine_that_waits_too_long_is_shown(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ASYNC_TEST)
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function")

    plugins = ("-p", "pytest_asyncio.plugin", "-p", "pytest_timeout", "-p", "tests.timeouts")
    result = pytester.runpytest_subprocess(
        *plugins, "--timeout=0.1", "-otimeout_func_only=1", timeout=30
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*asyncio tasks*", "*in test_it", "*asyncio.Event().wait()*"])


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    limit = float(pytestconfig.getini("timeout"))

    assert 0 < limit < float(pytestconfig.getini("faulthandler_timeout"))
    assert pytestconfig.getini("faulthandler_exit_on_timeout")
    assert pytestconfig.pluginmanager.has_plugin(timeouts.__name__)
