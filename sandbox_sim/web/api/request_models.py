"""Request bodies of docs/interface.md. Source: D5, D17, D24, D43, D37.

JSON types are strict and unknown fields are ignored. `make_payment` is a union by `trans_type`,
then `payment_option`, then for cards `nw`, so only combinations that the interface lists are valid.
"""

import math
import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetPydanticSchema,
    PlainValidator,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, core_schema

from sandbox_sim.http_addresses import EXPECTED, MAX_CHARACTERS, PLAIN, BadAddress, check
from sandbox_sim.operations import Operation
from sandbox_sim.records.messages import STATUS_NAMES, HistoryQuery, SmsRequest, SmsStatus
from sandbox_sim.records.transactions import Payment
from sandbox_sim.sms.sandbox_rules import MAX_RECIPIENTS
from sandbox_sim.values.timestamps import REQUEST_TIME
from sandbox_sim.values.vocabulary import (
    BANKS,
    BILL_PRODUCTS,
    CARD_BRANDS,
    CARD_CURRENCIES,
    DEFAULT_CURRENCY,
    HOSTED_CARD,
    MAX_IDENTIFIER,
    MAX_MESSAGE,
    MAX_REFERENCE,
    MOBILE_NETWORKS,
)


def _check_url(address: str) -> str:
    try:
        check(address)
    except BadAddress as error:
        raise PydanticCustomError("address", str(error)) from None
    return address


# Nearly every address matches the pattern, in Rust; the others are parsed. The name of both choices
# is "", so the location of an error is the field and then "". The error of the second choice comes
# last and says what is wrong.
_URL_SCHEMA = core_schema.union_schema(
    [
        (core_schema.str_schema(pattern=PLAIN, max_length=MAX_CHARACTERS), ""),
        (core_schema.no_info_after_validator_function(_check_url, core_schema.str_schema()), ""),
    ],
    mode="left_to_right",
)

# The pattern of the document is stricter than the server: the description says what else is valid.
_URL_JSON_SCHEMA = {
    "type": "string",
    "maxLength": MAX_CHARACTERS,
    "pattern": PLAIN,
    "description": EXPECTED + "; also with an IPv6 host, a user name, or escapes",
}

WebAddress = Annotated[
    str,
    GetPydanticSchema(
        lambda _source, _handler: _URL_SCHEMA, lambda _schema, _handler: dict(_URL_JSON_SCHEMA)
    ),
]


TOO_LONG = "must have at most {:,} characters"

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

DEFAULT_LIMIT = 20

MAX_LIMIT = 100


def _read_currency_val(value: object) -> str | int | float | None:
    """Clients in the field send a number too (D5)."""
    if isinstance(value, str) and value.strip():
        if len(value) > MAX_IDENTIFIER:
            raise PydanticCustomError("currency_val", TOO_LONG.format(MAX_IDENTIFIER))
        return value
    if type(value) is int and abs(value) < 10**MAX_IDENTIFIER:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    raise PydanticCustomError("currency_val", "must be a string")


def _read_day(value: object) -> date:
    if isinstance(value, str) and _DAY.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise PydanticCustomError("day", "must be a date in the form YYYY-MM-DD")


def _read_status(value: object) -> SmsStatus:
    if isinstance(value, str) and value in STATUS_NAMES:
        return STATUS_NAMES[value]
    raise PydanticCustomError("status", f"must be one of {', '.join(STATUS_NAMES)}")


# Patterns are matched in Rust, as is every type here that a payment always has: a validator in
# Python would cost more than the rest of the model. NUL is refused because no database takes it.
_NOT_BLANK = r"^[^\x00]*[^\s\x00][^\x00]*$"

_NO_NUL = r"^[^\x00]*$"

Identifier = Annotated[str, StringConstraints(pattern=_NOT_BLANK, max_length=MAX_IDENTIFIER)]

Reference = Annotated[str, StringConstraints(pattern=_NOT_BLANK, max_length=MAX_REFERENCE)]

SenderId = Annotated[str, StringConstraints(pattern=_NO_NUL, max_length=MAX_IDENTIFIER)]

MessageBody = Annotated[str, StringConstraints(pattern=_NO_NUL, max_length=MAX_MESSAGE)]

ServiceId = Annotated[int, Field(gt=0, lt=2**63)]

Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]

RequestTime = Annotated[str, StringConstraints(pattern=REQUEST_TIME)]

CurrencyVal = Annotated[
    str | int | float,
    PlainValidator(_read_currency_val, json_schema_input_type=Identifier | int | float),
]

Day = Annotated[date, PlainValidator(_read_day, json_schema_input_type=date)]

MobileNetwork = Literal[MOBILE_NETWORKS]  # type: ignore[valid-type]

