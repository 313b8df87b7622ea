"""The client of the gateway: requests over HTTP, the meaning of their answers, and callbacks.

An answer has two levels. `response_code` says how the request was answered; the status of a payment
is a field inside `response_data`. Outer code 000 with status 002 is a payment that is not paid.

The signature is that of the bytes as they arrived, so it is checked before anything is parsed.
`ShopSettings` has the addresses of the shop and its account at the gateway.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NoReturn, Self

from aiohttp import ClientError, ClientSession, ClientTimeout
from yarl import URL

from sandbox_sim.demo.clock_and_ids import Clock
from sandbox_sim.demo.orders import Customer, Delivery, Operation, Order, Status, Transaction


@dataclass(frozen=True, slots=True)
class ShopSettings:
    """The settings of the shop.

    url: where browsers and the gateway reach the shop, without a slash at the end.
    gateway_url: where the shop reaches the gateway, without a slash at the end.
    payment_pages: the origins that the browser may be sent to for a card payment.
    """

    url: str
    gateway_url: str
    client_key: str
    secret_key: str
    service_id: int
    payment_pages: tuple[str, ...]
    # The dashboard of the gateway as browsers reach it, with a slash at the end; empty if there
    # is none, and then there is no screen with shop, phone and timeline either.
    dashboard: str = ""
    # Whether customers approve payments on the handset pages of the gateway.
    approval_on_handset: bool = False
    sender_id: str = "AdwoaShop"
    currency: str = "GHS"
    seed: int = 42
    # Whether the setting `magic_outcomes` of the gateway has the numbers of catalogue.py.
    magic_numbers: bool = False
    # Seconds of one request to the gateway.
    timeout_s: float = 10
    # The first status query is sent this long after the payment; each further one waits twice as
    # long as the previous one, at most `longest_query_interval_s`. Both in seconds.
    first_query_after_s: float = 10
    longest_query_interval_s: float = 300
    # Seconds between two checks whether a status query is due.
    poll_interval_s: float = 1
    # A request without an answer may still arrive within this time, in seconds.
    arrives_within_s: float = 30

    @property
    def callback_url(self) -> str:
        """Where the gateway sends callbacks."""
        return self.url + CALLBACK_PATH


CALLBACK_PATH = "/callbacks/payments"


# The gateway asks clients to back off exponentially. Seconds before the second try, the third …
_RETRY_DELAYS_S: Final = (0.5, 1.0, 2.0)

_LONGEST_DELAY_S: Final = 5.0

# Codes with which no money moves. After any other code, the outcome is not known.
_REFUSALS: Final = frozenset({"015", "016", "019", "100", "400", "401", "402", "403", "404", "429"})

_NOT_FOUND: Final = frozenset({"027", "404"})

_SERVER_ERROR: Final = 500


class Unanswered(Exception):
    """There was no readable answer: the request may have arrived, or not."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The gateway accepted the payment; it is pending. payment_page: where the customer pays."""

    payment_page: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The gateway refused the payment, and no money moves."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class StatusFound:
    """The status of a transaction."""

    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class NoSuchTransaction:
    """The gateway does not know the transaction: it never arrived, or its record has expired."""


