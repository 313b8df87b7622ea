"""A payment as it is asked for: one shape for the six payment operations."""

from decimal import Decimal
from typing import Final, NamedTuple

from sandbox_sim.domain.payments import cards
from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.domain.vocabulary import HOSTED_CARD, Operation, PaymentOption


class Payment(NamedTuple):
    """A well-formed request to `make_payment`, `pay_bill` or `send_airtime`.

    party: `customer_number` or `account_number`; empty where the hosted page will ask for a card.
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
    def asks_for_card(self) -> bool:
        """The production shape of card collection: the hosted page takes the card (D20)."""
        return self.operation is Operation.CARD and self.nw == HOSTED_CARD

    def paid_by_card(self, number: str) -> "Payment":
        """The payment as it may be kept and shown, with this card number masked."""
        return self._replace(party=cards.masked(number))

    def kept(self) -> "Payment":
        """The payment as it may be kept and shown: what is secret in it is masked (D38).

        The amount and `service_id` are numbers by their meaning, and `transaction_id` is a key.
        """
        is_card = self.operation is Operation.CARD or self.payment_mode == PaymentOption.CARD
        payment = self.paid_by_card(self.party) if is_card else self
        together = _BETWEEN.join((payment.reference, payment.party, payment.currency_code))
        together = _BETWEEN.join((together, payment.callback_url, payment.landing_page))
        if redact_text(together) == together:
            return payment
        return payment._replace(
            reference=redact_text(payment.reference),
            party=redact_text(payment.party),
            currency_code=redact_text(payment.currency_code),
            callback_url=redact_text(payment.callback_url),
            landing_page=redact_text(payment.landing_page),
        )


# No number, and no address, goes on after it.
_BETWEEN: Final = " | "
_MOBILE = frozenset({Operation.COLLECT, Operation.DEPOSIT, Operation.AIRTIME})
