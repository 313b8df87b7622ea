"""`SandboxGateway` in a test that blocks."""

import copy
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
import requests

import sandbox_sim
from sandbox_sim import SandboxGateway
from sandbox_sim.ports import StoreError
from sandbox_sim.settings.loading import ConfigError
from tests.testing.conftest import collected, collection, texted


def test_httpx_and_requests_reach_the_gateway_on_a_free_port(gateway: SandboxGateway) -> None:
    assert gateway.url.startswith("http://127.0.0.1:")
    address, body = f"{gateway.url}/make_payment", collection(gateway)

    with httpx.Client(auth=gateway.auth) as client:
        answers = [
            client.post(address, json=body).json(),
            requests.post(address, json=body, auth=gateway.auth, timeout=5).json(),
            requests.post(address, json.dumps(body), headers=gateway.headers, timeout=5).json(),
        ]

    assert [answer["response_code"] for answer in answers] == ["202"] * 3


def test_a_deep_copy_is_the_same_gateway(gateway: SandboxGateway) -> None:
    """As `django.test.testcases.TestData` does with what `setUpTestData` stores."""
    data = {"gateway": gateway, "orders": ["1001"]}

    copied = copy.deepcopy(data)

    assert copied["gateway"] is gateway
    assert collected(gateway)["response_code"] == "202"


def test_settings_come_from_keywords_and_not_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SANDBOX_SIM_CALLBACK_TIMEOUT_S", "soon")
    monkeypatch.setenv("SANDBOX_SIM_STORE", "mongodb:")

    with SandboxGateway(callback_profile="flat", settle_delay_ms=5000) as gateway:
        collected(gateway)
        gateway.advance(seconds=4)
        gateway.callbacks.expect_none()
        gateway.advance(seconds=1)

        assert gateway.callbacks.expect_one().body["status"] == "000"


def test_a_wrong_setting_and_the_reason_of_a_failed_start_are_named(
    gateway: SandboxGateway, tmp_path: Path
) -> None:
    least = "settle_delay_ms (from a keyword): must be greater than or equal to 0"
    unknown = "x (from a keyword): there is no such setting"
    wrong: list[tuple[dict[str, object], str]] = [
        ({"settle_delay_ms": -1}, least), ({"x": 5}, unknown)
    ]  # fmt: skip
    for settings, sentence in wrong:
        with pytest.raises(ConfigError) as caught:
            SandboxGateway(**settings)
        assert str(caught.value) == sentence

    port = int(gateway.url.rpartition(":")[2])
    with pytest.raises(OSError, match="address already in use"):
        SandboxGateway(port=port).__enter__()
    with pytest.raises(StoreError, match="cannot be opened"):
        SandboxGateway(store=f"sqlite:{tmp_path}").__enter__()


def test_auth_and_service_id_come_from_the_first_credentials() -> None:
    shop = {"client_key": "shop", "secret_key": "s3same", "service_ids": [7, 8]}

    with SandboxGateway(credentials=[shop]) as gateway:
        assert (gateway.auth, gateway.service_id) == (("shop", "s3same"), 7)
        assert collected(gateway)["response_code"] == "202"
        gateway.renew()
        assert gateway.service_id == 8


def test_a_gateway_on_all_addresses_has_a_loopback_url_and_keeps_its_token() -> None:
    with SandboxGateway(host="0.0.0.0", control_token="t0ken") as gateway:
        assert gateway.url.startswith("http://127.0.0.1:")
        assert collected(gateway)["response_code"] == "202"
        gateway.wait_callback()
        assert gateway.inbox().expect_one().signature == "valid"


def test_calls_outside_of_the_with_block_are_refused() -> None:
    gateway = SandboxGateway()
    with pytest.raises(RuntimeError, match="with SandboxGateway"):
        assert gateway.url
    with gateway:
        url = gateway.url
        with pytest.raises(RuntimeError, match="already running"):
            gateway.__enter__()
    with pytest.raises(RuntimeError, match="with SandboxGateway"):
        gateway.advance(seconds=1)
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=5)


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Gateway'"):
        sandbox_sim.Gateway  # type: ignore[attr-defined]  # noqa: B018


