"""Request bodies of mode P: the fields that the reference tables require. Source: D39, endpoint.1.

They narrow the models of the sandbox, where some of these fields are optional.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, TypeAdapter
from pydantic_core import PydanticCustomError

from sandbox_sim.domain import msisdn
from sandbox_sim.domain.payments.payment import PaymentDetails
from sandbox_sim.web.api import request_models
from sandbox_sim.web.api.request_models import CurrencyVal, Text

_BANK_ACCOUNT = re.compile(r"[0-9A-Za-z -]{3,34}")


def _phone(value: str) -> str:
    if msisdn.to_local(value) is None:
        raise PydanticCustomError(
            "phone", "must be a phone number of Ghana, such as 0244000001 or 233244000001"
        )
    return value


def _bank_account(value: str) -> str:
    if _BANK_ACCOUNT.fullmatch(value) is None:
        raise PydanticCustomError("bank_account", "must be the number of a bank account")
    return value


def _card_number(value: str) -> str:
    if not value.isascii() or not value.isdigit() or not 12 <= len(value) <= 19:
        raise PydanticCustomError("card_number", "must be a card number of 12 to 19 digits")
    return value


Phone = Annotated[Text, AfterValidator(_phone)]


def details_of(body: request_models.PaymentBody) -> PaymentDetails:
    """The fields of a request that only a network reads."""
    currency_val = "" if body.currency_val is None else str(body.currency_val)
    return PaymentDetails(body.nickname or "", currency_val, body.request_time)


class LiveCollection(request_models.Collection):
    """Mobile money collection."""

    party: Phone = Field(alias="customer_number")
    nickname: Text


class LiveCard(request_models.HostedCardCollection):
    """Card collection: the page of the network asks for the card."""

    nickname: Text
    currency_val: CurrencyVal


class LiveDeposit(request_models.Deposit):
    """Wallet deposit."""

    party: Phone = Field(alias="customer_number")
    nickname: Text


class LiveMobilePayout(request_models.MobilePayout):
    """Payout to a mobile money wallet."""

    party: Phone = Field(alias="customer_number")
    nickname: Text


class LiveBankPayout(request_models.BankPayout):
    """Payout to a bank account."""

    party: Annotated[Text, AfterValidator(_bank_account)] = Field(alias="customer_number")
    nickname: Text


class LiveCardPayout(request_models.CardPayout):
    """Payout to a card."""

    party: Annotated[Text, AfterValidator(_card_number)] = Field(alias="customer_number")
    nickname: Text


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
