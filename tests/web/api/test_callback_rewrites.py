"""The settings callback_rewrites and callback_headers change the address and add headers."""

from urllib.parse import urlsplit

import pytest

from tests.conftest import StartSandbox
from tests.web.conftest import Receiver, StartReceiver
from tests.web.control_api import only, post

LIVE = "https://shop.example/hooks/paid?shop=7"


def origin(receiver: Receiver) -> str:
    return receiver.url.removesuffix("/callbacks")


async def test_a_callback_shows_its_own_and_its_rewritten_address(
    start_sandbox: StartSandbox, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="sandbox_sim.callbacks")
    sandbox = await start_sandbox(callback_rewrites={"https://shop.example": origin(receiver)})

    await sandbox.collect(callback_url=LIVE.replace("//", "//me:s3same@"))
    await sandbox.advance(seconds=1)

    callback = await only(sandbox, "callbacks")
    assert callback["url"] == LIVE.replace("//", "//***@")
    here = f"http://***@127.0.0.1:{urlsplit(receiver.url).port}/hooks/paid?shop=7"
    assert [attempt["sent_to"] for attempt in callback["attempts"]] == [here]
    assert f"to {callback['url']}, sent to {here}, attempt 1 of 3: acknowledged" in caplog.text
    assert "s3same" not in caplog.text + str(callback)


async def test_each_attempt_shows_its_own_address(
    start_sandbox: StartSandbox, start_receiver: StartReceiver
) -> None:
    one, other = await start_receiver(), await start_receiver()
    sandbox = await start_sandbox(callback_rewrites={"https://shop.example": origin(one)})
    await sandbox.collect(callback_url=LIVE)
    await sandbox.advance(seconds=1)

    await post(sandbox, "callbacks/T1/resend", url=other.url)
    await sandbox.advance(seconds=0)

    sent_to = [attempt["sent_to"] for attempt in (await only(sandbox, "callbacks"))["attempts"]]
    assert sent_to == [f"{origin(one)}/hooks/paid?shop=7", other.url]
    assert other.delivery.raw == one.delivery.raw


async def test_callback_hosts_applies_to_the_rewritten_address(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    rewrites = {"https://shop.example": origin(receiver)}
    hosts = {"deny": ["127.0.0.1"], "allow": ["shop.example"]}
    refusing = await start_sandbox(callback_rewrites=rewrites, callback_hosts=hosts)
    await refusing.collect(callback_url=LIVE)
    await refusing.advance(seconds=1)
    (attempt,) = (await only(refusing, "callbacks"))["attempts"]
    assert "the setting callback_hosts does not let callbacks go to 127.0.0.1" in attempt["verdict"]

    hosts = {"deny": ["shop.example"], "allow": ["127.0.0.1"]}
    willing = await start_sandbox(callback_rewrites=rewrites, callback_hosts=hosts)
    await willing.collect(callback_url=LIVE)
    await willing.advance(seconds=1)
    assert receiver.delivery.path == "/hooks/paid?shop=7"


@pytest.mark.decision("D29")
async def test_callback_headers_are_added_to_each_callback(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    """A name and password in the address take precedence over such a header."""
    own = {"X-Staging": "1", "Authorization": "Bearer 5", "User-Agent": "shop"}
    sandbox = await start_sandbox(callback_headers=own)
    receiver.answer_in_turn(500, 200, 200)

    await sandbox.collect(callback_url=receiver.url)
    await sandbox.advance(minutes=6)

    assert len(receiver.deliveries) == 2
    for delivery in receiver.deliveries:
        assert {name: delivery.headers[name] for name in own} == own
        assert delivery.headers["Content-Type"] == "application/json"
        assert delivery.signature is not None
    await sandbox.collect(callback_url=receiver.url.replace("//", "//me:pw@"))
    await sandbox.advance(seconds=1)
    assert receiver.deliveries[-1].headers["Authorization"].startswith("Basic ")
