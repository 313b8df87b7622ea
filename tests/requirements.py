"""What a test needs of the machine: where it is missing, the test skips and says why.

SANDBOX_SIM_REQUIRE names what must be there, as `postgres node`: there such a test fails instead.
"""

import os
from typing import Final, NoReturn

import pytest

REQUIRED: Final = frozenset(os.environ.get("SANDBOX_SIM_REQUIRE", "").split())


def missing(what: str, reason: str) -> NoReturn:
    """End the test: skipped, or failed where `what` is required."""
    if what in REQUIRED:
        pytest.fail(f"{reason}, and SANDBOX_SIM_REQUIRE says that it must")
    pytest.skip(reason)