def test_reset_deletes_all_records_of_the_service(gateway: SandboxGateway) -> None:
    before = gateway.service_id
    collected(gateway)
    texted(gateway)
    gateway.wait_callback()

    gateway.reset()

    gateway.callbacks.expect_none()
    gateway.transactions.expect_none()
    gateway.sms.expect_none()
    gateway.requests.expect_none()
    gateway.inbox().expect_none()
    assert gateway.now == datetime(2026, 1, 1, 9, tzinfo=UTC)
    assert gateway.advance(minutes=15) == []
    assert gateway.service_id == before


def test_renew_gives_a_new_service_id_that_does_not_end_in_9(gateway: SandboxGateway) -> None:
    ids = {gateway.service_id}
    for _ in range(100):
        gateway.renew()
        ids.add(gateway.service_id)

    assert len(ids) == 101
    assert not any(number % 10 == 9 for number in ids)


def test_a_receiver_that_hangs_does_not_affect_the_next_test(
    gateway: SandboxGateway, hanging: str
) -> None:
    """A gateway that stops does not wait for it."""
    collected(gateway, callback_url=hanging)
    with pytest.raises(AssertionError, match="has not answered yet"):
        gateway.wait_callback(timeout_s=0)

    gateway.renew()

    collected(gateway)
    assert gateway.wait_callback(transaction_id="T1").state == "delivered"
    with SandboxGateway(settle_delay_ms=0) as stopping:
        collected(stopping, callback_url=hanging)


def test_reset_keeps_other_services_and_the_clock_and_renew_does_not(
    gateway: SandboxGateway,
) -> None:
    collected(gateway, service_id=59, transaction_id="of another")
    another = f"{gateway.url}/_sandbox/transactions/59/of%20another"
    gateway.reset()
    assert requests.get(another, timeout=5).json()["status"] == "002"
    requests.post(f"{gateway.url}/_sandbox/clock/resume", timeout=5).raise_for_status()

    gateway.renew()

    assert requests.get(another, timeout=5).status_code == 404
    clock = requests.get(f"{gateway.url}/_sandbox/clock", timeout=5).json()
    assert (clock["now"], clock["frozen"]) == ("2026-01-01T09:00:00.000Z", True)
    assert gateway.advance(minutes=15) == []


why = r"the request collect T1 was answered 019: .*0540010000.* \[sandbox\.1\]"


def test_the_error_for_a_missing_record_names_its_rejected_request(gateway: SandboxGateway) -> None:
    """A request with another transaction_id is not named."""
    collected(gateway, transaction_id="T1", customer_number="0540010000")
    gateway.advance(seconds=1)

    for records in (gateway.callbacks, gateway.transactions):
        with pytest.raises(AssertionError, match=why):
            records.expect_one(transaction_id="T1")
        with pytest.raises(AssertionError, match=why):
            records.expect()
    with pytest.raises(AssertionError) as caught:
        gateway.callbacks.expect_one(transaction_id="T2")
    assert "019" not in str(caught.value)


def test_records_stay_usable_after_the_gateway_has_stopped() -> None:
    """Malformed and unauthenticated requests are records too. An inbox may have any name."""
    with SandboxGateway() as gateway:
        assert collected(gateway, amount="10")["response_code"] == "400"
        requests.post(f"{gateway.url}/make_payment", json={}, auth=("shop", "wrong"), timeout=5)
        for name in ("a b", "shop/1", "Ɛsi?", "50%"):
            collected(gateway, transaction_id=name, callback_url=gateway.inbox_url(name))
            assert gateway.wait_callback(transaction_id=name).state == "delivered"
            gateway.inbox(name).expect_one()
        records, callbacks = gateway.requests, gateway.callbacks

    assert [request.response_code for request in records] == ["400", "100", *["202"] * 4]
    assert "amount" in records.expect_one(response_code="400").why
    with pytest.raises(AssertionError, match="expected one callback with transaction_id='T1'"):
        callbacks.expect_one(transaction_id="T1")


def test_records_are_oldest_first(gateway: SandboxGateway) -> None:
    for name in ("T1", "T2", "T3"):
        collected(gateway, transaction_id=name)
        gateway.advance(seconds=1)

    for records in (gateway.requests, gateway.transactions, gateway.callbacks):
        assert [each.transaction_id for each in records] == ["T1", "T2", "T3"]
    assert gateway.callbacks[-1].transaction_id == "T3"
    assert [delivery.body["trans_ref"] for delivery in gateway.inbox()] == ["T1", "T2", "T3"]


