"""The other gateway that the contract tests connect `upstream` to."""

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sandbox_sim.callbacks.bodies import sign
from sandbox_sim.networks.upstream.adapter import UpstreamNetwork, UpstreamSettings
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import Network, NetworkEnvironment
from sandbox_sim.records.callbacks import SIGNATURE_HEADER
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract import (
    Decided,
    HttpReply,
    HttpRequest,
    Signature,
    Submitted,
)
from sandbox_sim.values import money, peer_input
from sandbox_sim.values.json_text import compact
from tests.networks.fakes import signature_of
from tests.records.samples import NOON

SECRET = "canary-secret-key-91"
TOKEN = base64.b64encode(f"client:{SECRET}".encode()).decode()

OPERATIONS = {
    "CTM": Operation.COLLECT,
    "DTTW": Operation.DEPOSIT,
    "MTC": Operation.PAYOUT,
    "BLP": Operation.BILL,
    "ATP": Operation.AIRTIME,
}


def operation_of(body: Mapping[str, Any]) -> Operation:
    if "msg_body" in body:
        return Operation.SMS
    return Operation.CARD if body["nw"] == "CRD" else OPERATIONS[body["trans_type"]]


STATUSES = {Outcome.PENDING: "002", Outcome.SUCCEEDED: "000", Outcome.FAILED: "001"}


def reply(status: int, code: str, **fields: object) -> HttpReply:
    body = {"response_code": code, "response_message": "said", **fields}
    return HttpReply(status, compact(body).encode())


class UpstreamDialect:
    """The paths and messages of another gateway. Some tests pass an `adapter` that is broken."""

    secrets = (SECRET, TOKEN)
    large_operation = Operation.DEPOSIT
    needs_tokens = False

    def __init__(
        self, adapter: Callable[..., Network] = UpstreamNetwork, record: Path | None = None
    ) -> None:
        self._adapter = adapter
        self._record = record

    def network(self, base_url: str, environment: NetworkEnvironment) -> Network:
        settings = UpstreamSettings.model_validate(
            {
                "base_url": base_url,
                "client_key": "client",
                "secret_key": SECRET,
                "rejects_duplicates": True,
                "record": self._record,
            }
        )
        return self._adapter(settings, environment, first_pause_s=0.001)

    def submitted(self, request: HttpRequest) -> Submitted | None:
        if request.path not in {"/make_payment", "/pay_bill", "/send_airtime", "/sms/send"}:
            return None
        body = peer_input.read_json(request.body)
        return Submitted(
            body["transaction_id"],
            money.exact_amount(request.body),
            # The interface has no currency for bills, airtime and messages.
            body.get("currency_code", "GHS"),
            frozenset({operation_of(body)}),
            body.get("account_number", body.get("customer_number", "")),
        )

    def asked(self, request: HttpRequest) -> str | None:
        if request.path != "/get_transaction_status":
            return None
        return str(json.loads(request.body)["transaction_id"])

    def taken(self, request: HttpRequest, *, repeated: bool) -> HttpReply:
        if repeated:
            return reply(200, "219")
        if request.path == "/sms/send":
            return reply(200, "370", response_data={"processing_id": "SMS1"})
        if json.loads(request.body)["nw"] == "CRD":
            return reply(200, "000", redirect_url="https://pay.example/1")
        return reply(202, "202")

    def refused(self, request: HttpRequest) -> HttpReply:
        return reply(200, "019")

    def status(self, decided: Decided | None) -> HttpReply:
        if decided is None:
            return reply(404, "404")
        record = {
            "network_transaction_id": "12345678901",
            "transaction_id": decided.echo.reference,
            "status": STATUSES[decided.outcome],
            "status_desc": "said",
            "message": "said",
        }
        sent = {name: value for name, value in record.items() if value is not None}
        return reply(200, "000", response_data=sent)

    def unknown_word(self, request: HttpRequest) -> HttpReply:
        if self.asked(request) is not None:
            return reply(200, "000", response_data={"transaction_id": "R1", "status": "009"})
        return reply(200, "777")

    def token(self, request: HttpRequest, number: int) -> HttpReply | None:
        # There are no tokens; the health check is a query without its fields.
        return reply(400, "400") if request.body == b"{}" else None

    def has_token(self, request: HttpRequest, oldest: int) -> bool:
        return True

    def unauthorized(self) -> HttpReply:
        return reply(401, "100")

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        code, amount = STATUSES[decided.outcome], decided.echo.amount
        fields = {
            "trans_ref": decided.echo.reference,
            "trans_id": "12345678901",
            "trans_status": f"{code}/SAID",
            "message": "said",
            "amount": None if amount is None else format(amount, "f"),
        }
        sent = {name: value for name, value in fields.items() if value is not None}
        body = json.dumps(sent, indent=1).encode()
        given = signature_of(signature, sign, SECRET, body, compact(sent).encode())
        return RawNotification(
            network="testnet",
            method="POST",
            path=decided.request.attempt_id,
            query="",
            headers={SIGNATURE_HEADER.lower(): given} if given else {},
            body=body,
            received_at=NOON,
        )
