"""The request bodies of the interface, and what is wrong with one, in words. Source: D5, D17, D24.

JSON types are strict and unknown fields are ignored. `make_payment` is a union told apart by
`trans_type`, then `payment_option`, then for cards `nw`, so only combinations that the interface
lists can be built.
"""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError
from yarl import URL

from sandbox_sim.domain.billers import BILL_PRODUCTS
from sandbox_sim.domain.payments import Payment
from sandbox_sim.domain.sms import STATUS_NAMES, HistoryQuery, SmsRequest, SmsStatus
from sandbox_sim.domain.timestamps import is_request_time
from sandbox_sim.domain.vocabulary import (
    BANKS,
    CARD_BRANDS,
    CARD_CURRENCIES,
    DEFAULT_CURRENCY,
    HOSTED_CARD,
    MOBILE_NETWORKS,
    Operation,
    PaymentOption,
)

DEFAULT_LIMIT = 20
MAX_LIMIT = 100


def _amount(value: object) -> Decimal:
    if type(value) is int:
        amount = Decimal(value)
    elif type(value) is float:
        amount = Decimal(repr(value))
    else:
        raise PydanticCustomError("amount", "must be a number, without quotes")
    if not amount.is_finite() or amount <= 0:
        raise PydanticCustomError("amount", "must be a number above 0")
    return amount


def _web_address(value: str) -> str:
    try:
        url = URL(value)
        fine = url.scheme in {"http", "https"} and bool(url.host) and url.port is not None
    except ValueError:
        fine = False
    if not fine or any(char.isspace() for char in value):
        raise PydanticCustomError("web_address", "must be a URL that begins http:// or https://")
    return value


def _request_time(value: str) -> str:
    if not is_request_time(value):
        forms = "2026-01-31 09:30, 2026-01-31 09:30:00 or 2026-01-31T09:30:00Z"
        raise PydanticCustomError("request_time", f"must be a date and time such as {forms}")
    return value


def _currency_val(value: object) -> str | int | float | None:
    """Clients in the field send a number too (D5)."""
    if type(value) in {int, float} or (isinstance(value, str) and value.strip()):
        return value  # type: ignore[return-value]
    raise PydanticCustomError("currency_val", "must be a string")


def _day(value: object) -> date:
    if isinstance(value, str) and len(value) == 10:
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise PydanticCustomError("day", "must be a date in the form YYYY-MM-DD")


def _status(value: object) -> SmsStatus:
    if isinstance(value, str) and value in STATUS_NAMES:
        return STATUS_NAMES[value]
    raise PydanticCustomError("status", f"must be one of {', '.join(STATUS_NAMES)}")


# A string with something in it. NUL is refused here because no database takes it.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")]
MaybeBlank = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
ServiceId = Annotated[int, Field(gt=0, lt=2**63)]
Amount = Annotated[Decimal, PlainValidator(_amount)]
WebAddress = Annotated[str, AfterValidator(_web_address)]
RequestTime = Annotated[str, AfterValidator(_request_time)]
CurrencyVal = Annotated[str | int | float, PlainValidator(_currency_val)]
Day = Annotated[date, PlainValidator(_day)]
MobileNetwork = Literal[MOBILE_NETWORKS]  # type: ignore[valid-type]


