"""Fictitious people with payments and SMS, which `seed` writes into a service."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from sandbox_sim.domain.payments.card_page import Choice
from sandbox_sim.domain.payments.payment import Payment


class Person(NamedTuple):
    """A customer with a mobile money wallet.

    customer_number: in local form.
    """

    name: str
    customer_number: str
    nw: str


class SamplePayment(NamedTuple):
    """A payment that was requested `ago` before now.

    choice: what the person does on the card page, after `time_to_choose`; unused for other
    payments.
    """

    network_transaction_id: str
    payment: Payment
    ago: timedelta
    choice: Choice
    time_to_choose: timedelta


class SampleSms(NamedTuple):
    """An SMS that was sent `ago` before now; `customer_number` in local form."""

    processing_id: str
    customer_number: str
    sender_id: str
    msg_body: str
    ago: timedelta


class SampleRecords(NamedTuple):
    """People, their payments, and the messages sent to them."""

    people: Sequence[Person]
    purchases: Sequence[SamplePayment]
    texts: Sequence[SampleSms]
