"""`sandbox-sim config set | reset | show --running`: the settings of a running server."""

from tests.cli.asking import as_json, printed
from tests.conftest import Sandbox


async def test_a_changed_setting_is_shown_with_its_configured_value(sandbox: Sandbox) -> None:
    lines = await printed(
        sandbox,
        "config",
        "set",
        "approval=handset",
        "settle_delay_ms=5",
        'approved_senders=["Shop"]',
    )

    assert lines == [
        "settle_delay_ms = 5  (changed; configured: 1000)",
        'approval = "handset"  (changed; configured: "auto")',
        'approved_senders = ["Shop"]  (changed; configured: [])',
    ]
    shown = await printed(sandbox, "config", "show", "--running")
    assert lines[1] in shown
    assert 'duplicates = "accept"  (as configured)' in shown
    assert (await as_json(sandbox, "config", "show", "--running"))["settings"]["approval"][
        "changed"
    ]


async def test_null_removes_a_limit_and_reset_undoes_every_change(sandbox: Sandbox) -> None:
    await printed(sandbox, "config", "set", "rate_limit=field", "approval=handset")

    lines = await printed(sandbox, "config", "set", "rate_limit=null")
    assert lines == ['approval = "handset"  (changed; configured: "auto")']

    assert await printed(sandbox, "config", "reset") == ["every setting is as it was configured"]
