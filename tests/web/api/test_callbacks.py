"""The body and the profile of callbacks (D27, D28), and which payments have none."""

import json

import pytest

from tests.conftest import Sandbox, StartSandbox, basic
from tests.web.callback_bodies import profile_of
from tests.web.conftest import Receiver, kept_callbacks


@pytest.mark.spec("service.8")
@pytest.mark.parametrize(
    "target",
    [
        "",
        "/pay?shop=7&key=a%2Bb%20c",
        "/%7Eama/a/../b//c%2Fd;e=%3B",
        "?to=http%3A%2F%2Fshop&sig=a%2Bb%3D%3D",
        "/100%",
    ],
)
async def test_a_callback_is_a_json_post_to_exactly_the_callback_url(
    sandbox: Sandbox, receiver: Receiver, target: str
) -> None:
    await sandbox.collect(callback_url=f"{receiver.url}{target}#part")
    await sandbox.advance(seconds=1)

    assert receiver.delivery.method == "POST"
    assert receiver.delivery.path == f"/callbacks{target}"
    assert receiver.delivery.headers["Content-Type"] == "application/json"
    assert receiver.delivery.body["trans_ref"] == "T1"


@pytest.mark.decision("D28")
async def test_a_given_currency_is_told_and_the_reference_is_the_order(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(callback_profile="event")
    await sandbox.collect(currency_code="USD", currency_val="10.50", reference="wc_42 · Ɛdwoa")
    await sandbox.advance(seconds=1)

    body = await sandbox.callback()
    assert body["currency_code"] == "USD"
    assert body["order_id"] == body["reference"] == "wc_42 · Ɛdwoa"


@pytest.mark.decision("D27")
async def test_the_storefront_path_gets_events_out_of_the_box(sandbox: Sandbox) -> None:
    await sandbox.collect(callback_url=sandbox.inbox_url("wc-api") + "/?wc-api=gateway")
    await sandbox.collect(callback_url="http://shop.example:1/wc-api/gateway/")
    await sandbox.collect()
    await sandbox.advance(seconds=1)

    profiles = {
        callback.url: profile_of(json.loads(callback.body))
        for callback in await kept_callbacks(sandbox)
    }
    assert profiles["http://shop.example:1/wc-api/gateway/"] == "event"
    assert profiles[sandbox.inbox_url("orders")] == "trans"


@pytest.mark.decision("D27")
async def test_a_credential_set_may_have_its_own_profile_below_that_table(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await start_sandbox(
        callback_profile="flat",
        callback_profiles={"*/shop": "event"},
        credentials=[
            {"client_key": "sandbox_key", "secret_key": "sandbox_secret"},
            {"client_key": "k2", "secret_key": "s2", "callback_profile": "trans_bare"},
        ],
    )
    await sandbox.collect(callback_url=sandbox.inbox_url("first"))
    sandbox.headers["Authorization"] = basic("k2", "s2")
    for name in ("second", "shop"):
        await sandbox.collect(callback_url=sandbox.inbox_url(name))
    await sandbox.advance(seconds=1)

    assert profile_of(await sandbox.callback("first")) == "flat"
    assert profile_of(await sandbox.callback("second")) == "trans_bare"
    assert profile_of(await sandbox.callback("shop")) == "event"
