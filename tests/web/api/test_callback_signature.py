"""`X-Service-Signature`: HMAC with SHA-256 of the exact bytes, keyed with the secret key."""

import hashlib
import hmac

import pytest

from tests.conftest import StartSandbox, basic
from tests.web.conftest import Receiver


def hmac_sha256(raw: bytes, secret_key: str) -> str:
    return hmac.new(secret_key.encode(), raw, hashlib.sha256).hexdigest()


@pytest.mark.spec("delivery.1", "delivery.3")
@pytest.mark.decision("D29")
@pytest.mark.parametrize("profile", ["trans", "flat"])
async def test_every_callback_is_signed_over_the_bytes_as_they_arrive(
    start_sandbox: StartSandbox, receiver: Receiver, profile: str
) -> None:
    reference = 'Ɛdwoa\'s "café" 🧺 \\ \u2028'
    sandbox = await start_sandbox(callback_profile=profile)
    await sandbox.collect(callback_url=receiver.url, reference=reference)
    await sandbox.advance(seconds=1)

    delivery = receiver.delivery
    assert delivery.signature == hmac_sha256(delivery.raw, "sandbox_secret")
    assert delivery.body.get("reference", reference) == reference


@pytest.mark.spec("delivery.1")
@pytest.mark.decision("D2", "D29")
async def test_the_key_is_that_of_the_client_that_asked(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    sandbox = await start_sandbox(
        credentials=[
            {"client_key": "first", "secret_key": "its own"},
            {"client_key": "second", "secret_key": "sécret: with a colon"},
        ]
    )
    for client_key, secret_key in [("first", "its own"), ("second", "sécret: with a colon")]:
        sandbox.headers["Authorization"] = basic(client_key, secret_key)
        await sandbox.collect(callback_url=receiver.url)
        await sandbox.advance(seconds=1)
        delivery = receiver.deliveries[-1]

        assert delivery.signature == hmac_sha256(delivery.raw, secret_key)
