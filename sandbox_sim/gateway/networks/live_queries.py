"""The queries of clients in mode P. Source: service.6, D32, D39."""

from decimal import Decimal
from functools import partial

from sandbox_sim.domain.double_entry import accounts
from sandbox_sim.domain.ledger import Account as Wallet
from sandbox_sim.domain.payments.transactions import Status, Transaction, status_record
from sandbox_sim.domain.response_codes import Code, Reply
from sandbox_sim.domain.vocabulary import DEFAULT_CURRENCY
from sandbox_sim.gateway.ports import Store, Unit

_NOT_FOUND = "Transaction not found"


class LiveQueries:
    """Answers the queries of clients about their services; nothing of mode P expires."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def transaction_status(self, service_id: int, transaction_id: str) -> Reply:
        """`get_transaction_status`."""
        found, reason = await self._store.run(partial(_found, service_id, transaction_id))
        if found is None:
            why = "the service made no such transaction in mode P"
            return Reply(Code.NOT_FOUND, "D32", why, _NOT_FOUND)
        fields = {"response_data": status_record(found, reason)}
        return Reply(Code.SUCCESS, "D39", f"status {found.status}", fields=fields)

    async def account_balance(self, service_id: int) -> Reply:
        """`get_account_balance`: what is available, in the base currency."""
        balances = await self._store.run(lambda unit: unit.book_balances(service_id))
        record = {
            f"{wallet}_balance": balances.get(
                accounts.available(service_id, wallet, DEFAULT_CURRENCY), Decimal(0)
            )
            for wallet in Wallet
        }
        return Reply(Code.SUCCESS, "D39", "the books", fields={"response_data": record})


async def _found(
    service_id: int, transaction_id: str, unit: Unit
) -> tuple[Transaction | None, str]:
    """A transaction; and of one that failed, the reason that its last network gave."""
    found = await unit.live_transaction(service_id, transaction_id)
    if found is None or found.status is not Status.FAILED:
        return found, ""
    attempts = await unit.attempts_of(found.network_transaction_id)
    return found, attempts[-1].reason if attempts else ""
