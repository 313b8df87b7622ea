"""`sandbox-sim transactions refund` (D45)."""

import pytest

from tests.cli.asking import on, printed
from tests.conftest import Sandbox

WHY = ("--reason", "sold out", "--by", "ama")

pytestmark = pytest.mark.decision("D45")


async def test_refund_prints_the_refund_or_the_reason_of_the_refusal(
    collected: Sandbox,
) -> None:
    refund = ("transactions", "refund", 55, "T1", *WHY)
    (line,) = await printed(collected, *refund, "--amount", "4", "--id", "R1")
    refused = await on(collected, *refund, "--amount", "11")

    assert line.startswith("R1 pays back 4 GHS to 0244000001 and is 002 pending: ")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "amount 11 is more than what is left to refund" in refused.stderr
