"""Made-up people and what they do, for a gateway that has something to show."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from sandbox_sim.domain.payments.card_page import Choice
from sandbox_sim.domain.payments.payment import Payment


class Person(NamedTuple):
    """A customer with a mobile money wallet, `customer_number` in local form."""

    name: str
    customer_number: str
    nw: str


class Purchase(NamedTuple):
    """A payment that was asked for `ago`.

    choice: what the person does on the card page, after `choosing`; of no matter to other payments.
    """

    network_transaction_id: str
    payment: Payment
    ago: timedelta
    choice: Choice
    choosing: timedelta


class Text(NamedTuple):
    """An SMS that was sent `ago`; `customer_number` in local form."""

    processing_id: str
    customer_number: str
    sender_id: str
    msg_body: str
    ago: timedelta


class Lives(NamedTuple):
    """Some people, what they pay, and what is written to them."""

    people: Sequence[Person]
    purchases: Sequence[Purchase]
    texts: Sequence[Text]
