"""The body, the profile, the signature and the attempts of callbacks (D27 to D30)."""

import hashlib
import hmac
import json

import pytest

from sandbox_sim.records.callbacks import DeliveryState as State
from tests.conftest import Sandbox, StartSandbox, basic
from tests.web.conftest import Receiver, kept_callback, kept_callbacks, profile_of


@pytest.mark.spec("service.8")
async def test_a_callback_is_a_json_post_to_exactly_the_callback_url(
    sandbox: Sandbox, receiver: Receiver
) -> None:
    targets = (
        *("", "/pay?shop=7&key=a%2Bb%20c", "/%7Eama/a/../b//c%2Fd;e=%3B"),
        *("?to=http%3A%2F%2Fshop&sig=a%2Bb%3D%3D", "/100%"),
    )
    for target in targets:
        await sandbox.collect(callback_url=f"{receiver.url}{target}#part")
        await sandbox.advance(seconds=1)

        delivery = receiver.deliveries[-1]
        assert (delivery.method, delivery.path) == ("POST", f"/callbacks{target}")
        assert delivery.headers["Content-Type"] == "application/json"
        assert delivery.body["trans_ref"] == "T1"


@pytest.mark.decision("D27", "D28")
async def test_storefront_paths_get_the_event_profile_by_default(sandbox: Sandbox) -> None:
    """An event has the currency of the payment, and the reference as its `order_id`."""
    shop = sandbox.inbox_url("wc-api") + "/?wc-api=gateway"
    fields = {"currency_code": "USD", "currency_val": "10.50", "reference": "wc_42 · Ɛdwoa"}
    await sandbox.collect(callback_url=shop)
    await sandbox.collect(callback_url="http://shop.example:1/wc-api/gateway/", **fields)
    await sandbox.collect()
    await sandbox.advance(seconds=1)

    bodies = {each.url: json.loads(each.body) for each in await kept_callbacks(sandbox)}
    event = bodies["http://shop.example:1/wc-api/gateway/"]
    assert profile_of(event) == "event"
    assert event["currency_code"] == "USD"
    assert event["order_id"] == event["reference"] == "wc_42 · Ɛdwoa"
    assert profile_of(bodies[sandbox.inbox_url("orders")]) == "trans"


@pytest.mark.decision("D27")
async def test_the_profile_of_credentials_yields_to_callback_profiles(
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


@pytest.mark.spec("delivery.2", "limits")
@pytest.mark.decision("D30")
async def test_three_attempts_are_five_minutes_apart(sandbox: Sandbox, receiver: Receiver) -> None:
    receiver.answer_in_turn(500, 500, 500)
    await sandbox.collect(callback_url=receiver.url)

    await sandbox.advance(seconds=1)
    assert len(receiver.deliveries) == 1

    for already in (1, 2):
        await sandbox.advance(minutes=4, seconds=59, milliseconds=999)
        assert len(receiver.deliveries) == already
        await sandbox.advance(milliseconds=1)
        assert len(receiver.deliveries) == already + 1

    await sandbox.advance(days=1)
    assert len(receiver.deliveries) == 3
    assert (await kept_callback(sandbox)).state is State.FAILED


@pytest.mark.decision("D15", "D30")
async def test_retries_continue_after_the_status_has_expired(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    sandbox = await start_sandbox(callback_retry_interval_s=3600)
    receiver.answer_in_turn(500, 200)
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(hours=1, minutes=1)

    assert (await sandbox.status()).code == "027"
    assert [delivery.body["trans_ref"] for delivery in receiver.deliveries] == ["T1", "T1"]


@pytest.mark.spec("delivery.1", "delivery.3")
@pytest.mark.decision("D2", "D29")
@pytest.mark.parametrize("profile", ["trans", "flat"])
async def test_a_callback_is_signed_over_its_bytes_with_the_secret_key_of_its_client(
    start_sandbox: StartSandbox, receiver: Receiver, profile: str
) -> None:
    reference = 'Ɛdwoa\'s "café" 🧺 \\ \u2028'
    keys = {"first": "its own", "second": "sécret: with a colon"}
    sets = [{"client_key": key, "secret_key": secret} for key, secret in keys.items()]
    sandbox = await start_sandbox(callback_profile=profile, credentials=sets)
    for client_key, secret_key in keys.items():
        sandbox.headers["Authorization"] = basic(client_key, secret_key)
        await sandbox.collect(callback_url=receiver.url, reference=reference)
        await sandbox.advance(seconds=1)

        delivery = receiver.deliveries[-1]
        signed = hmac.new(secret_key.encode(), delivery.raw, hashlib.sha256).hexdigest()
        assert delivery.signature == signed
        assert delivery.body.get("reference", reference) == reference
