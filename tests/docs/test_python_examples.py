"""The tests in README.md pass. test_testing_page.py and test_interface_page.py run other pages."""

import pytest
import requests  # noqa: F401 -- before a run in this process imports parts of it and drops them

from tests.docs.pages import Page


def test_the_first_tests_pass(pytester: pytest.Pytester) -> None:
    (example,) = Page("README.md").blocks("python")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(example)

    pytester.runpytest_inprocess().assert_outcomes(passed=2)
