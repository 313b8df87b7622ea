"""The fake MoMo server serves a public client library, `mtn-momo-client`, which others wrote."""

from asyncio import to_thread
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpx
import pytest
from momo_api import (
    CollectionApi,
    Config,
    ConflictException,
    DisbursementApi,
    ErrorReason,
    InternalServerErrorException,
    InvalidSubscriptionKeyException,
    MomoException,
    PaymentRequest,
    ResourceNotFoundException,
    TransferRequest,
    generate_uuid,
)

from chaos.production.fake_momo import (
    COLLECTION,
    DISBURSEMENT,
    ENVIRONMENT,
    FakeMomo,
    MomoServer,
    serving,
)

PAYMENT = PaymentRequest.make("10.50", "233244000001", "T1", "GHS", "Order 1", "Order 1")
TRANSFER = TransferRequest.make("5", "233244000001", "T2", "GHS", "Order 2", "Order 2")


@pytest.fixture
async def momo() -> AsyncIterator[MomoServer]:
    async with serving(FakeMomo(callback_host="shop.example")) as momo:
        yield momo


@contextmanager
def collecting(
    momo: MomoServer, *, key: str = COLLECTION.subscription_key, callback: str = ""
) -> Iterator[CollectionApi]:
    config = Config.collection(key, COLLECTION.api_user, COLLECTION.api_key, callback)
    with httpx.Client(timeout=30) as client:
        yield CollectionApi(config, momo.url, ENVIRONMENT, client)


@pytest.fixture
def api(momo: MomoServer) -> Iterator[CollectionApi]:
    """The client of a shop that collects; it blocks, so it is called in a thread."""
    with collecting(momo) as api:
        yield api


async def test_a_request_to_pay_is_pending_and_then_successful(
    momo: MomoServer, api: CollectionApi
) -> None:
    reference = await to_thread(api.request_to_pay, PAYMENT)
    assert (await to_thread(api.get_payment_status, reference)).is_pending()

    momo.fake.decide(reference, "SUCCESSFUL")

    paid = await to_thread(api.get_payment_status, reference)
    assert paid.is_successful()
    assert (paid.amount, paid.currency) == ("10.50", "GHS")
    assert (paid.external_id, paid.payer) == ("T1", "233244000001")
    assert paid.payer_message == paid.payee_note == "Order 1"
    assert paid.financial_transaction_id == "1000000"
    assert len(momo.fake.came("token")) == 1


async def test_a_transfer_has_a_payee(momo: MomoServer) -> None:
    config = Config.disbursement(
        DISBURSEMENT.subscription_key, DISBURSEMENT.api_user, DISBURSEMENT.api_key
    )
    with httpx.Client(timeout=30) as client:
        api = DisbursementApi(config, momo.url, ENVIRONMENT, client)
        reference = await to_thread(api.transfer, TRANSFER)
        momo.fake.decide(reference, "SUCCESSFUL")

        assert (await to_thread(api.get_transfer_status, reference)).payee == "233244000001"


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("NOT_ENOUGH_FUNDS", ""),
        ({"code": "NOT_ENOUGH_FUNDS", "message": "Not enough funds."}, "Not enough funds."),
    ],
)
async def test_a_failure_has_a_reason_in_both_forms(
    momo: MomoServer, api: CollectionApi, reason: object, message: str
) -> None:
    reference = await to_thread(api.request_to_pay, PAYMENT)
    momo.fake.decide(reference, "FAILED", reason)

    failed = await to_thread(api.get_payment_status, reference)

    assert failed.is_failed()
    assert failed.reason == ErrorReason("NOT_ENOUGH_FUNDS", message)


async def test_a_reference_is_used_once_and_another_is_not_found(api: CollectionApi) -> None:
    reference = await to_thread(api.request_to_pay, PAYMENT)

    with pytest.raises(ConflictException) as conflict:
        await to_thread(api.request_to_pay, PAYMENT, reference)
    with pytest.raises(ResourceNotFoundException) as missing:
        await to_thread(api.get_payment_status, generate_uuid())

    assert conflict.value.code == ErrorReason.RESOURCE_ALREADY_EXIST
    assert missing.value.code == ErrorReason.RESOURCE_NOT_FOUND


async def test_wrong_credentials_and_an_expired_token_are_refused(
    momo: MomoServer, api: CollectionApi
) -> None:
    with (
        collecting(momo, key="another key") as stranger,
        pytest.raises(InvalidSubscriptionKeyException),
    ):
        await to_thread(stranger.request_to_pay, PAYMENT)
    await to_thread(api.request_to_pay, PAYMENT)
    momo.fake.expire_tokens()

    with pytest.raises(MomoException) as raised:
        await to_thread(api.request_to_pay, PAYMENT)

    assert raised.value.status_code == 401


@pytest.mark.parametrize(
    ("request_", "callback", "code"),
    [
        (PaymentRequest.make("1", "233244000001", "T1", "XAF"), "", "INVALID_CURRENCY"),
        (PAYMENT, "https://other.example/", "INVALID_CALLBACK_URL_HOST"),
    ],
)
async def test_permanent_faults_come_with_http_500(
    momo: MomoServer, request_: PaymentRequest, callback: str, code: str
) -> None:
    with (
        collecting(momo, callback=callback) as api,
        pytest.raises(InternalServerErrorException) as raised,
    ):
        await to_thread(api.request_to_pay, request_)

    assert raised.value.code == code
    assert momo.fake.payments == {}
