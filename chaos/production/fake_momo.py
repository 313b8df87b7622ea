"""A fake MTN MoMo server: tokens, requests to pay, transfers, status and callbacks.

`FakeMomo.answer` makes the reply to one request; `serving` puts it behind a real socket. What it
checks and answers is what MTN documents: `test_fake_momo.py` proves it with a public client. The
tests use it too, and `python -m tests.networks.fake_momo` runs it alone.
"""

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import aiohttp
from aiohttp import web

from sandbox_sim.testing.network_contract import HttpReply, HttpRequest
from tests.kit.http_servers import listening

ENVIRONMENT: Final = "mtnghana"
SANDBOX: Final = "sandbox"
# The only currency that an environment takes.
CURRENCIES: Final = {ENVIRONMENT: "GHS", SANDBOX: "EUR"}
MOST_MESSAGE_CHARACTERS: Final = 160
SOON_S: Final = 15
NO_SUCH_PATH: Final = HttpReply(404, b'{"statusCode": 404, "message": "Resource not found"}')


@dataclass(frozen=True)
class Product:
    """A product of the API, with the only account that may use it.

    takes: the last part of the path of its payments.
    party: the member of the body with the phone number.
    """

    name: str
    takes: str
    party: str

    @property
    def subscription_key(self) -> str:
        return f"canary-{self.name}-subscription-key"

    @property
    def api_user(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, self.name))

    @property
    def api_key(self) -> str:
        return f"canary-{self.name}-api-key"

    @property
    def basic(self) -> str:
        return base64.b64encode(f"{self.api_user}:{self.api_key}".encode()).decode()

    @property
    def settings(self) -> dict[str, str]:
        """The settings of an adapter that uses this account."""
        return {
            f"{self.name}_subscription_key": self.subscription_key,
            f"{self.name}_api_user": self.api_user,
            f"{self.name}_api_key": self.api_key,
        }


COLLECTION: Final = Product("collection", "requesttopay", "payer")
DISBURSEMENT: Final = Product("disbursement", "transfer", "payee")
PRODUCTS: Final = {each.name: each for each in (COLLECTION, DISBURSEMENT)}
SETTINGS: Final[Mapping[str, object]] = {
    "target_environment": ENVIRONMENT,
    "currency": "GHS",
    **COLLECTION.settings,
    **DISBURSEMENT.settings,
}


@dataclass
class Payment:
    """A request to pay or a transfer that was taken."""

    product: Product
    reference: str
    body: dict[str, Any]
    callback_url: str
    financial_id: str
    status: str = "PENDING"
    reason: object = None
    # Members that the answers have in place of those of the request; None leaves one out.
    changed: Mapping[str, object] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """What a status query and a callback say."""
        said = {
            "externalId": self.body["externalId"],
            "amount": self.body["amount"],
            "currency": self.body["currency"],
            self.product.party: self.body[self.product.party],
            "payerMessage": self.body["payerMessage"],
            "payeeNote": self.body["payeeNote"],
            "status": self.status,
            "reason": self.reason,
            "financialTransactionId": self.financial_id if self.status == "SUCCESSFUL" else None,
            **self.changed,
        }
        return {name: value for name, value in said.items() if value is not None}


