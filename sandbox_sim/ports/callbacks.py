"""How a callback is sent, and the answer gate that holds it until the answer is written (D16).

Why it is needed. A client saves its order when it reads our answer. A callback that arrives before
that answer names a transaction which the client does not know yet. With `settle_delay_ms` 0, and
wherever the answer is slow, the callback would often win that race.

Theory of operation. The gate is a set of network transaction ids: those of payments whose answer
this process has still to write. A payment passes these steps, and each step has one place:

1. `Payments.submit` draws the id and calls `hold`, before the unit of work that saves the payment.
   So the id is in the gate before any job of the payment can exist.
2. The payment processor saves the payment and the job that settles it. Its reply carries the id in
   `Reply.awaited_by`.
3. The dispatcher of the interface writes the answer and then calls `release`. It also does so when
   the client has gone away or the answer was dropped on purpose. If the payment fails before there
   is a reply, `Payments.submit` calls `release` itself. So an id leaves the gate in every case.
4. Meanwhile the job may fall due and the callback may reach the callback dispatcher. Before each
   attempt the dispatcher awaits `wait_until_released`, which returns at once if the id is not held.

Several servers. The gate is in the memory of the process that answers, and another server on the
same database does not see it. So a Postgres unit asks `is_held` when it adds a job that falls due
almost at once. It adds such a job as claimed by itself, under a lease, and gives the claim up
through `call_when_released`. If the process dies before it answers, the lease runs out and another
server sends the callback: the answer will never be written.

An override can ask for the callback before the answer (`before_response`). Then the processor calls
`release` as soon as the payment is saved, waits for the first attempt, and only then replies.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Protocol

from sandbox_sim.records.callbacks import ReceiverResponse


class CallbackSender(Protocol):
    """Sends callbacks over the network."""

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: timedelta,
        on_status: Callable[[], None] = lambda: None,
    ) -> ReceiverResponse:
        """Make one POST; returns the receiver's answer, or one that says what went wrong.

        Network errors are returned, not raised. timeout: for the whole attempt, in real time.
        on_status: called as soon as the receiver's HTTP status has arrived.
        """


class AnswerGate(Protocol):
    """Holds the callbacks of transactions whose answer this process has still to write.

    All methods are called on the event loop. None of them raises.
    """

    def hold(self, network_transaction_id: str) -> None:
        """Hold the callbacks of this transaction until `release` is called for it."""

    def release(self, network_transaction_id: str) -> None:
        """Release the callbacks of this transaction; does nothing if they are not held.

        Wakes those that wait in `wait_until_released`, and runs what was given to
        `call_when_released`, before it returns.
        """

    def is_held(self, network_transaction_id: str) -> bool:
        """Whether the answer of this transaction is still to be written by this process."""

    def call_when_released(self, network_transaction_id: str, act: Callable[[], None]) -> None:
        """Call `act` once, on `release`; at once if the transaction is not held.

        A transaction has one such call: a second one replaces the first.
        """

    async def wait_until_released(self, network_transaction_id: str) -> None:
        """Return when the transaction is not held; at once if it is not held now."""
