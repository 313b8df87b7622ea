"""The adapter `mtn_momo`: its requests, and how it reads the answers of MTN."""

import json
from decimal import Decimal
from typing import Any

import pytest

from chaos.production.fake_momo import COLLECTION, DISBURSEMENT, SETTINGS, reply
from sandbox_sim.networks.mtn_momo.adapter import mtn_momo
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import NetworkConfigError, StatusResult, UnreadableNotification
from sandbox_sim.records.exchanges import NotificationTrust
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.testing.network_contract import HttpReply
from tests.networks.fakes import environment, query
from tests.networks.momo import REFERENCE, Momo, callback, opened, request, scripted

pytestmark = pytest.mark.decision("D39")

PAID: dict[str, object] = {
    "externalId": "T1",
    "amount": "10.50",
    "currency": "GHS",
    "status": "SUCCESSFUL",
    "financialTransactionId": "1000000",
}


@pytest.mark.parametrize("operation", [Operation.COLLECT, Operation.DEPOSIT])
async def test_a_collection_is_a_request_to_pay(momo: Momo, operation: Operation) -> None:
    result = await momo.network.submit(request(operation))

    assert result.outcome is Outcome.PENDING
    (sent,) = momo.fake.came("requesttopay")
    assert (sent.method, sent.path) == ("POST", "/collection/v1_0/requesttopay")
    assert sent.headers["authorization"] == f"Bearer {momo.fake.tokens[0]}"
    assert sent.headers["ocp-apim-subscription-key"] == COLLECTION.subscription_key
    assert sent.headers["x-reference-id"] == REFERENCE
    assert sent.headers["x-target-environment"] == "mtnghana"
    assert sent.headers["x-callback-url"] == "http://127.0.0.1:9/_networks/testnet/A1"
    assert json.loads(sent.body) == {
        "amount": "10.50",
        "currency": "GHS",
        "externalId": "T1",
        "payer": {"partyIdType": "MSISDN", "partyId": "233244000001"},
        "payerMessage": "Order 1",
        "payeeNote": "Order 1",
    }


async def test_a_payout_is_a_transfer_with_the_other_credentials(momo: Momo) -> None:
    result = await momo.network.submit(request(Operation.PAYOUT))

    assert result.outcome is Outcome.PENDING
    (sent,) = momo.fake.came("transfer")
    assert (sent.method, sent.path) == ("POST", "/disbursement/v1_0/transfer")
    assert sent.headers["ocp-apim-subscription-key"] == DISBURSEMENT.subscription_key
    body = json.loads(sent.body)
    assert body["payee"] == {"partyIdType": "MSISDN", "partyId": "233244000001"}
    assert "payer" not in body


async def test_a_number_in_233_form_stays_so_and_a_long_message_is_cut(momo: Momo) -> None:
    asked = request(party="233244000002", description="x" * 161)
    result = await momo.network.submit(asked)

    assert result.outcome is Outcome.PENDING
    body = momo.fake.payments[REFERENCE].body
    assert body["payer"]["partyId"] == "233244000002"
    assert body["payerMessage"] == body["payeeNote"] == "x" * 160


async def test_callbacks_are_requested_only_with_an_address_and_the_setting() -> None:
    async with opened(callback=False) as without_setting, opened() as without_address:
        await without_setting.network.submit(request())
        await without_address.network.submit(request(notification_url=""))

        for momo in (without_setting, without_address):
            (sent,) = momo.fake.came("requesttopay")
            assert "x-callback-url" not in sent.headers


