"""How payments are processed: one processor for each service mode.

`Payments.submit` does what is the same in both modes: it draws the network transaction id, holds
the answer gate, opens the unit of work and makes the reply. The processor of the client's mode does
the rest. The sandbox rules are one processor
(`payments.submit`); production over real networks is another one.

A payment is processed in two steps:

1. `process` decides inside the unit of work. It saves what the payment leaves behind: the
   transaction, postings, a card page, and jobs for what must happen later. All of it is in one
   unit, so a crash after the commit loses nothing.
2. `process` returns the reply, or a function that makes it after the commit and before the answer.
   There a processor may wait for the outside world: the unit of work, with its locks, is over. It
   can still reject. What it changes, it saves in units of its own.

Production sends its attempt in step 2: the transaction, its hold and its attempt are committed in
step 1, together with a job that asks the network for the outcome if step 2 never ends.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple, Protocol

from sandbox_sim.ports.unit import Unit
from sandbox_sim.records.transactions import NO_DETAILS, Payment, PaymentDetails, Refund
from sandbox_sim.values.clients import Client
from sandbox_sim.values.response_codes import Reply


class PaymentRequest(NamedTuple):
    """A well-formed payment that a client may make.

    client: its mode has chosen the processor.
    network_transaction_id: eleven digits, new (D18); the gate holds it.
    received_at: gateway time, UTC.
    public_address: returns the address that this server is reached at, without a slash at the end.
    details: what only a network reads.
    refund: what makes it the refund of a collection, which goes over the network that collected;
    None for a payment of a client.
    """

    payment: Payment
    client: Client
    network_transaction_id: str
    received_at: datetime
    public_address: Callable[[], str]
    details: PaymentDetails = NO_DETAILS
    refund: Refund | None = None


# The reply to a payment, or what makes it after the commit and before the answer.
PaymentDecision = Reply | Callable[[], Awaitable[Reply]]


class PaymentProcessor(Protocol):
    """Decides the payments of one service mode, and saves what they leave behind."""

    async def process(self, unit: Unit, request: PaymentRequest) -> PaymentDecision:
        """Decide a payment, and save through `unit` all that it leaves behind, its jobs too.

        A store may call this more than once for one payment, each time with a new unit of which
        only the last is committed. So it awaits nothing but the unit, and changes nothing else.
        A rejection is a reply; what is raised undoes the unit and is answered with code 500.
        """
        ...