StatusName = Literal[tuple(STATUS_NAMES)]  # type: ignore[valid-type]


# Equal amounts share one Decimal.
@lru_cache(maxsize=1024)
def _exact_amount(amount: float) -> Decimal:
    return Decimal(repr(amount))


StatusFilter = Annotated[SmsStatus, PlainValidator(_read_status, json_schema_input_type=StatusName)]


class OperationBody(BaseModel):
    """Strict about types. Unknown fields are ignored; they are kept for a warning only."""

    # Each model is built when it is first used, so that serve starts fast.
    model_config = ConfigDict(strict=True, frozen=True, extra="allow", defer_build=True)

    service_id: ServiceId


def _requires(*names: str) -> ConfigDict:
    """The fields that the interface requires, for a model in which some are optional."""
    return ConfigDict(json_schema_extra={"required": list(names)})


_RECIPIENTS = {
    "type": "array",
    "items": {"type": "string", "pattern": r"^\+?[0-9]{9,15}$"},
    "minItems": 1,
    "maxItems": MAX_RECIPIENTS,
}


class PaymentFields(OperationBody):
    """The common fields of every payment.

    trans_type: the kind of payment.
    callback_url: where the gateway sends the outcome.
    """

    reference: Reference
    transaction_id: Identifier
    trans_type: str
    amount: Amount
    nw: str
    callback_url: WebAddress
    request_time: RequestTime


class PaymentBody(PaymentFields):
    """One of the payment operations; subclasses narrow the fields to what they take.

    payment_option: MOM is mobile money, CRD a card, CRM a card or mobile money, BNK a bank account;
    a bill and airtime need none.
    currency_val: the currency value for display.
    nickname: the display name of the customer or the account; production requires it, except for a
    bill or airtime.
    """

    operation: ClassVar[Operation]

    payment_option: str | None = None
    currency_code: Identifier | None = None
    currency_val: CurrencyVal | None = None
    nickname: Reference | None = None

    def payment(self) -> Payment:
        """The payment in the body; the party is empty if the hosted page asks for the card."""
        fields = vars(self)  # faster than the attributes of a model
        return Payment(
            self.operation,
            fields["service_id"],
            fields["transaction_id"],
            fields["reference"],
            _exact_amount(fields["amount"]),
            fields["nw"],
            fields.get("party", ""),
            fields["payment_option"] or fields["trans_type"],
            fields["currency_code"] or DEFAULT_CURRENCY,
            fields["callback_url"],
        )


class WithNumber(PaymentBody):
    """A payment of or to `customer_number`."""

    party: Identifier = Field(alias="customer_number")


class Collection(WithNumber):
    """Mobile money collection (endpoint.1)."""

    operation = Operation.COLLECT
    trans_type: Literal["CTM"]
    payment_option: Literal["MOM"]
    nw: MobileNetwork


class _Card(PaymentBody):
    """A payment on the hosted page.

    landing_page: where the browser goes after a successful payment.
    """

    operation = Operation.CARD
    trans_type: Literal["CTM"]
    payment_option: Literal["CRD", "CRM"]
    currency_code: Literal[CARD_CURRENCIES]  # type: ignore[valid-type]
    currency_val: CurrencyVal
    landing_page: WebAddress

    def payment(self) -> Payment:
        """The payment, and where the customer goes after it."""
        return super().payment()._replace(landing_page=self.landing_page)


class TestCardCollection(_Card, WithNumber):
    """Card collection (endpoint.2) as sandbox takes it: a test card in `customer_number`."""

    nw: Literal[CARD_BRANDS]  # type: ignore[valid-type]


class HostedCardCollection(_Card):
    """Card collection (endpoint.2) as production takes it: the hosted page asks for the card."""

    nw: Literal[HOSTED_CARD]  # type: ignore[valid-type]


class Deposit(WithNumber):
    """Wallet deposit (endpoint.3)."""

    operation = Operation.DEPOSIT
    trans_type: Literal["DTTW"]
    payment_option: Literal["MOM"]
    nw: MobileNetwork


class MobilePayout(WithNumber):
    """Payout to a mobile money wallet (endpoint.4)."""

    operation = Operation.PAYOUT
    trans_type: Literal["MTC"]
    payment_option: Literal["MOM"]
    nw: MobileNetwork


class BankPayout(WithNumber):
    """Payout to a bank account (endpoint.4)."""

    operation = Operation.PAYOUT
    trans_type: Literal["MTC"]
    payment_option: Literal["BNK"]
    nw: Literal[BANKS]  # type: ignore[valid-type]


class CardPayout(WithNumber):
    """Payout to a card (endpoint.4)."""

    operation = Operation.PAYOUT
    trans_type: Literal["MTC"]
    payment_option: Literal["CRD"]
    nw: Literal[CARD_BRANDS]  # type: ignore[valid-type]