@pytest.mark.parametrize(
    ("answer", "outcome", "code", "fault"),
    [
        (HttpReply(202), Outcome.PENDING, "", False),
        (reply(409, code="RESOURCE_ALREADY_EXIST"), Outcome.PENDING, "", False),
        (reply(409, code="ANOTHER"), Outcome.UNKNOWN, "", False),
        (reply(409), Outcome.UNKNOWN, "", False),
        (reply(202, said="something"), Outcome.UNKNOWN, "", False),
        (HttpReply(200), Outcome.UNKNOWN, "", False),
        (reply(400), Outcome.REFUSED, "400", False),
        (reply(401), Outcome.REFUSED, "500", False),
        (reply(403, code="FORBIDDEN_IP"), Outcome.REFUSED, "500", False),
        (reply(404, statusCode=404, message="Resource not found"), Outcome.UNKNOWN, "", False),
        (reply(429, statusCode=429), Outcome.UNKNOWN, "", False),
        (reply(500), Outcome.UNKNOWN, "", True),
        (reply(500, code="SOMETHING"), Outcome.UNKNOWN, "", True),
        (reply(500, code="INVALID_CURRENCY"), Outcome.UNKNOWN, "", True),
        (reply(500, code="PAYER_NOT_FOUND"), Outcome.UNKNOWN, "", False),
        (reply(500, code="PAYEE_LIMIT_REACHED"), Outcome.UNKNOWN, "", False),
        (reply(500, code="INTERNAL_PROCESSING_ERROR"), Outcome.UNKNOWN, "", True),
        (reply(503, code="SERVICE_UNAVAILABLE"), Outcome.UNKNOWN, "", True),
    ],
    ids=lambda value: f"{value.status} {value.body!r}" if isinstance(value, HttpReply) else None,
)
async def test_only_a_documented_answer_to_a_payment_is_believed(
    answer: HttpReply, outcome: Outcome, code: str, *, fault: bool
) -> None:
    """A 500 about one customer is not a network fault.

    Otherwise five wrong numbers of one client would stop the payments of all others for 30 s.
    """
    async with scripted(lambda _: answer) as (network, requests):
        result = await network.submit(request())

    assert (result.outcome, result.code, result.network_fault) == (outcome, code, fault)
    # A refusal may pass unless the request is its reason.
    assert outcome is not Outcome.REFUSED or result.report.may_pass is (code == "500")
    assert b"INVALID_CURRENCY" not in answer.body or result.reason == (
        "HTTP 500, INVALID_CURRENCY: MTN does not accept the currency"
    )
    sent = [each for each in requests if each.path.endswith("requesttopay")]
    assert len(sent) == (2 if answer.status == 401 else 1)  # again with a new token


@pytest.mark.parametrize("operation", [Operation.COLLECT, Operation.PAYOUT])
@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("PENDING", Outcome.PENDING),
        ("SUCCESSFUL", Outcome.SUCCEEDED),
        ("FAILED", Outcome.FAILED),
        ("successful", Outcome.UNKNOWN),
        ("ONGOING", Outcome.UNKNOWN),
    ],
)
async def test_each_status_of_a_payment_has_its_outcome(
    momo: Momo, operation: Operation, status: str, outcome: Outcome
) -> None:
    await momo.network.submit(request(operation))
    momo.fake.decide(REFERENCE, status)

    found = await momo.network.status(query(request(operation)))

    assert (found.outcome, found.found) == (outcome, True)
    assert not found.cancelled
    if outcome is Outcome.SUCCEEDED:
        assert found.echo == Echo(REFERENCE, Decimal("10.50"), "GHS")
        assert found.network_id == "1000000"


async def status_of(answer: HttpReply) -> StatusResult:
    """The result of a status query with this answer."""
    async with scripted(lambda _: answer) as (network, _):
        return await network.status(query(request()))


async def test_numbers_are_read_like_texts_unless_they_are_too_long() -> None:
    answer = HttpReply(
        200,
        b'{"amount": 10.50, "currency": "GHS", "financialTransactionId": 23503452,'
        b' "externalId": 947354, "status": "SUCCESSFUL"}',
    )
    async with scripted(lambda _: answer) as (network, _):
        found = await network.status(query(request(transaction_id="947354")))

    assert found.echo == Echo(REFERENCE, Decimal("10.50"), "GHS")
    assert found.network_id == "23503452"
    raw = json.dumps(PAID).encode().replace(b'"1000000"', b"1E+999999")
    assert (await status_of(HttpReply(200, raw))).network_id == ""


