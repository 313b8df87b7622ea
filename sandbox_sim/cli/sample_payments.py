"""Makes the payments of the doctor's samples in a running gateway.

With these, the gateway can answer a receiver that queries the status of a payment. An override
keeps each payment pending and drops its callback; then the payment is settled by hand. This works
with every setting and with a frozen clock.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from sandbox_sim.callbacks.doctor import SAMPLE_SERVICE, sample_service
from sandbox_sim.cli.client import MISREAD_ERRORS, CommandFailed, RunningGateway
from sandbox_sim.operations import Operation
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.clients import SANDBOX_CLIENT, ServiceMode
from sandbox_sim.values.response_codes import Code

T = TypeVar("T")

# How many of the newest status queries are searched for queries of the receiver.
_MAX_SEARCHED: Final = 1000


class GatewayPayments:
    """Makes payments. After a failure it makes no more, and `problem` has the reason."""

    def __init__(self, gateway: RunningGateway, settings: Settings, service_id: int | None) -> None:
        clients = (entry.client() for entry in settings.credentials)
        sandbox = next((each for each in clients if each.mode is ServiceMode.SANDBOX), None)
        self.problem = None if sandbox else "the configuration has no credentials of mode S"
        self._client = sandbox or SANDBOX_CLIENT
        self._gateway = gateway
        self._transaction_ids: set[str] = set()
        self.service_id = sample_service(self._client, service_id)

    async def open(self) -> None:
        """Check that the gateway runs and is not in production."""
        await self._try(self._refuse_production)

    async def make(self, transaction: TransactionRecord) -> TransactionRecord:
        """Make a payment with the status of this one; return it with the gateway's own id."""
        network_id = await self._try(lambda: self._make_payment(transaction))
        if network_id is None:
            return transaction
        return transaction._replace(network_transaction_id=network_id)

    async def other_service(self) -> int | None:
        """The wrong service in status queries of the receiver; None if there is none."""
        return await self._try(self._other_service)

    async def close(self) -> None:
        """Delete the records of the doctor's own service from the gateway."""
        if self._transaction_ids and self.service_id == SAMPLE_SERVICE:
            body = {"service_id": self.service_id}
            await self._try(lambda: self._gateway.control("POST", "reset", body=body))

    async def _try(self, step: Callable[[], T]) -> T | None:
        """Run a step in a thread and return its result; None if it or an earlier step failed."""
        if self.problem is None:
            try:
                return await asyncio.to_thread(step)
            except CommandFailed as failure:
                self.problem = failure.message
            except MISREAD_ERRORS as error:
                self.problem = f"{self._gateway.address} answers with unknown fields ({error})"
        return None

    def _refuse_production(self) -> None:
        if self._gateway.control("GET", "networks").document["networks"]:
            raise CommandFailed(
                f"{self._gateway.address} is in production, so the doctor makes no payments in it"
            )

    def _make_payment(self, transaction: TransactionRecord) -> str:
        self._transaction_ids.add(transaction.transaction_id)
        ids = {"service_id": self.service_id, "transaction_id": transaction.transaction_id}
        override_body = {
            "match": ids,
            "outcome": {"status": Status.PENDING.value},
            "callback": {"drop": True},
        }
        override_id = self._gateway.control("POST", "overrides", body=override_body).document["id"]
        try:
            self._pay(transaction)
        finally:
            self._gateway.control("DELETE", "overrides", override_id)
        path = ("transactions", *ids.values(), "settle")
        settled = self._gateway.control("POST", *path, body={"status": transaction.status.value})
        return str(settled.document["network_transaction_id"])

    def _pay(self, transaction: TransactionRecord) -> None:
        """Send the request. Raises `CommandFailed` unless the gateway accepts it."""
        payment = transaction.payment
        body = Operation.COLLECT.sample(
            payment.service_id,
            "",
            transaction_id=payment.transaction_id,
            callback_url=transaction.callback_address,
            request_time=f"{transaction.initiated_at:%Y-%m-%d %H:%M:%S}",
        )
        body["reference"] = payment.reference
        credentials = self._client.client_key, self._client.secret_key
        answer = self._gateway.call(Operation.COLLECT.row.path, body, credentials).document
        if answer["response_code"] != Code.RECEIVED:
            answered = f"{answer['response_code']} {answer['response_message']}"
            raise CommandFailed(f"{self._gateway.address} rejects a sample payment: {answered}")

    def _other_service(self) -> int | None:
        search = {"match": {"operation": Operation.STATUS.value}, "limit": _MAX_SEARCHED}
        found = self._gateway.control("POST", "requests", "find", body=search).document["requests"]
        services = (
            int(each["service_id"])
            for each in found
            if each["transaction_id"] in self._transaction_ids and each["service_id"] is not None
        )
        return next((each for each in services if each != self.service_id), None)
