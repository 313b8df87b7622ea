"""Makes a run of the tests fast: their order, the workers, and fewer garbage collections.

The slow files come first. Otherwise one worker of pytest-xdist ends the run alone with a test of
several seconds.
"""

import gc
import os
import sys
from collections.abc import Generator
from typing import Final

import pytest

# Files with a test of more than a second, which starts processes or tries many examples.
SLOW: Final = (
    # These share a Chromium.
    "tests/web/pages/test_in_browser.py",
    "tests/demo/test_in_browser.py",
    "tests/test_stores_agree.py",
    "tests/test_tour.py",
    "tests/test_chaos.py",
    "tests/test_wheel.py",
    "tests/certify/test_matrix.py",
    "tests/certify/test_certifying_page.py",
    "tests/cli/compare/test_compare.py",
    "tests/test_recipes.py",
    "tests/test_pytest_plugin.py",
    "tests/cli/serve/test_workers.py",
    "tests/cli/serve/test_restart.py",
    "tests/cli/commands/test_demo.py",
    "tests/cli/serve/test_command.py",
    "tests/web/test_redaction.py",
    "tests/web/api/test_fuzz.py",
    "tests/stores/test_contract_model.py",
)

# The garbage collector runs when this many more objects are made than freed. With the default,
# 700, it takes a tenth of the time of a test.
GARBAGE: Final = 10_000


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than processors: tests wait a third of the time for processes."""
    processors = os.sched_getaffinity(0) if sys.platform == "linux" else range(os.cpu_count() or 1)
    return len(processors) + 1


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow files first; the others keep their order."""
    items.sort(key=lambda item: place(item.nodeid))


def place(nodeid: str) -> int:
    """Return the sort key of a test: the index of its file in SLOW, or a larger number."""
    path = nodeid.partition("::")[0]
    return SLOW.index(path) if path in SLOW else len(SLOW)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without the garbage collector; then exempt all objects from it.

    They live as long as the run, and each full collection would visit all of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(GARBAGE)
        gc.enable()
