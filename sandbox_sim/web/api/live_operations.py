"""The paths of the interface for clients of mode P: real networks, real money. Source: D32, D39.

No override and no fault applies here. Amounts are exact, from the text of the JSON number.
"""

from collections.abc import Awaitable, Callable, Mapping

from sandbox_sim.domain import money
from sandbox_sim.domain.response_codes import Reply
from sandbox_sim.gateway.networks.live_queries import LiveQueries
from sandbox_sim.gateway.networks.live_sms import LiveSms
from sandbox_sim.gateway.payments.submit import Payments
from sandbox_sim.web.api import live_request_models as models, request_models
from sandbox_sim.web.api.operations import BadRequest, Call

Handler = Callable[[Call], Awaitable[Reply]]


class LiveOperations:
    """The handlers of the nine paths for mode P."""

    def __init__(self, payments: Payments, queries: LiveQueries, sms: LiveSms) -> None:
        self._payments = payments
        self._queries = queries
        self._sms = sms

    def make_payment(self, call: Call) -> Awaitable[Reply]:
        """Collection, card, deposit and payout."""
        return self._pay(call, call.parsed_payment(models.MAKE_LIVE_PAYMENT))

    def pay_bill(self, call: Call) -> Awaitable[Reply]:
        """Bill payment."""
        return self._pay(call, call.parsed(request_models.Bill))

    def send_airtime(self, call: Call) -> Awaitable[Reply]:
        """Airtime."""
        return self._pay(call, call.parsed(models.LiveAirtime))

    def _pay(self, call: Call, body: request_models.PaymentBody) -> Awaitable[Reply]:
        call.operation, call.transaction_id = body.operation, body.transaction_id
        payment = body.payment()
        amount = money.exact_amount(call.raw)
        if amount is None:
            raise BadRequest("amount must be a number")
        problem = money.problem_of(amount, payment.currency_code)
        if problem is not None:
            raise BadRequest(f"amount {problem}")
        exact, details = payment._replace(amount=amount), models.details_of(body)
        return self._payments.submit(
            exact,
            call.client,
            call.received_at,
            call.public_address,
            details,
            is_plain=call.is_plain,
        )

    async def get_transaction_status(self, call: Call) -> Reply:
        """Transaction status."""
        body = call.parsed(request_models.StatusQuery)
        call.transaction_id = body.transaction_id
        return await self._queries.transaction_status(body.service_id, body.transaction_id)

    async def get_account_balance(self, call: Call) -> Reply:
        """Account balance."""
        body = call.parsed(request_models.BalanceQuery)
        return await self._queries.account_balance(body.service_id)

    async def sms_send(self, call: Call) -> Reply:
        """Single SMS."""
        request = call.parsed(request_models.SmsSend).request()
        return await self._sms.send(request, call.public_address)

    async def sms_bulk(self, call: Call) -> Reply:
        """Bulk SMS."""
        request = call.parsed(request_models.SmsBulk).request()
        return await self._sms.send(request, call.public_address)

    async def sms_history(self, call: Call) -> Reply:
        """SMS history."""
        return await self._sms.history(call.parsed(request_models.SmsHistory).query())

    async def sms_balance(self, call: Call) -> Reply:
        """SMS balance."""
        body = call.parsed(request_models.SmsBalanceQuery)
        return await self._sms.balance(body.service_id)

    def by_path(self) -> Mapping[str, Handler]:
        """The handler of each path."""
        return {
            "/make_payment": self.make_payment,
            "/pay_bill": self.pay_bill,
            "/send_airtime": self.send_airtime,
            "/get_transaction_status": self.get_transaction_status,
            "/get_account_balance": self.get_account_balance,
            "/sms/send": self.sms_send,
            "/sms/bulk": self.sms_bulk,
            "/sms/history": self.sms_history,
            "/sms/balance": self.sms_balance,
        }
