"""A payment as the client requested it: one shape for the six payment operations."""

from decimal import Decimal
from typing import Final, NamedTuple

from sandbox_sim.domain.payments import cards
from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.domain.vocabulary import HOSTED_CARD, Operation, PaymentOption


class Payment(NamedTuple):
    """A well-formed request to `make_payment`, `pay_bill` or `send_airtime`.

    party: `customer_number` or `account_number`; empty where the hosted page asks for the card.
    """

    operation: Operation
    service_id: int
    transaction_id: str
    reference: str
    amount: Decimal
    nw: str
    party: str
    payment_mode: str
    currency_code: str
    callback_url: str
    landing_page: str = ""

    @property
    def is_mobile(self) -> bool:
        """Whether `party` is a phone number."""
        return self.operation in _MOBILE or (
            self.operation is Operation.PAYOUT and self.payment_mode == PaymentOption.MOBILE_MONEY
        )

    @property
    def uses_card_entry(self) -> bool:
        """Whether the hosted page asks for the card number, as in production (D20)."""
        return self.operation is Operation.CARD and self.nw == HOSTED_CARD

    def with_masked_card(self, number: str) -> "Payment":
        """The payment made with this card number, which is masked."""
        return self._replace(party=cards.masked(number))

    def redacted(self, *, is_plain: bool = False) -> "Payment":
        """The payment with its secrets masked, as it is stored and shown (D38).

        `amount` and `service_id` are numbers, and `transaction_id` is a key: they stay as they are.

        is_plain: the request that it was read from has nothing to mask, so only a card is masked.
        """
        is_card = self.operation is _CARD or self.payment_mode == _CARD_OPTION
        payment = self.with_masked_card(self.party) if is_card else self
        if is_plain:
            return payment
        joined = _SEPARATOR.join((payment.reference, payment.party, payment.currency_code))
        joined = _SEPARATOR.join((joined, payment.callback_url, payment.landing_page))
        if redact_text(joined) == joined:
            return payment
        return payment._replace(
            reference=redact_text(payment.reference),
            party=redact_text(payment.party),
            currency_code=redact_text(payment.currency_code),
            callback_url=redact_text(payment.callback_url),
            landing_page=redact_text(payment.landing_page),
        )


class PaymentDetails(NamedTuple):
    """The fields of a request that only a network reads; empty where they were not given."""

    nickname: str = ""
    currency_val: str = ""
    request_time: str = ""


NO_DETAILS: Final = PaymentDetails()

# Constants, because Python 3.11 takes a sixth of a microsecond to find a member of an enum.
_CARD: Final = Operation.CARD
_CARD_OPTION: Final = PaymentOption.CARD
# Ends a number or an address, so joining the texts makes no new secret.
_SEPARATOR: Final = " | "
_MOBILE = frozenset({Operation.COLLECT, Operation.DEPOSIT, Operation.AIRTIME})
