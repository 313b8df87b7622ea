"""The Python code in README.md and docs/callbacks.md runs; test_testing_page.py has the rest."""

from typing import Any

import pytest
import requests  # noqa: F401 -- before a run in this process imports parts of it and drops them

from tests.conftest import Sandbox
from tests.docs.pages import Page


def test_the_first_tests_pass(pytester: pytest.Pytester) -> None:
    (example,) = Page("README.md").blocks("python")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(example)

    pytester.runpytest_inprocess().assert_outcomes(passed=2)


async def test_the_signature_example_knows_a_genuine_callback(sandbox: Sandbox) -> None:
    (example,) = Page("docs/callbacks.md").blocks("python")
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102 -- our own page
    await sandbox.collect(nickname="Ɛsi")
    await sandbox.advance(seconds=1)
    (message,) = await sandbox.inbox()

    body, signature = message["body"].encode(), message["headers"]["x-service-signature"]

    assert names["is_genuine"](body, signature, "sandbox_secret")
    assert not names["is_genuine"](body + b" ", signature, "sandbox_secret")
