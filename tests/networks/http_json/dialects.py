"""How Paystack and Hubtel speak: the fakes of docs/examples, for the contract suite."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import UUID

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
from tests.networks.http_json.fake_networks import adapter, documented, module, reply, reply_of
from tests.records.samples import NOON

paystack, hubtel = module("fake_paystack"), module("fake_hubtel")


# Both are one request to the customer.
MONEY_IN = frozenset({Operation.COLLECT, Operation.DEPOSIT})


class WithoutTokens:
    """What these APIs have in common."""

    large_operation = Operation.COLLECT
    needs_tokens = False

    def token(self, request: HttpRequest, number: int) -> HttpReply | None:
        return None

    def has_token(self, request: HttpRequest, oldest: int) -> bool:
        return True

    def unauthorized(self) -> HttpReply:
        return HttpReply(401, b"{}")


def notification(path: str, headers: Mapping[str, str], body: bytes) -> RawNotification:
    sent = {name.lower(): value for name, value in headers.items() if value}
    return RawNotification("testnet", "POST", path, "", sent, body, NOON)


def present(**members: object) -> dict[str, object]:
    """The members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


class PaystackDialect(WithoutTokens):
    """The fake Paystack."""

    secrets = (paystack.KEY,)
    statuses = {  # noqa: RUF012
        Outcome.PENDING: "ongoing",
        Outcome.SUCCEEDED: "success",
        Outcome.FAILED: "failed",
        Outcome.REVERSED: "reversed",
    }

    def __init__(self) -> None:
        self.fake = paystack.FakePaystack()

    def network(self, base_url: str, environment: NetworkEnvironment) -> Network:
        settings = documented("paystack")
        return adapter(settings, environment, base_url=base_url, auth_secret=paystack.KEY)

    def submitted(self, request: HttpRequest) -> Submitted | None:
        if request.path != "/charge":
            return None
        body = peer_input.read_json(request.body)
        party = body["mobile_money"]["phone"]
        return Submitted(body["reference"], body["amount"] / 100, body["currency"], MONEY_IN, party)

    def asked(self, request: HttpRequest) -> str | None:
        if not request.path.startswith(paystack.VERIFY):
            return None
        return unquote(request.path.removeprefix(paystack.VERIFY))

    def taken(self, request: HttpRequest, *, repeated: bool) -> HttpReply:
        return reply_of(self.fake, request)

    def refused(self, request: HttpRequest) -> HttpReply:
        return reply((400, {"status": False, "message": "Invalid provider"}))

    def decided_at_once(self, request: HttpRequest, decided: Decided) -> HttpReply:
        data = self._data(decided)
        return reply((200, {"status": True, "message": "Charge attempted", "data": data}))

    def status(self, decided: Decided | None) -> HttpReply:
        if decided is None:
            return reply((400, {"status": False, "message": "Transaction reference not found"}))
        data = self._data(decided)
        return reply((200, {"status": True, "message": "Verification successful", "data": data}))

    def unknown_word(self, request: HttpRequest) -> HttpReply:
        return reply((200, {"status": True, "message": "said", "data": {"status": "held"}}))

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        failed = decided.outcome is Outcome.FAILED
        event = "charge.failed" if failed else "charge.success"
        _, headers, body = self.fake.webhook(self._data(decided), event)
        (name,) = headers
        sign = paystack.signature
        given = signature_of(signature, sign, paystack.KEY, body, compacted(body))
        return notification("", {name: given}, body)

    def _data(self, decided: Decided) -> dict[str, object]:
        echo = decided.echo
        return present(
            id=59214,
            status=self.statuses[decided.outcome],
            reference=echo.reference,
            amount=None if echo.amount is None else int(echo.amount * 100),
            currency=echo.currency,
            gateway_response="said",
        )


class HubtelDialect(WithoutTokens):
    """The fake Hubtel."""

    secrets = (hubtel.API_KEY, hubtel.BASIC.removeprefix("Basic "))

    def __init__(self) -> None:
        # The suite has references with blanks in them.
        self.fake = hubtel.FakeHubtel(alphanumeric_only=False)

    def network(self, base_url: str, environment: NetworkEnvironment) -> Network:
        settings = documented("hubtel")
        return adapter(settings, environment, base_url=base_url, status_base_url=base_url)

    def submitted(self, request: HttpRequest) -> Submitted | None:
        if request.path != hubtel.RECEIVE:
            return None
        body = peer_input.read_json(request.body)
        assert isinstance(body["Amount"], Decimal)  # a number, not a text
        return Submitted(
            with_hyphens(body["ClientReference"]),
            body["Amount"],
            operations=MONEY_IN,  # of one currency, which is never named
            party=body["CustomerMsisdn"],
        )

    def asked(self, request: HttpRequest) -> str | None:
        url = urlsplit(request.path)
        if url.path != hubtel.STATUS:
            return None
        return with_hyphens(parse_qs(url.query)["clientReference"][0])

    def taken(self, request: HttpRequest, *, repeated: bool) -> HttpReply:
        return reply_of(self.fake, request)

    def refused(self, request: HttpRequest) -> HttpReply:
        return reply((400, {"Message": "Validation errors", "ResponseCode": "4000"}))

    def status(self, decided: Decided | None) -> HttpReply:
        if decided is None:
            return reply((404, {"message": "Not found", "data": None}))
        echo = decided.echo
        data = present(
            status="Paid" if decided.outcome is Outcome.SUCCEEDED else "Unpaid",
            transactionId="hubtel-1",
            clientReference=without_hyphens(echo.reference),
            currencyCode=echo.currency,
            amount=None if echo.amount is None else float(echo.amount),
        )
        return reply((200, {"message": "Successful", "responseCode": "0000", "data": data}))

    def unknown_word(self, request: HttpRequest) -> HttpReply:
        return reply((200, {"ResponseCode": "9999", "data": {"status": "Held"}}))

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        echo = decided.echo
        data = present(
            ClientReference=without_hyphens(echo.reference),
            Amount=None if echo.amount is None else float(echo.amount),
            TransactionId="hubtel-1",
        )
        code = "2001" if decided.outcome is Outcome.FAILED else "0000"
        body = json.dumps({"ResponseCode": code, "Message": "said", "Data": data}).encode()
        return notification(decided.request.attempt_id, {}, body)


def compacted(body: bytes) -> bytes:
    """The same document without spaces."""
    document: Any = json.loads(body)
    return json.dumps(document, separators=(",", ":")).encode()


def without_hyphens(reference: str | None) -> str | None:
    """A UUID as Hubtel takes it."""
    try:
        return None if reference is None else UUID(reference).hex
    except ValueError:
        return reference


def with_hyphens(reference: str) -> str:
    """The UUID that `without_hyphens` was given."""
    try:
        return str(UUID(reference))
    except ValueError:
        return reference
