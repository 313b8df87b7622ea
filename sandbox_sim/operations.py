"""The twelve operations: one row for each holds what is particular to it.

Source: service.1 to service.7, endpoint.1 to endpoint.12, sandbox.3 to sandbox.7, D12, D28. The
tables of other modules are made from these rows when they are imported. The fields of a request are
in `web/api/request_models.py`.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from sandbox_sim.values.response_codes import Code, Reply
from sandbox_sim.values.vocabulary import BILL_PRODUCTS, PaymentOption, Wallet


class Party(Enum):
    """Who pays or is paid; the sandbox rules for the number depend on it."""

    PHONE = "a phone"
    CARD = "a card"
    PAYEE = "a phone, a bank account or a card, as payment_option says"
    BILL_ACCOUNT = "an account at a biller"


class PaymentRow(NamedTuple):
    """What is particular to a payment, which leaves a transaction and is followed by a callback.

    rule: the rule of sandbox that accepts it.
    sample_amounts: the least and the most that made-up people pay, in pesewas.
    options: the values of `payment_option` that choose it at `make_payment`, the usual one first;
    empty where it has a path of its own, which needs no `payment_option`.
    products: what can be paid for with it, as `nw`, where the party is an account at a biller.
    """

    trans_type: str
    party: Party
    rule: str
    sample_amounts: tuple[int, int]
    options: tuple[PaymentOption, ...] = ()
    products: tuple[str, ...] = ()

    @property
    def usual_mode(self) -> str:
        """The `payment_mode` where the client leaves the choice to us (D28)."""
        return self.options[0].value if self.options else self.trans_type

    @property
    def party_field(self) -> str:
        """The field of a request that names the party."""
        return "account_number" if self.party is Party.BILL_ACCOUNT else "customer_number"


class OperationRow(NamedTuple):
    """What is particular to an operation.

    name: in commands, in the control API and in routes.
    success: the response code of an accepted request; `CATALOGUE` has its HTTP status.
    title: on pages.
    summary: what a client asks for, in the API description.
    rejections: the codes of the rules that apply to it, beside those of every operation.
    valid: the fields of a valid request, without `trans_type` and those that every request or every
    payment has.
    failing: those that make it fail; empty for a query.
    spends: the wallet that it is taken from when it is accepted.
    fills: the wallet that gets it with success.
    """

    name: str
    path: str
    success: str
    title: str
    summary: str
    rejections: tuple[str, ...] = ()
    valid: Mapping[str, Any] = MappingProxyType({})
    failing: Mapping[str, Any] = MappingProxyType({})
    spends: Wallet | None = None
    fills: Wallet | None = None
    payment: PaymentRow | None = None


_MAKE_PAYMENT: Final = "/make_payment"

_MOMO: Final = (PaymentOption.MOBILE_MONEY,)

_WALLET: Final = {"nw": "MTN", "payment_option": "MOM", "customer_number": "0244000001"}

_DECLINED: Final = {"customer_number": "0244000009"}

_NUMBER: Final = (Code.DECLINED, Code.NOT_ALLOWED, Code.DUPLICATE)

_CAPPED: Final = (Code.DECLINED, Code.AMOUNT_ABOVE_CAP, Code.NOT_ALLOWED, Code.DUPLICATE)

_SMS: Final = (
    Code.SMS_NUMBER_NOT_ALLOWED,
    Code.SMS_NOT_PROCESSED,
    Code.INSUFFICIENT_SMS_UNITS,
)


class Operation(StrEnum):
    """The operations of the gateway; the six payments first."""

    _value_: str
    row: OperationRow
    is_sms: bool  # one of the four SMS operations, which answer HTTP 200 (D6)

    def __new__(cls, *fields: Any) -> Self:
        """The operation of a row, of which Python passes the fields."""
        own_row = OperationRow(*fields)
        operation = str.__new__(cls, own_row.name)
        operation._value_ = own_row.name
        operation.row = own_row
        operation.is_sms = own_row.path.startswith("/sms/")
        return operation

    def sample(
        self,
        service_id: int,
        inbox: str,
        *,
        transaction_id: str,
        callback_url: str,
        request_time: str,
        fail: bool = False,
    ) -> dict[str, Any]:
        """The body of a valid request; with `fail`, of one that fails.

        inbox: the address of the inboxes; after a card payment the customer goes to one.
        """
        fields = {**self.row.valid, **(self.row.failing if fail else {})}
        if self.row.payment is None:
            return {"service_id": service_id, **fields}
        if self is Operation.CARD:
            fields["landing_page"] = f"{inbox}/thanks"
        return {
            "service_id": service_id,
            "reference": "Order 1001",
            "transaction_id": transaction_id,
            "amount": 10.5,
            "trans_type": self.row.payment.trans_type,
            **fields,
            "nickname": "Ama Mensah",
            "callback_url": callback_url,
            "request_time": request_time,
        }

    COLLECT = OperationRow(
        "collect", _MAKE_PAYMENT, Code.RECEIVED, title="Collection", summary="collect",
        rejections=_CAPPED, valid=_WALLET, failing=_DECLINED, fills=Wallet.COLLECTION,
        payment=PaymentRow("CTM", Party.PHONE, "sandbox.3", (500, 50_000), _MOMO),
    )  # fmt: skip
    CARD = OperationRow(
        "card", _MAKE_PAYMENT, Code.SUCCESS, title="Card", summary="take a card payment",
        rejections=(Code.AMOUNT_ABOVE_CAP, Code.NOT_ALLOWED, Code.DUPLICATE),
        valid={
            "nw": "VIS", "payment_option": "CRD", "customer_number": "4111111111111111",
            "currency_code": "GHS", "currency_val": "10.50",
        },
        # The last digit does not decline a card. Sandbox rejects one that is not a test card.
        failing={"customer_number": "4000000000000002"},
        fills=Wallet.COLLECTION,
        payment=PaymentRow(
            "CTM", Party.CARD, "sandbox.6", (2_000, 150_000),
            (PaymentOption.CARD, PaymentOption.CARD_AND_MOBILE_MONEY),
        ),
    )  # fmt: skip
    DEPOSIT = OperationRow(
        "deposit", _MAKE_PAYMENT, Code.RECEIVED,
        title="Deposit", summary="deposit to the payout wallet",
        rejections=_NUMBER, valid=_WALLET, failing=_DECLINED, fills=Wallet.PAYOUT,
        payment=PaymentRow("DTTW", Party.PHONE, "sandbox.3", (1_000, 40_000), _MOMO),
    )  # fmt: skip
    PAYOUT = OperationRow(
        "payout", _MAKE_PAYMENT, Code.RECEIVED, title="Payout", summary="pay out",
        rejections=(Code.INSUFFICIENT_BALANCE, *_NUMBER),
        valid=_WALLET, failing=_DECLINED, spends=Wallet.PAYOUT,
        payment=PaymentRow(
            "MTC", Party.PAYEE, "sandbox.5", (1_000, 20_000),
            (PaymentOption.MOBILE_MONEY, PaymentOption.BANK, PaymentOption.CARD),
        ),
    )  # fmt: skip
    BILL = OperationRow(
        "bill", "/pay_bill", Code.RECEIVED, title="Bill", summary="pay a bill",
        rejections=_CAPPED, spends=Wallet.PAYOUT,
        valid={"nw": "ECG", "account_number": "200000000001"},
        failing={"account_number": "200000000009"},
        payment=PaymentRow(
            "BLP", Party.BILL_ACCOUNT, "sandbox.7", (1_500, 30_000), products=BILL_PRODUCTS
        ),
    )  # fmt: skip
    AIRTIME = OperationRow(
        "airtime", "/send_airtime", Code.RECEIVED, title="Airtime", summary="send airtime",
        rejections=_CAPPED, spends=Wallet.AIRTIME,
        valid={"nw": "MTN", "customer_number": "0244000001"}, failing=_DECLINED,
        payment=PaymentRow("ATP", Party.PHONE, "sandbox.3", (100, 5_000)),
    )  # fmt: skip
    STATUS = OperationRow(
        "status", "/get_transaction_status", Code.SUCCESS,
        title="Status query", summary="show the status of a transaction",
        rejections=(Code.NO_SUCH_TRANSACTION,), valid={"transaction_id": ""},
    )  # fmt: skip
    BALANCE = OperationRow(
        "balance", "/get_account_balance", Code.SUCCESS,
        title="Balance query", summary="show the balances of a service",
        valid={"request_time": ""},
    )  # fmt: skip
    SMS = OperationRow(
        "sms", "/sms/send", Code.SMS_RECEIVED, title="SMS", summary="send one SMS",
        rejections=(Code.NO_SENDER_ID, *_SMS), spends=Wallet.SMS,
        valid={
            "customer_number": "0244000001", "msg_body": "Your code is 1234", "sender_id": "Shop",
        },
        failing=_DECLINED,
    )  # fmt: skip
    BULK_SMS = OperationRow(
        "bulk-sms", "/sms/bulk", Code.SMS_RECEIVED,
        title="Bulk SMS", summary="send an SMS to up to 1,000 recipients",
        rejections=(Code.NO_SENDER_ID, Code.BAD_RECIPIENTS, Code.TOO_MANY_RECIPIENTS, *_SMS),
        spends=Wallet.SMS,
        valid={
            "recipients": ["0244000001", "0244000002"],
            "msg_body": "Sale today", "sender_id": "Shop",
        },
        failing={"recipients": ["0244000001", "0244000009"]},
    )  # fmt: skip
    SMS_HISTORY = OperationRow(
        "sms-history", "/sms/history", Code.SMS_HISTORY,
        title="SMS history", summary="list SMS, newest first",
    )  # fmt: skip
    SMS_BALANCE = OperationRow(
        "sms-balance", "/sms/balance", Code.SMS_BALANCE,
        title="SMS balance", summary="show the SMS units of a service",
    )  # fmt: skip


# The payments, in the order of the interface.
PAYMENTS: Final[Mapping[Operation, PaymentRow]] = {
    each: each.row.payment for each in Operation if each.row.payment is not None
}

# Why a payment that passes every check is accepted.
_WHY_PHONE_ACCEPTED: Final = "allowlisted number, last digit 0 to 8"

_WHY_ACCEPTED: Final[Mapping[Party, str]] = {
    Party.PHONE: _WHY_PHONE_ACCEPTED,
    Party.PAYEE: _WHY_PHONE_ACCEPTED,
    Party.CARD: "test card",
    Party.BILL_ACCOUNT: "account of the biller, last digit 0 to 8",
}

# The reply to a payment that passes every check; that to a card has a message of its own (D8).
ACCEPTANCE: Final[Mapping[Operation, Reply]] = {
    operation: Reply(
        operation.row.success,
        row.rule,
        _WHY_ACCEPTED[row.party],
        message="Successful" if operation.row.success == Code.SUCCESS else None,
    )
    for operation, row in PAYMENTS.items()
}

# The operations that do something; the others are queries.
ACTIONS: Final = tuple(each for each in Operation if each.row.failing)

# What production gives to a network; bulk SMS are given as single ones.
NETWORK_OPERATIONS: Final = (*PAYMENTS, Operation.SMS)

OPERATIONS_BY_PATH: Final[Mapping[str, tuple[Operation, ...]]] = {
    path: tuple(each for each in Operation if each.row.path == path)
    for path in dict.fromkeys(each.row.path for each in Operation)
}

# The operations of `make_payment`, by `trans_type` and `payment_option`.
MAKE_PAYMENT_OPERATIONS: Final[Mapping[tuple[str, str], Operation]] = {
    (payment.trans_type, option.value): operation
    for operation, payment in PAYMENTS.items()
    for option in payment.options
}


def make_payment_operation(trans_type: object, payment_option: object) -> Operation | None:
    """The one operation of `make_payment` that these two fields allow; None if none, or several.

    payment_option: None stands for a missing one, which is enough where `trans_type` decides.
    """
    candidates = {
        operation
        for (row_trans_type, option), operation in MAKE_PAYMENT_OPERATIONS.items()
        if row_trans_type == trans_type and payment_option in (None, option)
    }
    return candidates.pop() if len(candidates) == 1 else None