def test_requests_transactions_and_messages_have_their_fields(gateway: SandboxGateway) -> None:
    collected(gateway, transaction_id="T2", customer_number="0540010000")
    collected(gateway)
    texted(gateway)
    gateway.advance(seconds=1)

    request = gateway.requests.expect_one(operation="collect", response_code="019")
    payment = gateway.transactions.expect_one(transaction_id="T1")
    message = gateway.sms.expect_text(to="0244000001", contains="code", status="SENT")

    assert request.rule == "sandbox.1"
    assert "not allowlisted" in request.why
    assert request.body["amount"] == 10.5
    assert request.answer["response_code"] == "019"
    paid = (payment.operation, payment.amount, payment.nw)
    assert paid == ("collect", Decimal("10.5"), "MTN")
    assert [change.status for change in payment.timeline] == ["002", "000"]
    assert (message.text, message.sender_id) == ("Your code is 1234", "Shop")
    assert message.sent_at is not None


@pytest.mark.parametrize("profile", ["trans", "trans_bare", "flat", "event", "superset"])
def test_a_callback_of_every_profile_can_be_posted_again(profile: str) -> None:
    with SandboxGateway(callback_profile=profile) as gateway:
        collected(gateway, nickname="Ɛsi", reference="Order Ɛ")
        gateway.wait_callback()

        callback = gateway.callbacks.expect_one(
            status="000", amount=10.5, customer_number="0244000001", transaction_id="T1"
        )
        (delivery,) = gateway.inbox()
        assert callback.body == delivery.body
        assert callback.headers["X-Service-Signature"] == callback.signature
        again = gateway.inbox_url("again")
        requests.post(again, callback.content, headers=callback.headers, timeout=5)
        assert gateway.inbox("again").expect_one(signature="valid").body == callback.body


def test_the_report_lists_requests_callbacks_and_messages(gateway: SandboxGateway) -> None:
    collected(gateway, callback_url="http://127.0.0.1:9/callbacks")
    collected(gateway, transaction_id="T2", customer_number="0244000009")
    texted(gateway)
    gateway.advance(seconds=1)

    verdict = "not acknowledged: no connection to 127.0.0.1:9: Connection refused"
    head, *lines = gateway.report().splitlines()

    assert head == (
        f"{gateway.url}, service {gateway.service_id}, gateway time 2026-01-01T09:00:01.000Z"
    )
    assert lines == [
        "requests:",
        "  09:00:00.000  collect T1: 202, allowlisted number, last digit 0 to 8 [sandbox.3]",
        (
            "  09:00:00.000  collect T2: 015, last digit 9 is a simulated decline "
            "(customer_number '0244000009') [sandbox.3]"
        ),
        "  09:00:00.000  sms: 370, SMS units charged: 1 [sandbox.10]",
        "callbacks:",
        "  09:00:01.000  T1 status 000 to http://127.0.0.1:9/callbacks: retrying",
        f"  09:00:01.000    attempt 1: {verdict}; next attempt at 09:05:01.000",
        "messages:",
        "  to            status  sender_id  text",
        "  233244000001  SENT    Shop       Your code is 1234",
        gateway.callbacks.note,
    ]
    assert "the next job is due in 300 s: gateway.advance(seconds=300) or" in gateway.callbacks.note


@pytest.mark.decision("D38")
def test_masked_values_are_found_by_their_originals(
    sandbox_gateway: SandboxGateway,
) -> None:
    card, masked = "4111111111111111", "411111******1111"
    url = sandbox_gateway.inbox_url().replace("//", "//ama:s3same@")
    sandbox_gateway.override(status="000")
    collected(sandbox_gateway, transaction_id=card, customer_number=card, callback_url=url)

    callback = sandbox_gateway.wait_callback(transaction_id=card, customer_number=card, url=url)

    assert (callback.customer_number, callback.url) == (masked, url.replace("ama:s3same", "***"))
    assert callback.body["trans_ref"] == card
    request = sandbox_gateway.requests.expect_one(transaction_id=card, body={"nw": "MTN"})
    assert (request.transaction_id, request.body["customer_number"]) == (masked, masked)
    assert card not in str(sandbox_gateway.transactions.table())