@pytest.mark.parametrize(
    ("changed", "echoed"),
    [
        ({"externalId": "T2"}, Echo("T2", Decimal("10.50"), "GHS")),
        ({"externalId": None}, Echo(None, Decimal("10.50"), "GHS")),
        ({"amount": "ten"}, Echo(REFERENCE, None, "GHS")),
        ({"amount": "NaN"}, Echo(REFERENCE, None, "GHS")),
        ({"currency": None}, Echo(REFERENCE, Decimal("10.50"), None)),
    ],
)
async def test_the_fields_that_mtn_repeats_are_left_to_the_gateway_to_compare(
    changed: dict[str, object], echoed: Echo
) -> None:
    found = await status_of(reply(200, **{**PAID, **changed}))

    assert (found.outcome, found.echo) == (Outcome.SUCCEEDED, echoed)


async def test_the_retry_after_of_mtn_is_passed_on() -> None:
    answer = HttpReply(429, b"{}", (("Retry-After", "30"),))

    found = await status_of(answer)

    assert (found.outcome, found.found) == (Outcome.UNKNOWN, True)
    assert found.retry_after is not None
    assert found.retry_after.total_seconds() == 30


@pytest.mark.parametrize("method", ["PUT", "POST"])
async def test_a_callback_is_a_hint_by_either_method(momo: Momo, method: str) -> None:
    raw = callback(json.dumps(PAID).encode(), method)
    (notification,) = momo.network.parse(raw)

    assert momo.network.capabilities.trust is NotificationTrust.HINT
    assert not momo.network.verify(raw)
    assert (notification.outcome, notification.attempt_id) == (Outcome.SUCCEEDED, "A1")
    assert notification.network_id == "1000000"
    assert notification.echo == Echo(None, Decimal("10.50"), "GHS")


async def test_a_callback_without_a_status_is_unreadable(momo: Momo) -> None:
    for body in [b"", b"[]", b"{}", b'{"status": 1}', b"not JSON", b"[" * 9999]:
        with pytest.raises(UnreadableNotification, match="JSON object with a status"):
            momo.network.parse(callback(body))


async def test_an_operation_without_credentials_is_not_taken() -> None:
    without: dict[str, Any] = dict.fromkeys(DISBURSEMENT.settings, "")
    async with opened(**without) as momo:
        can = momo.network.capabilities
        refused = await momo.network.submit(request(Operation.PAYOUT))
        asked = await momo.network.status(query(request(Operation.PAYOUT)))

        assert can.operations == {Operation.COLLECT, Operation.DEPOSIT}
        assert (*can.nws, *can.currencies) == ("MTN", "GHS")
        assert refused.outcome is Outcome.NOT_SENT
        assert (asked.outcome, asked.found) == (Outcome.UNKNOWN, True)
        assert momo.fake.requests == []


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"base_url": "momo"}, "base_url"),
        ({"target_environment": ""}, "target_environment"),
        ({"currency": "cedi"}, "currency"),
        ({"collection_api_key": ""}, "collection_api_key: must be set"),
        ({"disbursement_api_user": "a:b"}, "disbursement_api_user: must not contain a colon"),
        ({"collection_api_key": "canary\r\nX-Evil: 1"}, "collection_api_key: must be ASCII"),
        (dict.fromkeys([*COLLECTION.settings, *DISBURSEMENT.settings], ""), "must be set"),
        ({"colour": "yellow"}, "colour"),
    ],
)
def test_a_wrong_setting_is_named_without_its_value(changed: dict[str, Any], named: str) -> None:
    settings = {"base_url": "http://127.0.0.1:9/", **SETTINGS, **changed}

    with pytest.raises(NetworkConfigError, match=named) as raised:
        mtn_momo(settings, environment())

    assert "canary" not in str(raised.value)
