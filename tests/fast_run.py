"""What makes a run of the tests fast: their order, the workers, and a rare garbage collector.

The slow files come first. Otherwise one worker of pytest-xdist ends the run alone with a test of
several seconds.
"""

import gc
import os
import sys
from collections.abc import Generator
from typing import Final

import pytest

# Those with a test of more than a second: they start processes, or look through many examples.
SLOW: Final = (
    "tests/demo/test_browser.py",
    "tests/test_stores_agree.py",
    "tests/test_tour.py",
    "tests/test_chaos.py",
    "tests/test_wheel.py",
    "tests/test_python_recipes.py",
    "tests/test_pytest_plugin.py",
    "tests/cli/serve/test_workers.py",
    "tests/cli/serve/test_restart.py",
    "tests/cli/commands/test_demo.py",
    "tests/cli/serve/test_command.py",
    "tests/test_timeouts.py",
    "tests/test_recipes.py",
    "tests/web/test_redaction.py",
    "tests/web/api/test_fuzz.py",
    "tests/adapters/stores/test_contract_model.py",
)

# How many objects more are made than freed before the garbage collector looks at them. By default
# it looks so often, 700, that it takes a tenth of the time of a test.
GARBAGE: Final = 10_000


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than processors: a third of the time a test waits for another process."""
    processors = os.sched_getaffinity(0) if sys.platform == "linux" else range(os.cpu_count() or 1)
    return len(processors) + 1


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow files first; the others keep their order."""
    items.sort(key=lambda item: place(item.nodeid))


def place(nodeid: str) -> int:
    """Where a test stands: by its place among the slow files, or behind all of them."""
    path = nodeid.partition("::")[0]
    return SLOW.index(path) if path in SLOW else len(SLOW)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, and exempt from it what is there at the end.

    That lives as long as the run, and each full collection would walk over all of it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(GARBAGE)
        gc.enable()