class Bill(PaymentBody):
    """Bill payment (endpoint.5).

    account_number: the number of the customer at the biller.
    """

    operation = Operation.BILL
    trans_type: Literal["BLP"]
    payment_option: Literal["BLP", "MOM", "CRD", "CRM", "BNK"] | None = None
    nw: Literal[BILL_PRODUCTS]  # type: ignore[valid-type]
    party: Identifier = Field(alias="account_number")


class Airtime(WithNumber):
    """Airtime (endpoint.6)."""

    operation = Operation.AIRTIME
    trans_type: Literal["ATP"]
    payment_option: Literal["ATP", "MOM", "CRD", "CRM", "BNK"] | None = None
    nw: MobileNetwork


class TransactionStatusQuery(OperationBody):
    """Transaction status (endpoint.7)."""

    transaction_id: Identifier


class BalanceQuery(OperationBody):
    """Account balance (endpoint.8)."""

    request_time: RequestTime


class SmsSend(OperationBody):
    """Send SMS (endpoint.9). `sender_id` has a code of its own (216), so it may be missing here.

    customer_number: the recipient, in international form; mode S takes the local form too.
    """

    model_config = _requires("service_id", "customer_number", "msg_body", "sender_id")

    customer_number: Identifier
    msg_body: MessageBody
    sender_id: SenderId | None = None

    def request(self) -> SmsRequest:
        """The send that the body asks for."""
        recipients = [self.customer_number]
        return SmsRequest(
            self.service_id, recipients, self.msg_body, self.sender_id or "", bulk=False
        )


class SmsBulk(OperationBody):
    """Bulk SMS (endpoint.10). `recipients` has codes of its own, so it may be anything here.

    recipients: the numbers, in local or in international form; each gets the text.
    """

    model_config = _requires("service_id", "recipients", "msg_body", "sender_id")

    recipients: Annotated[Any, WithJsonSchema(_RECIPIENTS)] = None
    msg_body: MessageBody
    sender_id: SenderId | None = None

    def request(self) -> SmsRequest:
        """The send that the body asks for."""
        return SmsRequest(
            self.service_id, self.recipients, self.msg_body, self.sender_id or "", bulk=True
        )


class SmsBalanceQuery(OperationBody):
    """SMS balance (endpoint.12)."""


class SmsHistory(OperationBody):
    """SMS history (endpoint.11).

    page: from 1, which is the default.
    limit: SMS of a page, 20 by default; a value above 100 is lowered to 100.
    status: only SMS with this status, as a word or as its letter.
    batch_id: only SMS of this bulk send.
    start_date: only SMS from this day on, in UTC.
    end_date: only SMS up to this day, in UTC; the day is included.
    """

    page: Annotated[int, Field(ge=1)] | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    status: StatusFilter | None = None
    batch_id: Identifier | None = None
    start_date: Day | None = None
    end_date: Day | None = None

    def query(self) -> HistoryQuery:
        """The query that the body asks for; a larger limit is lowered to the largest (D26)."""
        return HistoryQuery(
            service_id=self.service_id,
            page=self.page or 1,
            limit=min(self.limit or DEFAULT_LIMIT, MAX_LIMIT),
            status=self.status,
            batch_id=self.batch_id,
            start_date=self.start_date,
            end_date=self.end_date,
        )


_CtmCard = Annotated[TestCardCollection | HostedCardCollection, Discriminator("nw")]

_Ctm = Annotated[Collection | _CtmCard, Discriminator("payment_option")]

_Mtc = Annotated[MobilePayout | BankPayout | CardPayout, Discriminator("payment_option")]


MAKE_PAYMENT: TypeAdapter[PaymentBody] = TypeAdapter(
    Annotated[_Ctm | Deposit | _Mtc, Discriminator("trans_type")],
    config=ConfigDict(defer_build=True),
)


# The bodies of payments with a path of their own.
BODIES_BY_PATH: Final[Mapping[str, type[PaymentBody]]] = {
    model.operation.row.path: model for model in (Bill, Airtime)
}

BODIES: Final[Mapping[str, type[OperationBody] | TypeAdapter[PaymentBody]]] = {
    Operation.COLLECT.row.path: MAKE_PAYMENT,
    **BODIES_BY_PATH,
    Operation.STATUS.row.path: TransactionStatusQuery,
    Operation.BALANCE.row.path: BalanceQuery,
    Operation.SMS.row.path: SmsSend,
    Operation.BULK_SMS.row.path: SmsBulk,
    Operation.SMS_HISTORY.row.path: SmsHistory,
    Operation.SMS_BALANCE.row.path: SmsBalanceQuery,
}
