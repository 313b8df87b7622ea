"""How the API of the example in docs/networks/http_json.md speaks, for the contract suite."""

import hashlib
import hmac
import json
from urllib.parse import unquote

from sandbox_sim.networks.http_json.adapter import HttpJson
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import Network, NetworkEnvironment
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract import (
    Decided,
    HttpReply,
    HttpRequest,
    Signature,
    Submitted,
)
from sandbox_sim.values import peer_input
from tests.networks.fakes import signature_of
from tests.networks.http_json.dialects import WithoutTokens, compacted, notification, present
from tests.networks.http_json.fake_networks import adapter, documented, reply

KEY = "canary-key-of-acme"
PATH = "/payments"

STATES = {
    Outcome.PENDING: "NEW",
    Outcome.SUCCEEDED: "PAID",
    Outcome.FAILED: "DECLINED",
    Outcome.REVERSED: "CHARGED_BACK",
}


class AcmeDialect(WithoutTokens):
    """An API that takes a repeat for the same payment, and signs its webhooks."""

    secrets = (KEY,)

    def __init__(self, made: type[HttpJson] = HttpJson) -> None:
        self._made = made

    def network(self, base_url: str, environment: NetworkEnvironment) -> Network:
        settings = documented("acme", page="http_json")
        return adapter(settings, environment, made=self._made, base_url=base_url, auth_secret=KEY)

    def submitted(self, request: HttpRequest) -> Submitted | None:
        if (request.method, request.path) != ("POST", PATH):
            return None
        assert request.headers["authorization"] == f"Bearer {KEY}"
        body = peer_input.read_json(request.body)
        amount = body["amount"]
        return Submitted(
            body["id"],
            amount["value"] / 100,
            amount["currency"],
            frozenset({Operation.COLLECT}),
            body["payer"]["number"],
        )

    def asked(self, request: HttpRequest) -> str | None:
        is_query = request.method == "GET" and request.path.startswith(PATH)
        return unquote(request.path.removeprefix(f"{PATH}/")) if is_query else None

    def taken(self, request: HttpRequest, *, repeated: bool) -> HttpReply:
        return reply((200, {"payment": {"state": "NEW", "id": json.loads(request.body)["id"]}}))

    def decided_at_once(self, request: HttpRequest, decided: Decided) -> HttpReply:
        return reply((200, self._document(decided)))

    def refused(self, request: HttpRequest) -> HttpReply:
        return reply((422, {"payment": {"state": "NO_SUCH_WALLET"}}))

    def status(self, decided: Decided | None) -> HttpReply:
        if decided is None:
            return reply((404, {"error": "there is no such payment"}))
        return reply((200, self._document(decided)))

    def unknown_word(self, request: HttpRequest) -> HttpReply:
        return reply((200, {"payment": {"state": "HELD"}}))

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        body = json.dumps(self._document(decided), indent=1).encode()
        given = signature_of(signature, signed, KEY, body, compacted(body))
        return notification(decided.request.attempt_id, {"X-Acme-Signature": given}, body)

    @staticmethod
    def _document(decided: Decided) -> dict[str, object]:
        echo = decided.echo
        minor = None if echo.amount is None else int(echo.amount * 100)
        amount = present(value=minor, currency=echo.currency)
        state = STATES[decided.outcome]
        return {"payment": present(state=state, id=echo.reference, amount=amount, number=7)}


def signed(body: bytes, key: str) -> str:
    """The signature of a webhook."""
    return hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
