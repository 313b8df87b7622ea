"""Overrides and faults that a test adds in advance."""

from typing import Any

import pytest
import requests

from sandbox_sim import SandboxGateway
from tests.testing.conftest import collected, collection

Fields = dict[str, Any]


class TestOverrides:
    def test_a_payment_ends_as_asked(self, gateway: SandboxGateway) -> None:
        gateway.override(status="003", transaction_id="T1")

        collected(gateway)
        collected(gateway, transaction_id="T2")
        gateway.advance(seconds=1)

        gateway.callbacks.expect_one(transaction_id="T1", status="003")
        gateway.callbacks.expect_one(transaction_id="T2", status="000")

    def test_code_is_the_same_as_response_code(self, gateway: SandboxGateway) -> None:
        gateway.override(code="016")

        assert collected(gateway)["response_code"] == "016"
        assert gateway.requests.expect_one(code="016").response_code == "016"

    def test_a_callback_comes_twice(self, gateway: SandboxGateway) -> None:
        gateway.override(callback={"duplicate": 2})

        collected(gateway)
        gateway.advance(seconds=1)

        gateway.inbox().expect(times=2, body={"trans_ref": "T1"})

    def test_what_was_made_is_given_back(self, gateway: SandboxGateway) -> None:
        made = gateway.override(status="001", amount={"min": 5}, nw="MTN")

        assert made["match"] == {
            "service_id": gateway.service_id,
            "nw": "MTN",
            "amount": {"min": 5.0},
        }

    def test_the_next_test_knows_none_of_it(self, gateway: SandboxGateway) -> None:
        gateway.override(response_code="016")

        gateway.reset()

        assert collected(gateway)["response_code"] == "202"

    @pytest.mark.parametrize(
        ("fields", "sentence"),
        [
            ({"status": "004"}, "status"),
            ({"status": "003", "transactionid": "T1"}, "'match.transactionid' is unknown"),
            ({"callback": {"twice": True}}, "'callback.twice' is unknown"),
        ],
    )
    def test_what_cannot_be_is_refused(
        self, gateway: SandboxGateway, fields: Fields, sentence: str
    ) -> None:
        with pytest.raises(ValueError, match=sentence):
            gateway.override(**fields)


class TestFaults:
    def test_those_of_the_service_end_when_they_are_cleared(self, gateway: SandboxGateway) -> None:
        gateway.fault(status=503)
        gateway.fault(status=429, service_id=4)

        gateway.clear_faults()

        assert collected(gateway)["response_code"] == "202"
        assert collected(gateway, service_id=4)["response_code"] == "429"

    def test_a_status(self, gateway: SandboxGateway) -> None:
        gateway.fault(status=429, retry_after_s=7, times=1)

        codes = [collected(gateway)["response_code"] for _ in range(2)]

        assert codes == ["429", "202"]

    def test_latency_is_real_time_for_the_client(self, gateway: SandboxGateway) -> None:
        gateway.fault(latency={"fixed_ms": 300_000})

        with pytest.raises(requests.Timeout):
            requests.post(
                f"{gateway.url}/make_payment",
                json=collection(gateway),
                auth=gateway.auth,
                timeout=0.05,
            )

    @pytest.mark.parametrize(
        ("fields", "sentence"), [({"status": 404}, "429, 500, 502, 503"), ({}, "exactly one of")]
    )
    def test_what_cannot_be_is_refused(
        self, gateway: SandboxGateway, fields: Fields, sentence: str
    ) -> None:
        with pytest.raises(ValueError, match=sentence):
            gateway.fault(**fields)
