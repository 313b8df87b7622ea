"""Makes the payments of the doctor's samples at a running gateway, by its public interface.

So the gateway answers a receiver that asks for the status of a payment. An override keeps each
payment pending and drops its callback; then it is settled by hand. That works with every setting,
and on a frozen clock.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from sandbox_sim.callbacks.doctor import OWN_SERVICE, service_of_samples
from sandbox_sim.cli.client import MISREAD, CommandFailed, RunningGateway
from sandbox_sim.operations import Operation
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.clients import SANDBOX_CLIENT, ServiceMode
from sandbox_sim.values.response_codes import Code

T = TypeVar("T")

# How many of the newest status queries are searched for those of the receiver.
_SEARCHED: Final = 1000


class GatewayPayments:
    """Makes payments until one fails; then `problem` says why, and the others are not made."""

    def __init__(self, gateway: RunningGateway, settings: Settings, service_id: int | None) -> None:
        clients = (entry.client() for entry in settings.credentials)
        sandbox = next((each for each in clients if each.mode is ServiceMode.SANDBOX), None)
        self.problem = None if sandbox else "the configuration has no credentials of mode S"
        self._client = sandbox or SANDBOX_CLIENT
        self._gateway = gateway
        self._made: set[str] = set()
        self.service_id = service_of_samples(self._client, service_id)

    async def open(self) -> None:
        """Look whether the gateway runs, and stop where it is in production."""
        await self._try(self._refuse_production)

    async def make(self, transaction: TransactionRecord) -> TransactionRecord:
        """Make a payment that has ended as this one; returns it with the gateway's id of it."""
        network_id = await self._try(lambda: self._make(transaction))
        if network_id is None:
            return transaction
        return transaction._replace(network_transaction_id=network_id)

    async def other_service(self) -> int | None:
        """The service that the receiver asked about in place of this one; None if it did not."""
        return await self._try(self._other_service)

    async def close(self) -> None:
        """Delete what a service that only the doctor uses has at the gateway."""
        if self._made and self.service_id == OWN_SERVICE:
            await self._try(self._reset)

    async def _try(self, step: Callable[[], T]) -> T | None:
        """The result of a step in a thread; None where it, or one before it, failed."""
        if self.problem is None:
            try:
                return await asyncio.to_thread(step)
            except CommandFailed as failure:
                self.problem = failure.message
            except MISREAD as error:
                self.problem = f"{self._gateway.address} answers with other fields ({error})"
        return None

    def _refuse_production(self) -> None:
        if self._gateway.control("GET", "networks").document["networks"]:
            raise CommandFailed(
                f"{self._gateway.address} is in production mode, so the doctor makes no payments "
                "there"
            )

    def _reset(self) -> None:
        self._gateway.control("POST", "reset", body={"service_id": self.service_id})

    def _make(self, transaction: TransactionRecord) -> str:
        self._made.add(transaction.transaction_id)
        ids = {"service_id": self.service_id, "transaction_id": transaction.transaction_id}
        kept_pending = {
            "match": ids,
            "outcome": {"status": Status.PENDING.value},
            "callback": {"drop": True},
        }
        override = self._gateway.control("POST", "overrides", body=kept_pending).document["id"]
        try:
            self._pay(transaction)
        finally:
            self._gateway.control("DELETE", "overrides", override)
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
            says = f"{answer['response_code']} {answer['response_message']}"
            raise CommandFailed(f"{self._gateway.address} rejects the payment of a sample: {says}")

    def _other_service(self) -> int | None:
        search = {"match": {"operation": Operation.STATUS.value}, "limit": _SEARCHED}
        found = self._gateway.control("POST", "requests", "find", body=search).document["requests"]
        asked = (
            int(each["service_id"])
            for each in found
            if each["transaction_id"] in self._made and each["service_id"] is not None
        )
        return next((each for each in asked if each != self.service_id), None)