class GatewayClient:
    """Sends the requests of the shop. Use it in `async with`."""

    def __init__(self, settings: ShopSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._session: ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the connections."""
        pair = f"{self._settings.client_key}:{self._settings.secret_key}"
        headers = {
            "Authorization": "Basic " + base64.b64encode(pair.encode()).decode(),
            "User-Agent": "adwoa-shop/1",  # the gateway refuses requests without one
        }
        self._session = ClientSession(
            headers=headers,
            timeout=ClientTimeout(total=self._settings.timeout_s),
            json_serialize=lambda body: json.dumps(body, default=_json_number),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def pay(self, order: Order, transaction: Transaction) -> Accepted | Refused:
        """Send the payment of an order. Raises `Unanswered`."""
        common = {**self._common_fields(order, transaction), "trans_type": "CTM"}
        if transaction.operation is Operation.CARD:
            body = {**common, **self._card_fields(order)}
        else:
            body = {**common, **_wallet_fields(order.customer)}
        return _parse_outcome(*await self._post("/make_payment", body))

    async def deliver(
        self, order: Order, transaction: Transaction, delivery: Delivery
    ) -> Accepted | Refused:
        """Send airtime or pay a bill. Raises `Unanswered`."""
        common = {**self._common_fields(order, transaction), "nw": delivery.nw}
        if transaction.operation is Operation.AIRTIME:
            body = {**common, "trans_type": "ATP", "customer_number": delivery.account}
            return _parse_outcome(*await self._post("/send_airtime", body))
        body = {**common, "trans_type": "BLP", "account_number": delivery.account}
        return _parse_outcome(*await self._post("/pay_bill", body))

    async def status(self, transaction_id: str) -> StatusFound | NoSuchTransaction:
        """Ask for the status of a transaction. Raises `Unanswered`."""
        body = {"service_id": self._settings.service_id, "transaction_id": transaction_id}
        _, answer = await self._post("/get_transaction_status", body)
        code, record = answer["response_code"], answer.get("response_data")
        if code in _NOT_FOUND:
            return NoSuchTransaction()
        if code != "000" or not isinstance(record, dict):
            raise Unanswered(f"code {code}")
        status = record.get("status")
        if record.get("transaction_id") != transaction_id or status not in set(Status):
            raise Unanswered("a status record that cannot be read")
        return StatusFound(Status(status), str(record.get("status_desc", "")))

    async def send_sms(self, phone: str, text: str) -> Refused | None:
        """Send an SMS; return None if the gateway accepted it. Raises `Unanswered`."""
        body = {
            "service_id": self._settings.service_id,
            "customer_number": "233" + phone.removeprefix("0"),
            "msg_body": text,
            "sender_id": self._settings.sender_id,
        }
        _, answer = await self._post("/sms/send", body)
        code = answer["response_code"]
        return None if code == "370" else Refused(code, str(answer.get("response_message", "")))

    def _common_fields(self, order: Order, transaction: Transaction) -> dict[str, Any]:
        return {
            "service_id": self._settings.service_id,
            "reference": f"Order {order.number}",
            "transaction_id": transaction.transaction_id,
            "amount": transaction.amount,
            "callback_url": self._settings.callback_url,
            "request_time": f"{transaction.started_at:%Y-%m-%d %H:%M:%S}",
        }

    def _card_fields(self, order: Order) -> dict[str, Any]:
        """The card number is not sent: the customer types it on the page of the gateway."""
        return {
            "nw": "CRD",
            "payment_option": "CRD",
            "nickname": order.customer.name,
            "currency_code": order.currency,
            "currency_val": f"{order.total:.2f}",
            "landing_page": f"{self._settings.url}/orders/{order.key}/return",
        }

    async def _post(self, path: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """POST, and again while the gateway answers 429. Returns HTTP status and body.

        Raises `Unanswered` for a connection that fails, a server error, and an unreadable body.
        """
        for delay in _RETRY_DELAYS_S:
            status, answer, retry_after = await self._post_once(path, body)
            if status != 429:
                return status, answer
            await self._clock.sleep(min(retry_after or delay, _LONGEST_DELAY_S))
        status, answer, _ = await self._post_once(path, body)
        return status, answer

    async def _post_once(
        self, path: str, body: Mapping[str, Any]
    ) -> tuple[int, dict[str, Any], float]:
        if self._session is None:
            raise RuntimeError("use the client in `async with`")
        url = self._settings.gateway_url + path
        try:
            async with self._session.post(url, json=body, allow_redirects=False) as response:
                raw = await response.read()
        except (ClientError, TimeoutError) as error:
            raise Unanswered(type(error).__name__) from error
        if response.status >= _SERVER_ERROR:
            raise Unanswered(f"HTTP {response.status}")
        retry_after = response.headers.get("Retry-After", "")
        seconds = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
        return response.status, _parse_answer(raw), seconds


def _parse_answer(raw: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        raise Unanswered("an answer that is not JSON") from None
    if not isinstance(answer, dict) or not isinstance(answer.get("response_code"), str):
        raise Unanswered("an answer without response_code")
    return answer


def _parse_outcome(http_status: int, answer: Mapping[str, Any]) -> Accepted | Refused:
    """The meaning of the answer to a payment. Raises `Unanswered` if the outcome is not known."""
    code = answer["response_code"]
    if (http_status, code) == (202, "202"):
        return Accepted()
    page = answer.get("redirect_url")
    if (http_status, code) == (200, "000") and isinstance(page, str) and _is_web_address(page):
        return Accepted(page)
    if code in _REFUSALS:
        return Refused(code, str(answer.get("response_message", "")))
    # Such as 219, a repeated id: the payment is known, and its status says how it ended.
    raise Unanswered(f"HTTP {http_status}, code {code}")


def _is_web_address(address: str) -> bool:
    try:
        url = URL(address)
    except ValueError:
        return False
    return url.scheme in {"http", "https"} and bool(url.host)


def _wallet_fields(customer: Customer) -> dict[str, Any]:
    return {
        "nw": customer.nw,
        "payment_option": "MOM",
        "customer_number": customer.phone,
        "nickname": customer.name,
    }


def _json_number(value: object) -> float:
    if isinstance(value, Decimal):
        return float(value)  # amounts have two decimals, which a float writes back as they were
    raise TypeError(type(value).__name__)


SIGNATURE_HEADER: Final = "X-Service-Signature"

_STATUS_OF_EVENT: Final = {
    "payment_success": Status.SUCCESSFUL,
    "payment_failure": Status.FAILED,
    "payment_pending": Status.PENDING,
    "payment_cancelled": Status.CANCELLED,
}


class UnreadableCallback(Exception):
    """The body is not an event-style callback; the text says why."""


@dataclass(frozen=True, slots=True)
class Event:
    """The content of a callback."""

    transaction_id: str
    status: Status
    detail: str
    amount: Decimal
    currency: str


def is_genuine(raw_body: bytes, signature: str | None, secret_key: str) -> bool:
    """Whether the signature is that of these bytes: HMAC-SHA-256 under the secret key, in hex."""
    if signature is None:
        return False
    expected = hmac.new(secret_key.encode(), raw_body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "surrogateescape"))


def read_event(raw_body: bytes) -> Event:
    """The event in the body of a callback. Raises `UnreadableCallback`."""
    body = _parse_object(raw_body)
    kind = _required_text(body, "event_type")
    status = _STATUS_OF_EVENT.get(kind)
    if status is None:
        raise UnreadableCallback("event_type is not one of " + ", ".join(_STATUS_OF_EVENT))
    if _required_text(body, "status") != status:
        raise UnreadableCallback(f"status must be {status} where event_type is {kind}")
    return Event(
        transaction_id=_required_text(body, "transaction_id"),
        status=status,
        detail=_required_text(body, "status_desc"),
        amount=_amount(body),
        currency=_required_text(body, "currency_code"),
    )


def _parse_object(raw_body: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw_body, parse_float=Decimal, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise UnreadableCallback("the body is not JSON") from None
    if not isinstance(body, dict):
        raise UnreadableCallback("the body is not a JSON object")
    return body


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _required_text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise UnreadableCallback(f"{name} must be a text that is not empty")
    return value


def _amount(body: dict[str, Any]) -> Decimal:
    value = body.get("amount")
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise UnreadableCallback("amount must be a number")
    return Decimal(value)
