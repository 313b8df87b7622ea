"""`sandbox-sim callbacks`: what a receiver did not acknowledge is found."""

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
    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (("--status", "retrying"), ["retrying"]),
            (("--state", "failed"), ["failed"]),
            (("--unacknowledged",), ["retrying", "failed"]),
            (("--unacknowledged", "--status", "failed"), ["failed"]),
            (("--where", "unacknowledged=false"), ["delivered"]),
        ],
    )
    async def test_filters(
        self, refused: Sandbox, words: tuple[str, ...], found: list[str]
    ) -> None:
        _, *lines = await printed(refused, "callbacks", "list", *words)

        assert [columns(line)[3] for line in lines] == found

    async def test_find_takes_them_too(self, refused: Sandbox) -> None:
        found = await as_json(refused, "callbacks", "find", "--unacknowledged")

        assert [each["transaction_id"] for each in found["callbacks"]] == ["retrying", "failed"]
