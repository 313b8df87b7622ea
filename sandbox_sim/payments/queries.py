"""The queries `get_transaction_status` and `get_account_balance`, in both modes.

Source: service.6, D32, D39.
"""

from functools import partial

from sandbox_sim.ledger.accounts import Accounts
from sandbox_sim.ledger.movements import balance_number
from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.records.ledger import ZERO, wallet_of
from sandbox_sim.records.transactions import (
    STATUS_RETENTION,
    Status,
    TransactionRecord,
    answers_status,
    status_answer_why,
    status_record,
)
from sandbox_sim.values.clients import ServiceMode
from sandbox_sim.values.response_codes import Code, Reply
from sandbox_sim.values.vocabulary import Wallet


class Queries:
    """Answers the queries of clients about their services."""

    def __init__(self, store: Store, clock: Clock, accounts: Accounts) -> None:
        self._store = store
        self._clock = clock
        self._accounts = accounts

    async def transaction_status(self, service_id: int, transaction_id: str) -> Reply:
        """`get_transaction_status`."""
        transaction = await self._store.run(
            lambda unit: unit.transaction(service_id, transaction_id)
        )
        if transaction is None or not answers_status(transaction, self._clock.now()):
            minutes = STATUS_RETENTION.total_seconds() / 60
            why = f"the service has no such transaction from the last {minutes:.0f} minutes"
            return Reply(Code.NO_SUCH_TRANSACTION, "sandbox.8", why)
        why = status_answer_why(transaction.status)
        fields = {"response_data": status_record(transaction)}
        return Reply(Code.SUCCESS, "sandbox.8", why, fields=fields)

    async def account_balance(self, service_id: int) -> Reply:
        """`get_account_balance`."""

        async def work(unit: Unit) -> dict[str, object]:
            now = self._clock.now()
            return {
                f"{wallet}_balance": balance_number(
                    await self._accounts.reported_balance(unit, service_id, wallet, now)
                )
                for wallet in Wallet
            }

        record = await self._store.run(work)
        rule = "D21" if self._accounts.live else "sandbox.9"
        why = "live balances" if self._accounts.live else "the fixed balances of the interface"
        return Reply(Code.SUCCESS, rule, why, fields={"response_data": record})


_NOT_FOUND_MESSAGE = "Transaction not found"


class LiveQueries:
    """Answers the queries of clients of mode P, where transactions never expire."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def transaction_status(self, service_id: int, transaction_id: str) -> Reply:
        """`get_transaction_status`."""
        transaction, reason = await self._store.run(
            partial(_transaction_and_reason, service_id, transaction_id)
        )
        if transaction is None:
            why = "the service has no such transaction in mode P"
            return Reply(Code.NOT_FOUND, "D32", why, _NOT_FOUND_MESSAGE)
        fields = {"response_data": status_record(transaction, reason)}
        return Reply(Code.SUCCESS, "D39", status_answer_why(transaction.status), fields=fields)

    async def account_balance(self, service_id: int) -> Reply:
        """`get_account_balance`: what is available, in the base currency."""
        mode = ServiceMode.PRODUCTION
        balances = await self._store.run(lambda unit: unit.balances(mode, service_id))
        by_wallet = {wallet: balances.get(wallet_of(mode, service_id, wallet)) for wallet in Wallet}
        record = {
            f"{wallet}_balance": ZERO if balance is None else balance.available
            for wallet, balance in by_wallet.items()
        }
        return Reply(Code.SUCCESS, "D39", "the ledger balances", fields={"response_data": record})


async def _transaction_and_reason(
    service_id: int, transaction_id: str, unit: Unit
) -> tuple[TransactionRecord | None, str]:
    """A transaction, and the reason that its last network gave if it failed."""
    transaction = await unit.transaction(service_id, transaction_id, ServiceMode.PRODUCTION)
    if transaction is None or transaction.status is not Status.FAILED:
        return transaction, ""
    attempts = await unit.attempts_of(transaction.network_transaction_id)
    return transaction, attempts[-1].reason if attempts else ""
