"""The adapter for the public MTN MoMo API. Source: D39.

- A collection or deposit is a request to pay (product collection), a payout a transfer (product
  disbursement). Each product has credentials and tokens of its own.
- The reference is `X-Reference-Id`, by which MTN recognises a repeat: it answers 409 and keeps one
  payment. So a request with an unknown outcome may be sent again with the same reference.
- A 401 means that MTN did not process the request, so it is sent once more with a new token.
- Callbacks are unsigned and sent once, so they are hints.
- MTN's own sandbox accepts only one currency. Only there, payments are sent in that one (D41).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote

from sandbox_sim.networks.http_client import (
    HttpAnswer,
    NetworkHttpClient,
    NoAnswer,
    retry_after,
    submitted,
)
from sandbox_sim.networks.mtn_momo import messages
from sandbox_sim.networks.mtn_momo.messages import is_about_one_request
from sandbox_sim.networks.mtn_momo.settings import (
    COLLECTION,
    DISBURSEMENT,
    SANDBOX_CURRENCY,
    MtnMomoSettings,
    ProductCredentials,
)
from sandbox_sim.networks.mtn_momo.tokens import NoToken, Tokens
from sandbox_sim.networks.settings import adapter_factory
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import (
    Capabilities,
    Health,
    NetworkEnvironment,
    NetworkEvents,
    Notification,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
    UnreadableNotification,
)
from sandbox_sim.records.exchanges import NotificationTrust, RawNotification, Scrubber
from sandbox_sim.records.reports import Field, Outcome, Source
from sandbox_sim.values.peer_input import document_of
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY

_PRODUCTS: Final[Mapping[Operation, str]] = {
    Operation.COLLECT: COLLECTION,
    Operation.DEPOSIT: COLLECTION,
    Operation.PAYOUT: DISBURSEMENT,
}

# The last part of the path of payments, and the member of their body that has the number.
_PATHS: Final = {COLLECTION: ("requesttopay", "payer"), DISBURSEMENT: ("transfer", "payee")}

_ALWAYS_SENT: Final = frozenset(
    (Source.STATUS, field) for field in (Field.REFERENCE, Field.AMOUNT, Field.CURRENCY)
)


@dataclass(frozen=True, slots=True)
class _Product:
    """One product of the API.

    url: where its payments go.
    party: the member of a payment that has the phone number.
    headers: those that every request has, except for the token.
    """

    name: str
    url: str
    party: str
    headers: Mapping[str, str]
    tokens: Tokens


class MtnMomo:
    """The adapter for the accounts of one operator in one country."""

    def __init__(
        self, settings: MtnMomoSettings, environment: NetworkEnvironment, **options: Any
    ) -> None:
        """Make the adapter, not yet open; `options` go to `NetworkHttpClient`."""
        accounts = settings.accounts
        self._settings = settings
        self._clock = environment.clock
        self._longest_pause = environment.longest_pause
        self._timeout_s = environment.timeout.total_seconds()
        self.scrubber = Scrubber(
            secret
            for each in accounts.values()
            for secret in (each.subscription_key, each.api_key, each.basic)
        )
        self._http = NetworkHttpClient(
            environment.name, environment.clock, self.scrubber, environment.timeout, **options
        )
        in_sandbox = settings.is_sandbox
        self._products = {name: self._make_product(name, each) for name, each in accounts.items()}
        self.capabilities = Capabilities(
            operations=frozenset(
                operation for operation, name in _PRODUCTS.items() if name in accounts
            ),
            currencies=frozenset({SANDBOX_CURRENCY if in_sandbox else settings.currency}),
            nws=frozenset({"MTN"}),
            repeats_within=timedelta(days=1),
            trust=NotificationTrust.HINT,
            always_sent=_ALWAYS_SENT,
            sent_as={DEFAULT_CURRENCY: SANDBOX_CURRENCY} if in_sandbox else {},
        )

    async def open(self, events: NetworkEvents) -> None:
        """Open the HTTP client; connects to nothing."""
        await self._http.open(events)

    async def close(self) -> None:
        """Close every connection and cancel the renewal of tokens."""
        for product in self._products.values():
            await product.tokens.close()
        await self._http.close()

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Send a payment; a second time only after a 401, which means that MTN did not take it.

        The token and the payment together take at most `timeout_s`.
        """
        objection = self.capabilities.objection(request)
        if objection is not None:
            return SubmitResult(Outcome.NOT_SENT, reason=objection)
        product = self._products[_PRODUCTS[request.operation]]
        ends_at = self._clock.monotonic() + self._timeout_s
        token = await product.tokens.get(self._timeout_s)
        if isinstance(token, NoToken):
            reason, fault = token.problem, token.network_fault
            return SubmitResult(Outcome.NOT_SENT, reason=reason, network_fault=fault)
        answer = await self._send(product, request, token, ends_at)
        if isinstance(answer, HttpAnswer) and answer.status == 401:
            renewed = await product.tokens.get(self._remaining(ends_at), refused=token)
            if isinstance(renewed, NoToken):
                refused = self._submit_result(answer)
                return replace(refused, reason=f"{refused.reason}; {renewed.problem}")
            answer = await self._send(product, request, renewed, ends_at)
        result = submitted(answer, self._submit_result)
        if isinstance(answer, HttpAnswer) and is_about_one_request(document_of(answer.body)):
            # MTN sends HTTP 500 for a payer without an account; the circuit breaker ignores it.
            return replace(result, network_fault=False)
        return result

    async def status(self, query: StatusQuery) -> StatusResult:
        """Ask for the status of a payment by its reference."""
        product = self._products.get(_PRODUCTS.get(query.operation, ""))
        if product is None:
            reason = f"there are no credentials for the operation {query.operation}"
            return StatusResult(Outcome.UNKNOWN, reason=reason)
        answer = await self._ask(product, query, await product.tokens.get(self._timeout_s))
        if isinstance(answer, HttpAnswer):
            read = messages.status_result(
                answer.status, answer.body, query.reference, query.transaction_id
            )
            pause = retry_after(answer.headers, self._clock, self._longest_pause)
            return replace(read, reason=self.scrubber.text(read.reason), retry_after=pause)
        return StatusResult(Outcome.UNKNOWN, reason=answer.problem)

    def verify(self, raw: RawNotification) -> bool:
        """False: MTN does not sign callbacks."""
        return False

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """Read a callback. The address that it came to names the attempt."""
        document = document_of(raw.body)
        if not isinstance(document.get("status"), str):
            raise UnreadableNotification("the callback is not a JSON object with a status")
        outcome = messages.outcome_of(document)
        return [
            Notification(
                outcome,
                attempt_id=raw.path.strip("/"),
                network_id=messages.network_id(document),
                echo=messages.echo(document),
                reason=self.scrubber.text(messages.failure(document, outcome)),
            )
        ]

    async def health(self) -> Health:
        """Whether MTN issues a new token for each product that has credentials."""
        problems = []
        for name, product in self._products.items():
            token = await product.tokens.renew(self._timeout_s)
            if isinstance(token, NoToken):
                problems.append(f"{name}: {token.problem}")
        if problems:
            return Health(ok=False, detail="; ".join(problems))
        return Health(ok=True, detail=f"gives tokens for {' and '.join(self._products)}")

    def _submit_result(self, answer: HttpAnswer) -> SubmitResult:
        result = messages.submit_result(answer.status, answer.body)
        return replace(result, reason=self.scrubber.text(result.reason))

    async def _send(
        self, product: _Product, request: SubmitRequest, token: str, ends_at: float
    ) -> HttpAnswer | NoAnswer:
        """Send a payment once, in the time that is left."""
        headers = {
            **product.headers,
            "Authorization": f"Bearer {token}",
            "X-Reference-Id": request.reference,
            "Content-Type": "application/json",
        }
        if self._settings.callback and request.notification_url:
            headers["X-Callback-Url"] = request.notification_url
        return await self._http.submit(
            "POST",
            product.url,
            headers,
            messages.payment(request, product.party),
            attempt_id=request.attempt_id,
            within_s=self._remaining(ends_at),
        )

    async def _ask(
        self, product: _Product, query: StatusQuery, token: str | NoToken, *, may_renew: bool = True
    ) -> HttpAnswer | NoToken | NoAnswer:
        """Ask for the status of a payment; after a 401 once more with a new token."""
        if isinstance(token, NoToken):
            return token
        answer = await self._http.ask(
            "status",
            "GET",
            f"{product.url}/{quote(query.reference, safe='')}",
            {**product.headers, "Authorization": f"Bearer {token}"},
            attempt_id=query.attempt_id,
        )
        if may_renew and isinstance(answer, HttpAnswer) and answer.status == 401:
            renewed = await product.tokens.get(self._timeout_s, refused=token)
            return await self._ask(product, query, renewed, may_renew=False)
        return answer

    def _remaining(self, ends_at: float) -> float:
        """How much of the time is left, in seconds of real time."""
        return max(ends_at - self._clock.monotonic(), 0.0)

    def _make_product(self, name: str, account: ProductCredentials) -> _Product:
        path, party = _PATHS[name]
        url = f"{self._settings.base_url}/{name}"
        headers = {
            "Ocp-Apim-Subscription-Key": account.subscription_key,
            "X-Target-Environment": self._settings.target_environment,
        }
        asking = {**headers, "Authorization": f"Basic {account.basic}"}
        tokens = Tokens(self._http, f"{url}/token/", asking, self._clock, self.scrubber)
        return _Product(name, f"{url}/v1_0/{path}", party, headers, tokens)


# The factory of the entry point `mtn_momo`.
mtn_momo = adapter_factory(MtnMomoSettings, MtnMomo)
