"""Overrides and faults that a test adds in advance."""

from typing import Any

import pytest
import requests

from sandbox_sim import SandboxGateway
from tests.testing.conftest import collected, collection

Fields = dict[str, Any]


def test_overrides_decide_payments_until_a_reset(gateway: SandboxGateway) -> None:
    """`code` is the same as `response_code`."""
    gateway.override(status="003", transaction_id="T1")
    gateway.override(callback={"duplicate": 2}, transaction_id="T2")
    gateway.override(code="016", transaction_id="T3")
    made = gateway.override(status="001", amount={"min": 50}, nw="MTN")

    for name in ("T1", "T2", "T3"):
        collected(gateway, transaction_id=name)
    gateway.advance(seconds=1)

    assert made["match"] == {
        "service_id": gateway.service_id,
        "nw": "MTN",
        "amount": {"min": 50.0},
    }
    gateway.callbacks.expect_one(transaction_id="T1", status="003")
    gateway.callbacks.expect(times=2, transaction_id="T2", status="000")
    gateway.inbox().expect(times=2, body={"trans_ref": "T2"})
    assert gateway.requests.expect_one(code="016").response_code == "016"

    gateway.reset()
    assert collected(gateway, transaction_id="T3")["response_code"] == "202"


def test_an_invalid_override_or_fault_is_refused(gateway: SandboxGateway) -> None:
    overrides: list[tuple[Fields, str]] = [
        ({"status": "004"}, "status"),
        ({"status": "003", "transactionid": "T1"}, "'match.transactionid' is unknown"),
        ({"callback": {"twice": True}}, "'callback.twice' is unknown"),
    ]
    faults: list[tuple[Fields, str]] = [
        ({"status": 404}, "429, 500, 502, 503"),
        ({}, "exactly one of"),
    ]
    for rule, rows in ((gateway.override, overrides), (gateway.fault, faults)):
        for fields, sentence in rows:
            with pytest.raises(ValueError, match=sentence):
                rule(**fields)


def test_clear_faults_ends_only_the_faults_of_the_service(gateway: SandboxGateway) -> None:
    gateway.fault(status=429, retry_after_s=7, times=1)
    assert [collected(gateway)["response_code"] for _ in range(2)] == ["429", "202"]
    gateway.fault(status=503)
    gateway.fault(status=429, service_id=4)

    gateway.clear_faults()

    assert collected(gateway)["response_code"] == "202"
    assert collected(gateway, service_id=4)["response_code"] == "429"


def test_latency_takes_real_time(gateway: SandboxGateway) -> None:
    gateway.fault(latency={"fixed_ms": 300_000})

    with pytest.raises(requests.Timeout):
        requests.post(
            f"{gateway.url}/make_payment",
            json=collection(gateway),
            auth=gateway.auth,
            timeout=0.05,
        )
