"""A bad address in a request gets HTTP 400; a callback to one in an old store fails (D37)."""

import logging

import pytest

from sandbox_sim.http_addresses import MAX_CHARACTERS
from sandbox_sim.ports import Unit
from sandbox_sim.records.callbacks import DeliveryState
from tests.addresses import CALLABLE, NOT_CALLABLE
from tests.conftest import Sandbox
from tests.web.conftest import Receiver, kept_callback
from tests.web.control_api import assert_error, post

pytestmark = pytest.mark.decision("D5", "D37")

NO_ADDRESS = "not acknowledged: callback_url is not a valid http or https address"


def of_length(characters: int) -> str:
    address = "http://127.0.0.1:9/"
    return address + "x" * (characters - len(address))


@pytest.mark.parametrize("field", ["callback_url", "landing_page"])
class TestRequests:
    async def test_only_callable_addresses_are_accepted(self, sandbox: Sandbox, field: str) -> None:
        for address in NOT_CALLABLE:
            answer = await sandbox.card(**{field: address})

            assert (answer.status, answer.code) == (400, "400"), address
            assert answer.message.startswith(f"Bad request: {field} must "), address
            assert len(answer.message) < 200
        assert (await sandbox.status()).code == "027"
        for address in CALLABLE:
            assert (await sandbox.card(**{field: address})).code == "000", address

    async def test_the_answer_to_a_refused_address_has_the_limit_and_no_password(
        self, sandbox: Sandbox, field: str
    ) -> None:
        longest = await sandbox.card(**{field: of_length(MAX_CHARACTERS)})
        too_long = await sandbox.card(**{field: of_length(MAX_CHARACTERS + 1)})
        by_far = await sandbox.card(**{field: of_length(900_000)})
        secret = await sandbox.card(**{field: "http://shop:s3same@[:::]/"})

        assert longest.code == "000"
        assert too_long.message == f"Bad request: {field} must have at most 2,048 characters"
        assert (by_far.status, by_far.message) == (400, too_long.message)
        assert secret.status == 400
        assert "s3same" not in secret.message


async def test_a_resend_to_an_address_that_is_not_callable_is_refused(sandbox: Sandbox) -> None:
    await sandbox.collect()
    await sandbox.advance(seconds=1)
    before = await kept_callback(sandbox)

    for url in ("http://[1:2:3]:9/", "ftp://shop.example", "", of_length(2049)):
        answer = await post(sandbox, f"callbacks/{before.id}/resend", url=url)

        assert_error(answer, 400, "url must be an http:// or https:// address", "2,048 characters")
        assert await kept_callback(sandbox) == before


@pytest.mark.decision("D30")
@pytest.mark.parametrize("url", ["http://[1:2:3]:9/", "http://[:::]:9/", "http://[::1.]:8590/"])
async def test_a_callback_to_a_bad_address_of_an_older_version_fails_and_can_be_resent(
    sandbox: Sandbox, receiver: Receiver, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await sandbox.collect()

    async def set_address(unit: Unit) -> None:
        transaction = await unit.transaction(55, "T1")
        assert transaction is not None
        payment = transaction.payment._replace(callback_url=url)
        await unit.save_transaction(transaction._replace(payment=payment))

    await sandbox.gateway.store.run(set_address)
    await sandbox.advance(minutes=11)

    callback = await kept_callback(sandbox)
    assert [attempt.verdict for attempt in callback.attempts] == [NO_ADDRESS] * 3
    assert callback.state is DeliveryState.FAILED
    assert (await sandbox.status()).data["status"] == "000"
    assert not [each for each in caplog.records if each.exc_info or each.levelno > logging.WARNING]

    resend = f"callbacks/{callback.id}/resend"
    assert (await post(sandbox, resend)).status == 202
    await sandbox.advance(minutes=11)
    assert len((await kept_callback(sandbox)).attempts) == 4
    assert (await post(sandbox, resend, url=receiver.url)).status == 202
    await sandbox.advance(seconds=0)
    assert (await kept_callback(sandbox)).state is DeliveryState.DELIVERED
    assert receiver.delivery.body["trans_ref"] == "T1"
