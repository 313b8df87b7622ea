"""The six payment operations, in either mode: from a frozen command to the reply.

Source: service.1 to service.5, D16, D32.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from sandbox_sim.domain.clients import Client, ServiceMode
from sandbox_sim.domain.payments.payment import NO_DETAILS, Payment, PaymentDetails
from sandbox_sim.domain.response_codes import Reply
from sandbox_sim.gateway.ports import (
    Accepted,
    AnswerGate,
    Ids,
    PaymentProcessor,
    PaymentRequest,
    Store,
)


class Payments:
    """Hands each payment to the processor of its client's mode.

    processors: the modes that this server serves; the web layer refuses other clients (D32).
    """

    def __init__(
        self,
        store: Store,
        ids: Ids,
        gate: AnswerGate,
        processors: Mapping[ServiceMode, PaymentProcessor],
    ) -> None:
        self._store = store
        self._ids = ids
        self._gate = gate
        self._processors = processors

    async def submit(
        self,
        payment: Payment,
        client: Client,
        received_at: datetime,
        public_address: Callable[[], str],
        details: PaymentDetails = NO_DETAILS,
        *,
        is_plain: bool = False,
    ) -> Reply:
        """Process a payment in one unit of work; returns when it is saved.

        The answer gate holds the callback of the payment. The caller releases `Reply.awaited_by`
        when the answer is written. What is raised is an error of the store or a fault of ours; then
        nothing is held, and nothing was saved unless it was raised after the commit.

        received_at: gateway time, UTC.
        public_address: returns the address that this server is reached at.
        details: what only a network reads.
        is_plain: the body of the request has nothing to mask (D38).
        """
        processor = self._processors[client.mode]
        network_id = self._ids.network_transaction_id()
        request = PaymentRequest(
            payment, client, network_id, received_at, public_address, details, is_plain
        )
        self._gate.hold(network_id)
        try:
            decision = await self._store.run(lambda unit: processor.process(unit, request))
            if isinstance(decision, Accepted) and decision.before_answer is not None:
                decision = await decision.before_answer()
        except BaseException:
            self._gate.release(network_id)
            raise
        (code, rule, why, message), warnings = decision.outcome, decision.warnings
        fields = decision.fields if isinstance(decision, Accepted) else None
        return Reply(code, rule, why, message, fields, None, None, warnings, network_id)
