"""`sandbox-sim config set | reset | show --running`: the settings of a running server."""

from tests.cli.asking import as_json, on, printed
from tests.conftest import Sandbox


async def test_a_change_is_shown_with_what_was_configured(sandbox: Sandbox) -> None:
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


async def test_null_takes_a_limit_away_and_reset_everything(sandbox: Sandbox) -> None:
    await printed(sandbox, "config", "set", "rate_limit=field", "approval=handset")

    lines = await printed(sandbox, "config", "set", "rate_limit=null")
    assert lines == ['approval = "handset"  (changed; configured: "auto")']

    assert await printed(sandbox, "config", "reset") == ["every setting is as it was configured"]


async def test_what_is_refused_is_told_by_name(sandbox: Sandbox) -> None:
    result = await on(sandbox, "config", "set", "approval=handset", "settle_delay=5")

    assert result.exit_code == 1
    assert result.stderr == (
        "settle_delay (from request): there is no such setting; did you mean settle_delay_ms?\n"
    )


async def test_a_word_without_a_value_is_wrong_usage(sandbox: Sandbox) -> None:
    result = await on(sandbox, "config", "set", "approval")

    assert result.exit_code == 2
    assert "approval does not have the form name=value" in result.stderr


async def test_only_what_asks_a_gateway_has_the_options_for_it(sandbox: Sandbox) -> None:
    assert "--endpoint-url" in (await on(sandbox, "config", "set", "--help")).stdout
    assert "--endpoint-url" not in (await on(sandbox, "config", "init", "--help")).stdout
