"""How payments are processed: one processor for each service mode.

`Payments.submit` does what is the same in both modes: it draws the network transaction id, holds
the answer gate, opens the unit of work and makes the reply. The processor of the client's mode does
the rest. The sandbox rules are one processor
(`gateway.payments.sandbox_processor`); production over real networks is another one.

A payment is processed in two steps:

1. `process` decides inside the unit of work. It saves what the payment leaves behind: the
   transaction, postings, a card page, and jobs for what must happen later. All of it is in one
   unit, so a crash after the commit loses nothing.
2. `Accepted.before_answer`, if there is one, runs after the commit and before the answer. There a
   processor may wait for the outside world: the unit of work, with its locks, is over. Its result
   replaces the first one, so it can still reject. What it changes, it saves in units of its own.

Production sends its attempt in step 2: the transaction, its hold and its attempt are committed in
step 1, together with a job that asks the network for the outcome if step 2 never ends.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol

from sandbox_sim.domain.clients import Client
from sandbox_sim.domain.payments.payment import NO_DETAILS, Payment, PaymentDetails
from sandbox_sim.domain.payments.payment_rules import Outcome
from sandbox_sim.gateway.ports.unit import Unit


class PaymentRequest(NamedTuple):
    """A well-formed payment that a client may make.

    client: its mode has chosen the processor.
    network_transaction_id: eleven digits, new (D18); the gate holds it.
    received_at: gateway time, UTC.
    public_address: returns the address that this server is reached at, without a slash at the end.
    details: what only a network reads.
    is_plain: the body of the request has nothing to mask (D38).
    """

    payment: Payment
    client: Client
    network_transaction_id: str
    received_at: datetime
    public_address: Callable[[], str]
    details: PaymentDetails = NO_DETAILS
    is_plain: bool = False


class Rejected(NamedTuple):
    """The payment was not taken; a transaction that can be queried may be left all the same (D15).

    outcome: what is answered. warnings: remarks for the journal and the log.
    """

    outcome: Outcome
    warnings: tuple[str, ...] = ()


class Accepted(NamedTuple):
    """The payment was taken, and its transaction was saved.

    outcome: what is answered. warnings: remarks for the journal and the log.
    fields: further fields of the answer's body.
    before_answer: what is to be done after the commit and before the answer; None for nothing.
    """

    outcome: Outcome
    warnings: tuple[str, ...] = ()
    fields: Mapping[str, object] | None = None
    before_answer: "Callable[[], Awaitable[Accepted | Rejected]] | None" = None


class PaymentProcessor(Protocol):
    """Decides the payments of one service mode, and saves what they leave behind."""

    async def process(self, unit: Unit, request: PaymentRequest) -> Accepted | Rejected:
        """Decide a payment, and save through `unit` all that it leaves behind, its jobs too.

        A store may call this more than once for one payment, each time with a new unit of which
        only the last is committed. So it awaits nothing but the unit, and changes nothing else.
        A rejection is a result; what is raised undoes the unit and is answered with code 500.
        """
        ...