@dataclass
class FakeMomo:
    """The state of the server.

    environment: the only one that it serves, which decides what currency it takes.
    expires_in: of the tokens that it gives out, in seconds.
    uuid_only: whether a reference must be a UUID of version 4, as MTN requires.
    token_needs_environment: whether a request for a token must have X-Target-Environment.
    callback_host: the only host that callbacks may go to; empty for any.
    gives_tokens: whether it gives out tokens at all.
    """

    environment: str = ENVIRONMENT
    expires_in: int = 3600
    uuid_only: bool = True
    token_needs_environment: bool = False
    callback_host: str = ""
    gives_tokens: bool = True
    requests: list[HttpRequest] = field(default_factory=list)
    payments: dict[str, Payment] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    expired: int = 0

    def expire_tokens(self) -> None:
        """Take no token that was given out so far."""
        self.expired = len(self.tokens)

    def decide(self, reference: str, status: str, reason: object = None, **changed: object) -> None:
        """Say this of a payment from now on."""
        payment = self.payments[reference]
        payment.status, payment.reason, payment.changed = status, reason, changed

    def came(self, purpose: str) -> list[HttpRequest]:
        """The requests whose path has this part: `token`, `requesttopay` or `transfer`."""
        return [each for each in self.requests if purpose in each.path.split("/")]

    def answer(self, request: HttpRequest) -> HttpReply:
        """The reply to a request."""
        self.requests.append(request)
        _, name, *rest = unquote(request.path).split("/")
        product = PRODUCTS.get(name)
        if product is None:
            return NO_SUCH_PATH
        if request.headers.get("ocp-apim-subscription-key") != product.subscription_key:
            return gateway_error(401, "Access denied due to invalid subscription key.")
        match request.method, rest:
            case "POST", ["token", ""]:
                return self._token(product, request)
            case "POST", ["v1_0", product.takes]:
                return self._objection(product, request) or self._take(product, request)
            case "GET", ["v1_0", product.takes, reference]:
                return self._objection(product, request) or self._status(product, reference)
        return NO_SUCH_PATH

    def is_authorized(self, request: HttpRequest) -> bool:
        """Whether a request has a token that is still good."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        good = self.tokens[self.expired :]
        return token in good and request.path.split("/")[1] in token

    def _token(self, product: Product, request: HttpRequest) -> HttpReply:
        if not self.gives_tokens:
            return reply(500)
        if request.headers.get("authorization") != f"Basic {product.basic}":
            return reply(401, error="login_failed")
        if request.body or request.headers.get("content-length") != "0":
            return reply(400, error="unsupported_body")
        given = request.headers.get("x-target-environment", "")
        if given != self.environment and (given or self.token_needs_environment):
            return _forbidden_environment()
        self.tokens.append(f"canary-token-{len(self.tokens) + 1}-{product.name}")
        return reply(
            200,
            access_token=self.tokens[-1],
            token_type="access_token",  # noqa: S106 -- the word of OAuth
            expires_in=self.expires_in,
        )

    def _objection(self, product: Product, request: HttpRequest) -> HttpReply | None:
        if not self.is_authorized(request):
            return gateway_error(401, "Unauthorized")
        if request.headers.get("x-target-environment") != self.environment:
            return _forbidden_environment()
        return None

    def _take(self, product: Product, request: HttpRequest) -> HttpReply:
        reference = request.headers.get("x-reference-id", "")
        if not _is_uuid4(reference) and self.uuid_only:
            return reply(400)
        if reference in self.payments:
            return reply(
                409,
                code="RESOURCE_ALREADY_EXIST",
                message="Duplicated reference id. Creation of resource failed.",
            )
        body = json.loads(request.body)
        if not _is_well_formed(body, product):
            return reply(400)
        if body["currency"] != CURRENCIES[self.environment]:
            return reply(500, code="INVALID_CURRENCY", message="Currency not supported.")
        callback = request.headers.get("x-callback-url", "")
        if callback and self.callback_host not in {"", urlsplit(callback).hostname}:
            return reply(
                500,
                code="INVALID_CALLBACK_URL_HOST",
                message="Callback URL with different host name then configured for API User.",
            )
        financial_id = str(1_000_000 + len(self.payments))
        self.payments[reference] = Payment(product, reference, body, callback, financial_id)
        return HttpReply(202, b"", ())

    def _status(self, product: Product, reference: str) -> HttpReply:
        payment = self.payments.get(reference)
        if payment is None or payment.product is not product:
            return reply(
                404, code="RESOURCE_NOT_FOUND", message="Requested resource was not found."
            )
        return reply(200, **payment.document())


def reply(status: int, /, **document: object) -> HttpReply:
    """An answer of MTN; without a body where there is no member."""
    return HttpReply(status, json.dumps(document).encode() if document else b"")


def gateway_error(status: int, message: str) -> HttpReply:
    """An answer of the API gateway in front of MTN."""
    return reply(status, statusCode=status, message=message)


def _forbidden_environment() -> HttpReply:
    return reply(
        500,
        code="NOT_ALLOWED_TARGET_ENVIRONMENT",
        message="Access to target environment is forbidden.",
    )


def _is_uuid4(text: str) -> bool:
    try:
        return str(uuid.UUID(text, version=4)) == text
    except ValueError:
        return False


def _is_well_formed(body: Any, product: Product) -> bool:
    try:
        amount = Decimal(body["amount"])
        party = body[product.party]
        texts = [body["externalId"], body["payerMessage"], body["payeeNote"], body["currency"]]
    except (InvalidOperation, KeyError, TypeError):
        return False
    return (
        isinstance(body["amount"], str)
        and amount > 0
        and party.keys() == {"partyIdType", "partyId"}
        and party["partyIdType"] == "MSISDN"
        and party["partyId"].isdigit()
        and all(isinstance(text, str) for text in texts)
        and max(map(len, texts)) <= MOST_MESSAGE_CHARACTERS
    )


async def _at_once(_request: HttpRequest, answer: HttpReply) -> HttpReply:
    """Answer without delay."""
    return answer


class MomoServer:
    """The fake behind a real socket.

    before_answer: awaited when a request was handled; what it returns goes out as the answer.
    """

    def __init__(
        self,
        fake: FakeMomo,
        before_answer: Callable[[HttpRequest, HttpReply], Awaitable[HttpReply]] = _at_once,
    ) -> None:
        self.fake = fake
        self._before_answer = before_answer
        self.url = ""
        self._came = asyncio.Condition()
        self._held = ""
        self._released = asyncio.Event()
        self._waiting: list[web.Request] = []
        self._lost = ""

    def lose(self, purpose: str) -> None:
        """Close the connection of the next POST with this part in its path, and do nothing."""
        self._lost = purpose

    def hold(self, purpose: str) -> None:
        """Handle a POST with this part in its path, and do not answer it until `release`."""
        self._held = purpose
        self._released.clear()

    def release(self) -> None:
        """Answer again."""
        self._held = ""
        self._released.set()

    def drop(self) -> None:
        """Close the connections of the requests that are held, without an answer."""
        for request in self._waiting:
            _abort(request)
        self.release()

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until this is true after a request.

        Raises:
            TimeoutError: it is not, for a time that only a fault takes.
        """
        async with asyncio.timeout(SOON_S), self._came:
            await self._came.wait_for(happened)

    async def notify(self, reference: str, method: str = "PUT", url: str = "") -> int:
        """Send the callback of a payment once; returns the HTTP status of the answer."""
        payment = self.fake.payments[reference]
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                method, url or payment.callback_url, json=payment.document()
            ) as response,
        ):
            return response.status

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request."""
        if self._lost and request.method == "POST" and self._lost in request.path.split("/"):
            self._lost = ""
            _abort(request)
            return web.Response()
        came = HttpRequest(
            request.method,
            request.raw_path,
            {name.lower(): value for name, value in request.headers.items()},
            await request.read(),
        )
        answer = self.fake.answer(came)
        async with self._came:
            self._came.notify_all()
        if self._held and came.method == "POST" and self._held in came.path.split("/"):
            self._waiting.append(request)
            await self._released.wait()
        answer = await self._before_answer(came, answer)
        return web.Response(status=answer.status, body=answer.body, headers=dict(answer.headers))


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


@asynccontextmanager
async def serving(
    fake: FakeMomo | None = None,
    port: int = 0,
    before_answer: Callable[[HttpRequest, HttpReply], Awaitable[HttpReply]] = _at_once,
) -> AsyncIterator[MomoServer]:
    """A fake MoMo server on 127.0.0.1, on a free port unless one is given."""
    server = MomoServer(FakeMomo() if fake is None else fake, before_answer)
    async with listening(web.route("*", "/{tail:.*}", server.handle), port=port) as server.url:
        yield server
