"""Programs that a test needs: if one is missing, the test skips and gives the reason.

If SANDBOX_SIM_REQUIRE names the program, as in `postgres node`, the test fails instead.
"""

import os
from typing import Final, NoReturn

import pytest

REQUIRED: Final = frozenset(os.environ.get("SANDBOX_SIM_REQUIRE", "").split())


def missing(what: str, reason: str) -> NoReturn:
    """Skip the test, or fail it if `what` is required."""
    if what in REQUIRED:
        pytest.fail(f"{reason}, and SANDBOX_SIM_REQUIRE says that it must")
    pytest.skip(reason)
