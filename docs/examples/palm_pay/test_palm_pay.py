"""Palm Pay keeps the contract of sandbox_sim for networks."""

import json
from datetime import UTC, datetime
from decimal import Decimal

from palm_pay import PalmPay, PalmPaySettings, signature

from sandbox_sim.operations import Operation
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract import (
    HttpReply,
    NetworkContract,
    Signature,
    Submitted,
    http_peer,
)

API_KEY, WEBHOOK_KEY = "canary-api-key", "canary-webhook-key"
OPERATIONS = {"debit": Operation.COLLECT, "credit": Operation.PAYOUT}
STATES = {Outcome.PENDING: "NEW", Outcome.SUCCEEDED: "PAID", Outcome.FAILED: "FAILED"}


def reply(status, **document):
    return HttpReply(status, json.dumps(document).encode())


class PalmPayDialect:
    """How Palm Pay speaks, from its own side."""

    secrets = (API_KEY, WEBHOOK_KEY)
    large_operation = Operation.COLLECT
    needs_tokens = False

    def network(self, base_url, environment):
        settings = PalmPaySettings(base_url=base_url, api_key=API_KEY, webhook_key=WEBHOOK_KEY)
        return PalmPay(settings, environment, first_pause_s=0.001)  # or the suite takes 4 s more

    def submitted(self, request):
        if (request.method, request.path) != ("POST", "/payments"):
            return None
        body = json.loads(request.body)
        return Submitted(
            body["reference"],
            Decimal(body["amount"]),
            body["currency"],
            frozenset({OPERATIONS[body["kind"]]}),
            body["number"],
        )

    def asked(self, request):
        if request.method != "GET" or not request.path.startswith("/payments/"):
            return None
        return request.path.removeprefix("/payments/").replace("%20", " ")

    def taken(self, request, *, repeated):
        return reply(201, id="pp-1", state="NEW")

    def refused(self, request):
        return reply(422, error="INSUFFICIENT_FUNDS")

    def status(self, decided):
        if decided is None:
            return reply(404, error="NO_SUCH_PAYMENT")
        return reply(200, **self.document(decided))

    def unknown_word(self, request):
        return reply(200 if self.asked(request) else 201, id="pp-1", state="MAYBE")

    def token(self, request, number):
        return None

    def has_token(self, request, oldest):
        return True

    def unauthorized(self):
        return reply(401, error="UNAUTHORIZED")

    def notification(self, decided, kind):
        body = json.dumps(self.document(decided), indent=1).encode()
        given = {
            Signature.GOOD: signature(body, WEBHOOK_KEY),
            Signature.ABSENT: "",
            Signature.WRONG: "0" * 64,
            Signature.OTHER_KEY: signature(body, "another key"),
            Signature.REWRITTEN: signature(
                json.dumps(self.document(decided)).encode(), WEBHOOK_KEY
            ),
        }[kind]
        headers = {"x-palm-signature": given} if given else {}
        path, now = decided.request.attempt_id, datetime(2026, 1, 1, tzinfo=UTC)
        return RawNotification("palm", "POST", path, "", headers, body, now)

    def document(self, decided):
        said = decided.echo
        fields = {
            "id": "pp-1",
            "reference": said.reference,
            "amount": None if said.amount is None else format(said.amount, "f"),
            "currency": said.currency,
            "state": STATES[decided.outcome],
        }
        return {name: value for name, value in fields.items() if value is not None}


class TestPalmPay(NetworkContract):
    def peer(self):
        return http_peer(PalmPayDialect())
