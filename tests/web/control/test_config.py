"""/_sandbox/config: settings change on a running server, by the rules of a start."""

import json
from typing import Any

import pytest

from tests.conftest import Sandbox, Seen, StartSandbox
from tests.web.control_api import ask, assert_error, get
from tests.web.events import listening


async def change(sandbox: Sandbox, **changes: Any) -> Seen:
    return await ask(sandbox, "PATCH", "/_sandbox/config", json.dumps(changes).encode())


async def changed(sandbox: Sandbox) -> dict[str, tuple[Any, Any]]:
    """The value and the configured value of each setting that differs."""
    settings = (await get(sandbox, "config"))["settings"]
    return {
        name: (each["value"], each["configured"])
        for name, each in settings.items()
        if each["changed"]
    }


@pytest.mark.decision("D33")
async def test_the_next_request_follows_a_change(sandbox: Sandbox) -> None:
    answer = await change(sandbox, approval="handset", settle_delay_ms=5)

    assert answer.status == 200
    assert (await sandbox.collect()).rule == "D33"
    assert await changed(sandbox) == {"approval": ("handset", "auto"), "settle_delay_ms": (5, 1000)}


async def test_a_setting_has_its_choices_and_a_description(sandbox: Sandbox) -> None:
    settings = (await get(sandbox, "config"))["settings"]

    assert settings["approval"]["choices"] == ["auto", "handset"]
    assert settings["sign_callbacks"]["choices"] == [False, True]
    assert settings["callback_profile"]["choices"][0] == "trans"
    assert settings["rate_limit"]["choices"] == ["field", None]
    assert settings["settle_delay_ms"]["choices"] is None
    assert "status 000" in settings["settle_delay_ms"]["description"]
    assert "port" not in settings


async def test_a_bad_change_is_refused_and_no_setting_changes(sandbox: Sandbox) -> None:
    no_such = "settle_delay (from request): there is no such setting; did you mean"
    of_start = "(from request): cannot change while the server runs"
    rows: list[tuple[dict[str, Any], str]] = [
        ({"approval": "phone"}, "approval (from request): must be 'auto' or 'handset'"),
        ({"settle_delay": 5}, no_such),
        ({"settle_delay_ms": -1}, "settle_delay_ms (from request): must be greater"),
        ({"settle_delay_ms": None}, "settle_delay_ms (from request): must be a valid integer"),
        ({"allowed_numbers": "0244"}, 'must be a list, such as ["0244000001"]'),
        ({"rate_limit_per_minute": float("inf")}, "rate_limit_per_minute (from request)"),
        ({"port": 1}, f"port {of_start}"),
        ({"balances": "live"}, f"balances {of_start}"),
        ({"test_cards": {"4111": "VIS"}}, "test_cards[4111] (from request): must be a card number"),
    ]
    for changes, problem in rows:
        assert_error(await change(sandbox, duplicates="reject", **changes), 400, problem)

        assert await changed(sandbox) == {}

    all_wrong = await change(sandbox, approval="phone", port=1, aproval="auto")
    assert_error(all_wrong, 400, "approval (from", "port (from", "did you mean approval?")
    no_object = await ask(sandbox, "PATCH", "/_sandbox/config", b"[]")
    assert_error(no_object, 400, "a JSON object with names and values")


@pytest.mark.decision("D34")
async def test_lenient_yields_to_settings_with_their_own_value(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(callback_profile="flat")

    await change(sandbox, lenient=True)
    assert await changed(sandbox) == {
        "lenient": (True, False),
        "accept_international": (True, False),
    }

    await change(sandbox, accept_international=False)
    assert await changed(sandbox) == {"lenient": (True, False)}

    await change(sandbox, lenient=False)
    assert await changed(sandbox) == {}


@pytest.mark.decision("D10")
async def test_the_rate_limit_preset_is_turned_on_and_off(sandbox: Sandbox) -> None:
    await change(sandbox, rate_limit="field", rate_limit_burst=1)
    assert (await changed(sandbox))["rate_limit_per_minute"] == (100, None)
    await sandbox.collect()
    assert (await sandbox.collect()).code == "429"

    await change(sandbox, rate_limit=None)

    assert (await sandbox.collect()).code != "429"


@pytest.mark.decision("D38")
async def test_the_numbers_of_test_cards_are_masked(sandbox: Sandbox) -> None:
    async with listening(sandbox, "?types=config") as stream:
        answer = await change(sandbox, test_cards={"4000000000000002": "VIS"})
        event = await stream.next()

    masked = {"400000******0002": "VIS"}
    assert answer.body["settings"]["test_cards"]["value"] == masked
    assert event.data == {"given": {"test_cards": masked}}
    assert (await sandbox.card(customer_number="4000000000000002")).code == "000"


async def test_delete_and_reset_restore_the_configured_values(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(settle_delay_ms=20)
    for method, path in (("DELETE", "config"), ("POST", "reset")):
        await change(sandbox, settle_delay_ms=5000, lenient=True)

        await ask(sandbox, method, f"/_sandbox/{path}")

        assert await changed(sandbox) == {}
        assert sandbox.gateway.behaviour.present.settle_delay_ms == 20
