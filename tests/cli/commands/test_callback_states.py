"""`sandbox-sim callbacks` shows callbacks that a receiver did not acknowledge."""

import pytest

from tests.cli.asking import as_json, columns, printed
from tests.cli.receivers import UNREACHABLE
from tests.conftest import Sandbox

pytestmark = pytest.mark.decision("D30")


@pytest.fixture
async def refused(sandbox: Sandbox) -> Sandbox:
    """A gateway with a callback that failed, one that retries, and one that was delivered."""
    await sandbox.collect(transaction_id="failed", callback_url=UNREACHABLE)
    await sandbox.advance(minutes=11)
    await sandbox.collect(transaction_id="retrying", callback_url=UNREACHABLE)
    await sandbox.collect(transaction_id="delivered")
    await sandbox.advance(seconds=1)
    return sandbox


async def test_a_list_is_filtered_by_state(refused: Sandbox) -> None:
    rows = [
        (("--status", "retrying"), ["retrying"]),
        (("--state", "failed"), ["failed"]),
        (("--unacknowledged",), ["retrying", "failed"]),
        (("--unacknowledged", "--status", "failed"), ["failed"]),
        (("--where", "unacknowledged=false"), ["delivered"]),
    ]
    for words, found in rows:
        _, *lines = await printed(refused, "callbacks", "list", *words)

        assert [columns(line)[3] for line in lines] == found


async def test_an_empty_list_of_failed_callbacks_counts_the_retrying_ones(sandbox: Sandbox) -> None:
    for name in ("T1", "T2"):
        await sandbox.collect(transaction_id=name, callback_url=UNREACHABLE)
    await sandbox.advance(seconds=1)

    lines = await printed(sandbox, "callbacks", "list", "--status", "failed")
    of_another = await printed(
        sandbox, "callbacks", "list", "--status", "failed", "--service-id", 56
    )

    assert lines[:2] == [
        "no callbacks",
        "2 callbacks are retrying: `sandbox-sim callbacks list --unacknowledged`",
    ]
    assert of_another == ["no callbacks", *lines[2:]]


async def test_retry_makes_the_next_attempt_of_one_or_all_retrying_callbacks_now(
    refused: Sandbox,
) -> None:
    retrying = await as_json(refused, "callbacks", "list", "--status", "retrying")
    (found,) = retrying["callbacks"]

    lines = await printed(refused, "callbacks", "retry", found["id"])
    await refused.advance(seconds=0)
    after = await as_json(refused, "callbacks", "show", found["id"])
    of_another = await printed(refused, "callbacks", "retry", "--all", "--service-id", 56)
    of_all = await as_json(refused, "callbacks", "retry", "--all")

    assert lines == [f"{found['id']} goes to {UNREACHABLE} now"]
    assert len(after["attempts"]) == 2
    assert of_another == ["no callbacks are retrying"]
    assert [each["transaction_id"] for each in of_all["callbacks"]] == ["retrying"]
