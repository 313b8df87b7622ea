"""`sandbox-sim transactions refund` (D45)."""

import pytest

from tests.cli.asking import on, printed
from tests.conftest import Sandbox

WHY = ("--reason", "sold out", "--by", "ama")

pytestmark = pytest.mark.decision("D45")


async def test_it_says_what_was_paid_back_and_to_whom_or_why_nothing_was(
    collected: Sandbox,
) -> None:
    refund = ("transactions", "refund", 55, "T1", *WHY)
    (line,) = await printed(collected, *refund, "--amount", "4", "--id", "R1")
    refused = await on(collected, *refund, "--amount", "11")

    assert line.startswith("R1 pays back 4 GHS to 0244000001 and is 002 pending: ")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "amount 11 is more than what is left to refund" in refused.stderr