class Body(BaseModel):
    """Strict about types, silent about fields it does not know."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    service_id: ServiceId


class PaymentFields(Body):
    """The common fields of every payment."""

    reference: Text
    transaction_id: Text
    trans_type: str
    amount: Amount
    nw: str
    callback_url: WebAddress
    request_time: RequestTime


class PaymentBody(PaymentFields):
    """One of the payment operations; subclasses narrow the fields to what they take."""

    operation: ClassVar[Operation]
    default_mode: ClassVar[PaymentOption]

    payment_option: str | None = None
    currency_code: Text | None = None
    currency_val: CurrencyVal | None = None
    nickname: Text | None = None

    @property
    def party(self) -> str:
        """Who pays, is paid, or is billed."""
        raise NotImplementedError

    def payment(self) -> Payment:
        """The payment that the body asks for."""
        return Payment(
            operation=self.operation,
            service_id=self.service_id,
            transaction_id=self.transaction_id,
            reference=self.reference,
            amount=self.amount,
            nw=self.nw,
            party=self.party,
            payment_mode=self.payment_option or self.default_mode,
            currency_code=self.currency_code or DEFAULT_CURRENCY,
            callback_url=self.callback_url,
            landing_page=getattr(self, "landing_page", ""),
        )


class _WithNumber(PaymentBody):
    customer_number: Text

    @property
    def party(self) -> str:
        return self.customer_number


class Collection(_WithNumber):
    """1. Mobile money collection."""

    operation = Operation.COLLECT
    trans_type: Literal["CTM"]
    payment_option: Literal["MOM"]
    nw: MobileNetwork


class TestCardCollection(_WithNumber):
    """2. Card collection as sandbox takes it: a test card in `customer_number`."""

    operation = Operation.CARD
    trans_type: Literal["CTM"]
    payment_option: Literal["CRD", "CRM"]
    nw: Literal[CARD_BRANDS]  # type: ignore[valid-type]
    currency_code: Literal[CARD_CURRENCIES]  # type: ignore[valid-type]
    currency_val: CurrencyVal
    landing_page: WebAddress


class HostedCardCollection(PaymentBody):
    """2. Card collection as production takes it: the hosted page asks for the card."""

    operation = Operation.CARD
    trans_type: Literal["CTM"]
    payment_option: Literal["CRD", "CRM"]
    nw: Literal[HOSTED_CARD]  # type: ignore[valid-type]
    currency_code: Literal[CARD_CURRENCIES]  # type: ignore[valid-type]
    currency_val: CurrencyVal
    landing_page: WebAddress

    @property
    def party(self) -> str:
        return ""


class Deposit(_WithNumber):
    """3. Wallet deposit."""

    operation = Operation.DEPOSIT
    trans_type: Literal["DTTW"]
    payment_option: Literal["MOM"]
    nw: MobileNetwork


class MobilePayout(_WithNumber):
    """4. Payout to a mobile money wallet."""

    operation = Operation.PAYOUT
    trans_type: Literal["MTC"]
    payment_option: Literal["MOM"]
    nw: MobileNetwork


class BankPayout(_WithNumber):
    """4. Payout to a bank account."""

    operation = Operation.PAYOUT
    trans_type: Literal["MTC"]
    payment_option: Literal["BNK"]
    nw: Literal[BANKS]  # type: ignore[valid-type]


class CardPayout(_WithNumber):
    """4. Payout to a card."""

    operation = Operation.PAYOUT
    trans_type: Literal["MTC"]
    payment_option: Literal["CRD"]
    nw: Literal[CARD_BRANDS]  # type: ignore[valid-type]


class Bill(PaymentBody):
    """5. Bill payment."""

    operation = Operation.BILL
    default_mode = PaymentOption.BILL
    trans_type: Literal["BLP"]
    payment_option: Literal["BLP", "MOM", "CRD", "CRM", "BNK"] | None = None
    nw: Literal[BILL_PRODUCTS]  # type: ignore[valid-type]
    account_number: Text

    @property
    def party(self) -> str:
        return self.account_number


class Airtime(_WithNumber):
    """6. Airtime."""

    operation = Operation.AIRTIME
    default_mode = PaymentOption.AIRTIME
    trans_type: Literal["ATP"]
    payment_option: Literal["ATP", "MOM", "CRD", "CRM", "BNK"] | None = None
    nw: MobileNetwork


class StatusQuery(Body):
    """7. Transaction status."""

    transaction_id: Text


class BalanceQuery(Body):
    """8. Account balance."""

    request_time: RequestTime


class SmsSend(Body):
    """9. Send SMS. `sender_id` has a code of its own (216), so it may be missing here."""

    customer_number: Text
    msg_body: MaybeBlank
    sender_id: MaybeBlank | None = None

    def request(self) -> SmsRequest:
        """The send that the body asks for."""
        recipients = [self.customer_number]
        return SmsRequest(
            self.service_id, recipients, self.msg_body, self.sender_id or "", bulk=False
        )


class SmsBulk(Body):
    """10. Bulk SMS. `recipients` has codes of its own (389, 390), so it may be anything here."""

    recipients: Any = None
    msg_body: MaybeBlank
    sender_id: MaybeBlank | None = None

    def request(self) -> SmsRequest:
        """The send that the body asks for."""
        return SmsRequest(
            self.service_id, self.recipients, self.msg_body, self.sender_id or "", bulk=True
        )


class SmsHistory(Body):
    """11. SMS history."""

    page: Annotated[int, Field(ge=1, lt=2**31)] = 1
    limit: Annotated[int, Field(ge=1)] = DEFAULT_LIMIT
    status: Annotated[SmsStatus, PlainValidator(_status)] | None = None
    batch_id: Text | None = None
    start_date: Day | None = None
    end_date: Day | None = None

    def query(self) -> HistoryQuery:
        """The query that the body asks for; a larger limit is lowered to the largest (D26)."""
        return HistoryQuery(
            service_id=self.service_id,
            page=self.page,
            limit=min(self.limit, MAX_LIMIT),
            status=self.status,
            batch_id=self.batch_id,
            start_date=self.start_date,
            end_date=self.end_date,
        )


_Card = Annotated[TestCardCollection | HostedCardCollection, Discriminator("nw")]
_Ctm = Annotated[Collection | _Card, Discriminator("payment_option")]
_Mtc = Annotated[MobilePayout | BankPayout | CardPayout, Discriminator("payment_option")]

MAKE_PAYMENT: TypeAdapter[PaymentBody] = TypeAdapter(
    Annotated[_Ctm | Deposit | _Mtc, Discriminator("trans_type")]
)


def problems(error: ValidationError, common: type[Body] | None = None, raw: bytes = b"") -> str:
    """Every field that is wrong and what is wrong with it, in one sentence.

    Where a union could not be told apart, `common` names the fields that are wrong all the same.
    """
    details = error.errors(include_url=False, include_input=False)
    found = dict(map(_problem, details))
    if common is not None and any(detail["type"].startswith("union_tag") for detail in details):
        found.update(_common_problems(common, raw, set(found)))
    return "; ".join(f"{field} {problem}" for field, problem in found.items())


def _common_problems(common: type[Body], raw: bytes, known: set[str]) -> Iterator[tuple[str, str]]:
    try:
        common.model_validate_json(raw)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            field, problem = _problem(detail)
            if field not in known:
                yield field, problem


def _problem(detail: ErrorDetails) -> tuple[str, str]:
    """One field and what is wrong with it."""
    context = detail.get("ctx", {})
    names = [part for part in detail["loc"] if isinstance(part, str)]
    field = names[-1] if names else "the body"
    match detail["type"]:
        case "missing":
            return field, "is required"
        case "union_tag_not_found":
            return str(context["discriminator"]).strip("'"), "is required"
        case "union_tag_invalid":
            return str(context["discriminator"]).strip("'"), (
                f"must be one of {context['expected_tags']}"
            )
        case "literal_error":
            return field, f"must be one of {context['expected']}".replace(" or ", ", ")
        case "string_type":
            return field, "must be a string"
        case "string_pattern_mismatch":
            return field, "must not be blank, nor hold a NUL character"
        case "int_type" | "int_from_float":
            return field, "must be an integer, without quotes"
        case "json_invalid":
            return "the body", f"is not valid JSON: {context['error']}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "the body", "must be a JSON object"
        case _:
            text = detail["msg"]
            return field, text[:1].lower() + text[1:].replace("Input ", "")
