"""`sandbox-sim transactions refund` (D45)."""

import pytest

from tests.cli.asking import on, printed
from tests.conftest import Sandbox

WHY = ("--reason", "sold out", "--by", "ama")

pytestmark = pytest.mark.decision("D45")


async def test_it_says_what_was_paid_back_and_to_whom(collected: Sandbox) -> None:
    (line,) = await printed(
        collected, "transactions", "refund", 55, "T1", "--amount", "4", "--id", "R1", *WHY
    )

    assert line.startswith("R1 pays back 4 GHS to 0244000001 and is 002 pending: ")


async def test_a_refusal_is_a_sentence_and_exit_code_1(collected: Sandbox) -> None:
    result = await on(collected, "transactions", "refund", 55, "T1", "--amount", "11", *WHY)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "amount 11 is more than what is left to refund" in result.stderr


async def test_wrong_usage_is_named(sandbox: Sandbox) -> None:
    rows = [
        (("T1",), "--reason"),
        (("T1", "--amount", "-1", *WHY), "not an amount above 0"),
        (("T1", "--amount", "NaN", *WHY), "not an amount above 0"),
        (("1", "2", "3", *WHY), "[SERVICE_ID] ID"),
    ]
    for options, problem in rows:
        result = await on(sandbox, "transactions", "refund", *options)

        assert result.exit_code == 2
        assert problem in result.stderr
