"""The fake MoMo server serves a public client library, `mtn-momo-client`, which others wrote."""

import asyncio
import json
import uuid
from collections.abc import Iterator
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

from sandbox_sim.testing.network_contract import HttpRequest
from tests.networks.fake_momo import (
    COLLECTION,
    DISBURSEMENT,
    ENVIRONMENT,
    SANDBOX,
    FakeMomo,
    serving,
)

PAYMENT = PaymentRequest.make("10.50", "233244000001", "T1", "GHS", "Order 1", "Order 1")

TRANSFER = TransferRequest.make("5", "233244000001", "T2", "GHS", "Order 2", "Order 2")


@contextmanager
def collection(
    url: str, *, key: str = COLLECTION.subscription_key, callback: str = ""
) -> Iterator[CollectionApi]:
    config = Config.collection(key, COLLECTION.api_user, COLLECTION.api_key, callback)
    with httpx.Client(timeout=30) as client:
        yield CollectionApi(config, url, ENVIRONMENT, client)


@contextmanager
def disbursement(url: str) -> Iterator[DisbursementApi]:
    config = Config.disbursement(
        DISBURSEMENT.subscription_key, DISBURSEMENT.api_user, DISBURSEMENT.api_key
    )
    with httpx.Client(timeout=30) as client:
        yield DisbursementApi(config, url, ENVIRONMENT, client)


async def test_a_request_to_pay_is_pending_and_then_successful() -> None:
    async with serving() as momo:

        def pay() -> None:
            with collection(momo.url) as api:
                reference = api.request_to_pay(PAYMENT)
                assert api.get_payment_status(reference).is_pending()

                momo.fake.decide(reference, "SUCCESSFUL")

                paid = api.get_payment_status(reference)
                assert paid.is_successful()
                assert (paid.amount, paid.currency) == ("10.50", "GHS")
                assert (paid.external_id, paid.payer) == ("T1", "233244000001")
                assert paid.payer_message == paid.payee_note == "Order 1"
                assert paid.financial_transaction_id == "1000000"

        await asyncio.to_thread(pay)
        assert len(momo.fake.came("token")) == 1


async def test_a_transfer_has_a_payee() -> None:
    async with serving() as momo:

        def send() -> None:
            with disbursement(momo.url) as api:
                reference = api.transfer(TRANSFER)
                momo.fake.decide(reference, "SUCCESSFUL")
                assert api.get_transfer_status(reference).payee == "233244000001"

        await asyncio.to_thread(send)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("NOT_ENOUGH_FUNDS", ""),
        ({"code": "NOT_ENOUGH_FUNDS", "message": "Not enough funds."}, "Not enough funds."),
    ],
)
async def test_a_failure_has_a_reason_in_both_forms(reason: object, message: str) -> None:
    async with serving() as momo:

        def fail() -> None:
            with collection(momo.url) as api:
                reference = api.request_to_pay(PAYMENT)
                momo.fake.decide(reference, "FAILED", reason)
                failed = api.get_payment_status(reference)
                assert failed.is_failed()
                assert failed.reason == ErrorReason("NOT_ENOUGH_FUNDS", message)

        await asyncio.to_thread(fail)


async def test_a_reference_is_used_once() -> None:
    async with serving() as momo:

        def twice() -> None:
            with collection(momo.url) as api:
                reference = api.request_to_pay(PAYMENT)
                with pytest.raises(ConflictException) as raised:
                    api.request_to_pay(PAYMENT, reference)
                assert raised.value.code == ErrorReason.RESOURCE_ALREADY_EXIST

        await asyncio.to_thread(twice)


async def test_an_unknown_reference_is_not_found() -> None:
    async with serving() as momo:

        def ask() -> None:
            with (
                collection(momo.url) as api,
                pytest.raises(ResourceNotFoundException) as raised,
            ):
                api.get_payment_status(generate_uuid())
            assert raised.value.code == ErrorReason.RESOURCE_NOT_FOUND

        await asyncio.to_thread(ask)


async def test_wrong_credentials_and_an_expired_token_are_refused() -> None:
    async with serving() as momo:

        def refused() -> None:
            with (
                collection(momo.url, key="another key") as api,
                pytest.raises(InvalidSubscriptionKeyException),
            ):
                api.request_to_pay(PAYMENT)
            with collection(momo.url) as api:
                api.request_to_pay(PAYMENT)
                momo.fake.expire_tokens()
                with pytest.raises(MomoException) as raised:
                    api.request_to_pay(PAYMENT)
            assert raised.value.status_code == 401

        await asyncio.to_thread(refused)


@pytest.mark.parametrize(
    ("request_", "callback", "code"),
    [
        (PaymentRequest.make("1", "233244000001", "T1", "XAF"), "", "INVALID_CURRENCY"),
        (PAYMENT, "https://other.example/", "INVALID_CALLBACK_URL_HOST"),
    ],
)
async def test_permanent_faults_come_with_http_500(
    request_: PaymentRequest, callback: str, code: str
) -> None:
    async with serving(FakeMomo(callback_host="shop.example")) as momo:

        def refused() -> None:
            with (
                collection(momo.url, callback=callback) as api,
                pytest.raises(InternalServerErrorException) as raised,
            ):
                api.request_to_pay(request_)
            assert raised.value.code == code

        await asyncio.to_thread(refused)
        assert momo.fake.payments == {}


@pytest.mark.decision("D41")
@pytest.mark.parametrize(("environment", "takes"), [(ENVIRONMENT, "GHS"), (SANDBOX, "EUR")])
def test_an_environment_takes_one_currency(environment: str, takes: str) -> None:
    """Asked without the client library, which sends EUR to the sandbox whatever it is told."""
    fake = FakeMomo(environment, tokens=["canary-token-1-collection"])
    headers = {
        "ocp-apim-subscription-key": COLLECTION.subscription_key,
        "x-target-environment": environment,
        "authorization": "Bearer canary-token-1-collection",
    }

    def paid(currency: str) -> int:
        asked = PaymentRequest.make("1", "233244000001", "T1", currency, "Order 1", "Order 1")
        body = json.dumps(asked.to_dict()).encode()
        reference = {"x-reference-id": str(uuid.uuid4())}
        path = "/collection/v1_0/requesttopay"
        return fake.answer(HttpRequest("POST", path, {**headers, **reference}, body)).status

    answers = {currency: paid(currency) for currency in ("GHS", "EUR", "XAF")}

    assert answers == {"GHS": 500, "EUR": 500, "XAF": 500, takes: 202}


@pytest.mark.parametrize(
    "wrong",
    [
        PaymentRequest.make("ten", "233244000001", "T1", "GHS"),
        PaymentRequest.make("10", "+233244000001", "T1", "GHS"),
        PaymentRequest.make("10", "233244000001", "T1", "GHS", "x" * 161),
    ],
)
async def test_a_body_that_is_wrong_is_a_bad_request(wrong: PaymentRequest) -> None:
    async with serving() as momo:

        def refused() -> None:
            with collection(momo.url) as api, pytest.raises(MomoException) as raised:
                api.request_to_pay(wrong)
            assert raised.value.status_code == 400

        await asyncio.to_thread(refused)
