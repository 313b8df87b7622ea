"""`sandbox-sim callbacks` shows callbacks that a receiver did not acknowledge."""

import pytest

from tests.cli.asking import as_json, columns, printed
from tests.conftest import Sandbox

NOBODY = "http://127.0.0.1:9/callback"


@pytest.fixture
async def refused(sandbox: Sandbox) -> Sandbox:
    """A gateway with a callback that failed, one that retries, and one that was delivered."""
    await sandbox.collect(transaction_id="failed", callback_url=NOBODY)
    await sandbox.advance(minutes=11)
    await sandbox.collect(transaction_id="retrying", callback_url=NOBODY)
    await sandbox.collect(transaction_id="delivered")
    await sandbox.advance(seconds=1)
    return sandbox


@pytest.mark.decision("D30")
class TestList:
    async def test_filters(self, refused: Sandbox) -> None:
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

    async def test_where_none_failed_for_good_it_says_how_many_are_retried(
        self, sandbox: Sandbox
    ) -> None:
        for name in ("T1", "T2"):
            await sandbox.collect(transaction_id=name, callback_url=NOBODY)
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


@pytest.mark.decision("D30")
class TestRetry:
    async def test_one_of_a_service_or_all_that_retry_are_tried_now(self, refused: Sandbox) -> None:
        retrying = await as_json(refused, "callbacks", "list", "--status", "retrying")
        (found,) = retrying["callbacks"]

        lines = await printed(refused, "callbacks", "retry", found["id"])
        await refused.advance(seconds=0)
        after = await as_json(refused, "callbacks", "show", found["id"])
        none = await printed(refused, "callbacks", "retry", "--all", "--service-id", 56)
        all_of_them = await as_json(refused, "callbacks", "retry", "--all")

        assert lines == [f"{found['id']} goes to {NOBODY} now"]
        assert len(after["attempts"]) == 2
        assert none == ["no callbacks are retrying"]
        assert [each["transaction_id"] for each in all_of_them["callbacks"]] == ["retrying"]
