"""The fake MoMo server as the other side of the contract suite, which breaks its exchanges."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, Final

from chaos.production.fake_momo import COLLECTION, DISBURSEMENT, SETTINGS, FakeMomo, Payment, reply
from sandbox_sim.networks.mtn_momo.adapter import MtnMomo
from sandbox_sim.networks.mtn_momo.settings import MtnMomoSettings
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import Network, NetworkEnvironment
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.testing.network_contract import (
    Address,
    Decided,
    Fault,
    HttpReply,
    HttpRequest,
    Peer,
    Signature,
    Submitted,
)
from sandbox_sim.testing.network_contract.http_peer import (
    STRAY_PATH,
    FaultServer,
    closed_address,
    server_without_tls,
)
from sandbox_sim.values import peer_input
from tests.records.samples import NOON

STATES: Final = {
    Outcome.PENDING: "PENDING",
    Outcome.SUCCEEDED: "SUCCESSFUL",
    Outcome.FAILED: "FAILED",
}

MONEY_IN: Final = frozenset({Operation.COLLECT, Operation.DEPOSIT})

SECRETS: Final = tuple(
    secret
    for product in (COLLECTION, DISBURSEMENT)
    for secret in (product.subscription_key, product.api_key, product.basic)
)


def changed_by(echo: Echo, decided: Decided) -> Mapping[str, object]:
    """The members of MTN's answer that repeat the payment, with the values of the proof."""
    same = echo.reference == decided.request.reference
    return {
        "externalId": decided.request.transaction_id if same else echo.reference,
        "amount": None if echo.amount is None else format(echo.amount, "f"),
        "currency": echo.currency,
    }


class MomoPeer:
    """A `Peer` made of the fake, behind the server that breaks exchanges."""

    faults = frozenset(Fault)
    addresses = frozenset(Address)
    secrets = (*SECRETS, "canary-token")
    large_operation = Operation.COLLECT

    def __init__(self, tls_address: str) -> None:
        # The references of the suite are not UUIDs; those of the gateway are.
        self.fake = FakeMomo(uuid_only=False)
        self.server = FaultServer(self._note, self._answer, self._unknown_word)
        self._refused: set[str] = set()
        self.strays = 0
        self._tls_address = tls_address
        self._submits: list[Submitted] = []

    @property
    def submits(self) -> Sequence[Submitted]:
        return self._submits

    @property
    def connections(self) -> int:
        return self.server.connections

    @property
    def silences(self) -> int:
        return self.server.silences

    @property
    def tokens(self) -> int:
        return len(self.fake.tokens)

    def expire_tokens(self) -> None:
        self.fake.expire_tokens()

    def network(self, environment: NetworkEnvironment, address: Address) -> Network:
        url = {
            Address.SERVING: self.server.url,
            Address.CLOSED: closed_address(),
            Address.BROKEN_TLS: self._tls_address,
        }[address]
        settings = MtnMomoSettings.model_validate({"base_url": url, **SETTINGS})
        return MtnMomo(settings, environment, first_pause_s=0.001)

    def misbehave(self, fault: Fault) -> None:
        self.server.misbehave(fault)

    def decide(self, decided: Decided) -> None:
        changed = changed_by(decided.echo, decided)
        self.fake.decide(decided.request.reference, STATES[decided.outcome], **changed)

    def decide_at_once(self, decided: Decided) -> bool:
        """Refuse a request; MTN decides nothing else in its answer."""
        if decided.outcome is not Outcome.REFUSED:
            return False
        self._refused.add(decided.request.reference)
        return True

    def notification(self, decided: Decided, signature: Signature) -> RawNotification:
        """The callback of the decision. MTN signs nothing, so each signature gives the same."""
        request = decided.request
        sent: dict[str, Any] = dict.fromkeys(("externalId", "amount", "currency"), "")
        body = {**sent, "payerMessage": "", "payeeNote": "", "payer": {"partyId": "233"}}
        payment = Payment(COLLECTION, request.reference, body, "", "1000000")
        payment.status = STATES[decided.outcome]
        payment.changed = changed_by(decided.echo, decided)
        raw = reply(200, **payment.document()).body
        return RawNotification("testnet", "PUT", request.attempt_id, "", {}, raw, NOON)

    def _note(self, request: HttpRequest) -> None:
        self.strays += request.path == STRAY_PATH
        if request.method == "POST" and self.fake.is_authorized(request):
            body = peer_input.read_json(request.body)
            is_payout = request.path.endswith(DISBURSEMENT.takes)
            party = body[(DISBURSEMENT if is_payout else COLLECTION).party]
            self._submits.append(
                Submitted(
                    request.headers["x-reference-id"],
                    Decimal(body["amount"]),
                    body["currency"],
                    frozenset({Operation.PAYOUT}) if is_payout else MONEY_IN,
                    party["partyId"],
                )
            )

    def _answer(self, request: HttpRequest) -> HttpReply:
        refused = request.headers.get("x-reference-id") in self._refused
        return reply(400) if refused else self.fake.answer(request)

    def _unknown_word(self, request: HttpRequest) -> HttpReply:
        return reply(200, status="HELD") if request.method == "GET" else reply(200, code="HELD")


@asynccontextmanager
async def momo_peer() -> AsyncIterator[Peer]:
    """The fake MoMo server, running inside of the context."""
    async with server_without_tls() as tls_address:
        peer = MomoPeer(tls_address)
        async with peer.server.running():
            yield peer
