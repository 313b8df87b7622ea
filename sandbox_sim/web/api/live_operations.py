"""The paths of the interface for clients of mode P, and their bodies.

Source: D17, D39, endpoint.1, D32.

The bodies narrow the models of the sandbox, where some of these fields are optional. No override
and no fault applies here. Amounts are exact, from the text of the JSON number.
"""

import re
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, TypeAdapter
from pydantic_core import PydanticCustomError

from sandbox_sim.production.live_sms import LiveSms
from sandbox_sim.records.messages import SmsRequest
from sandbox_sim.records.transactions import PaymentDetails
from sandbox_sim.values import money, msisdn
from sandbox_sim.values.response_codes import Reply
from sandbox_sim.web.api import request_models
from sandbox_sim.web.api.operations import BadRequest, Call, PathHandlers
from sandbox_sim.web.api.request_models import CurrencyVal, Identifier, Reference

_BANK_ACCOUNT = re.compile(r"[0-9A-Za-z -]{3,34}")


def _check_phone(value: str) -> str:
    if msisdn.to_local(value) is None:
        raise PydanticCustomError(
            "phone", "must be a phone number of Ghana, such as 0244000001 or 233244000001"
        )
    return value


def _check_bank_account(value: str) -> str:
    if _BANK_ACCOUNT.fullmatch(value) is None:
        raise PydanticCustomError("bank_account", "must be the number of a bank account")
    return value


def _check_card_number(value: str) -> str:
    if not value.isascii() or not value.isdigit() or not 12 <= len(value) <= 19:
        raise PydanticCustomError("card_number", "must be a card number of 12 to 19 digits")
    return value


Phone = Annotated[Identifier, AfterValidator(_check_phone)]
BankAccount = Annotated[Identifier, AfterValidator(_check_bank_account)]
CardNumber = Annotated[Identifier, AfterValidator(_check_card_number)]


def details_of(body: request_models.PaymentBody) -> PaymentDetails:
    """The fields of a request that only a network reads."""
    currency_val = "" if body.currency_val is None else str(body.currency_val)
    return PaymentDetails(body.nickname or "", currency_val, body.request_time)


class LiveCollection(request_models.Collection):
    """Mobile money collection."""

    party: Phone = Field(alias="customer_number")
    nickname: Reference


class LiveCard(request_models.HostedCardCollection):
    """Card collection: the page of the network asks for the card."""

    nickname: Reference
    currency_val: CurrencyVal


class LiveDeposit(request_models.Deposit):
    """Wallet deposit."""

    party: Phone = Field(alias="customer_number")
    nickname: Reference


class LiveMobilePayout(request_models.MobilePayout):
    """Payout to a mobile money wallet."""

    party: Phone = Field(alias="customer_number")
    nickname: Reference


class LiveBankPayout(request_models.BankPayout):
    """Payout to a bank account."""

    party: BankAccount = Field(alias="customer_number")
    nickname: Reference


class LiveCardPayout(request_models.CardPayout):
    """Payout to a card."""

    party: CardNumber = Field(alias="customer_number")
    nickname: Reference


class LiveAirtime(request_models.Airtime):
    """Airtime."""

    party: Phone = Field(alias="customer_number")


_Ctm = Annotated[LiveCollection | LiveCard, Discriminator("payment_option")]

_Mtc = Annotated[
    LiveMobilePayout | LiveBankPayout | LiveCardPayout, Discriminator("payment_option")
]


MAKE_LIVE_PAYMENT: TypeAdapter[request_models.PaymentBody] = TypeAdapter(
    Annotated[_Ctm | LiveDeposit | _Mtc, Discriminator("trans_type")],
    config=ConfigDict(defer_build=True),
)


BODIES_BY_PATH: Final[Mapping[str, type[request_models.PaymentBody]]] = {
    **request_models.BODIES_BY_PATH,
    LiveAirtime.operation.row.path: LiveAirtime,
}


@dataclass(frozen=True, eq=False)
class LiveOperations(PathHandlers):
    """The handlers for clients of mode P."""

    make_payment_bodies = MAKE_LIVE_PAYMENT
    bodies_by_path = BODIES_BY_PATH

    sms: LiveSms

    def _pay(self, call: Call, body: request_models.PaymentBody) -> Awaitable[Reply]:
        call.operation, call.transaction_id = body.operation, body.transaction_id
        payment = body.payment()
        try:
            amount = money.exact_amount(call.raw)
        except ValueError as error:
            raise BadRequest(f"the body cannot be read exactly: {error}") from None
        if amount is None:
            raise BadRequest("amount must be a number")
        problem = money.problem_of(amount, payment.currency_code)
        if problem is not None:
            raise BadRequest(f"amount {problem}")
        return self.payments.submit(
            payment._replace(amount=amount),
            call.client,
            call.received_at,
            call.public_address,
            details_of(body),
        )

    def _send(self, call: Call, request: SmsRequest) -> Awaitable[Reply]:
        return self.sms.send(request, call.public_address)
