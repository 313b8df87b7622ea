"""`sandbox-sim snapshot save | load | list | delete`."""

from tests.cli.asking import columns, printed
from tests.conftest import Sandbox


async def test_a_snapshot_is_saved_and_loaded(sandbox: Sandbox) -> None:
    await sandbox.sms()
    saved = await printed(sandbox, "snapshot", "save", "before")
    await sandbox.sms()

    loaded = await printed(sandbox, "snapshot", "load", "before")

    assert saved == loaded
    assert [columns(line) for line in saved] == [
        ["time", "name", "service", "records"],
        [
            *("2026-01-01T09:00:00.000Z", "before", "all"),
            "1 jobs, 2 transfers, 1 messages, 1 requests",
        ],
    ]
    assert await sandbox.sms_balance() == 499


async def test_snapshots_are_listed_and_deleted(sandbox: Sandbox) -> None:
    assert await printed(sandbox, "snapshot", "list") == ["no snapshots"]
    for name in ("one", "two", "three"):
        await printed(sandbox, "snapshot", "save", name)

    _, newest, more = await printed(sandbox, "snapshot", "list", "--limit", 1)
    assert columns(newest)[1:] == ["three", "all", "nothing"]
    assert more == "more: --after three"
    assert await printed(sandbox, "snapshot", "delete", "three") == ["1 deleted"]
    _, *lines = await printed(sandbox, "snapshot", "list", "--after", "two")
    assert [columns(line)[1] for line in lines] == ["one"]
    await printed(sandbox, "snapshot", "save", "of-55", "--service-id", 55)
    _, line = await printed(sandbox, "snapshot", "list", "--service-id", 55)
    assert columns(line)[1:3] == ["of-55", "55"]
