"""The queries `get_transaction_status` and `get_account_balance`. Source: service.6."""

from sandbox_sim.domain import ledger
from sandbox_sim.domain.ledger import Account
from sandbox_sim.domain.payments.transactions import STATUS_RETENTION, status_record
from sandbox_sim.domain.response_codes import Code, Reply
from sandbox_sim.gateway.ledger.accounts import Accounts
from sandbox_sim.gateway.ports import Clock, Store, Unit


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
        if transaction is None:
            minutes = STATUS_RETENTION.total_seconds() / 60
            why = f"the service made no such transaction within the last {minutes:.0f} minutes"
            return Reply(Code.NO_SUCH_TRANSACTION, "sandbox.8", why)
        why = f"status {transaction.status}"
        fields = {"response_data": status_record(transaction)}
        return Reply(Code.SUCCESS, "sandbox.8", why, fields=fields)

    async def account_balance(self, service_id: int) -> Reply:
        """`get_account_balance`."""

        async def work(unit: Unit) -> dict[str, object]:
            now = self._clock.now()
            return {
                f"{account}_balance": ledger.balance_number(
                    await self._accounts.reported(unit, service_id, account, now)
                )
                for account in Account
            }

        record = await self._store.run(work)
        rule = "D21" if self._accounts.live else "sandbox.9"
        why = "live balances" if self._accounts.live else "the interface's figures"
        return Reply(Code.SUCCESS, rule, why, fields={"response_data": record})
