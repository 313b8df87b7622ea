"""The checks of a receiver: the callbacks that it is sent, and which judge assesses each response.

Source: delivery.1, delivery.2, D27, D29 to D31. A refusal says nothing about a receiver that
refuses genuine callbacks too. So each profile has to be acknowledged once (`FIRST_CHECK`) before
the other checks of that profile are made (`FURTHER_CHECKS`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from sandbox_sim.callbacks import bodies, receiver_verdicts
from sandbox_sim.callbacks.receiver_verdicts import Assessment, Judge, Verdict
from sandbox_sim.operations import Operation
from sandbox_sim.records.callbacks import (
    SIGNATURE_HEADER,
    CallbackRecord,
    Profile,
    ReceiverResponse,
)
from sandbox_sim.records.transactions import Payment, Status, TransactionRecord
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY, PaymentOption

# The beginning of the transaction id of every sample.
SAMPLE_PREFIX: Final = "DOCTOR-"


# Why a check was not made.
NO_CALLBACK_ARRIVED: Final = "no callback comes through"

FIRST_NOT_ACKNOWLEDGED: Final = "tells nothing until the successful one is acknowledged"

SIGNING_OFF: Final = "callbacks are not signed here (setting sign_callbacks)"


class CallbackExchange(NamedTuple):
    """A callback that was sent, and the response to it."""

    callback: CallbackRecord
    response: ReceiverResponse


class SampleCallback(NamedTuple):
    """The data of one sample callback.

    transaction: pending, and used for this callback only.
    """

    transaction: TransactionRecord
    profile: Profile
    secret_key: str | None
    callback_id: str
    at: datetime

    def ended(self, status: Status) -> CallbackRecord:
        """The callback that reports this final status of the transaction."""
        ended = self.transaction.moved(status, self.at)
        return bodies.compose(ended, self.profile, self.secret_key, self.callback_id, self.at)


@dataclass(frozen=True, slots=True)
class Check:
    """One kind of callback, and how the response of a healthy receiver is judged.

    again: the first callback of the profile is sent once more, byte for byte, and none is made.
    forged: the gateway would not send it; only the signature shows that, or a status query.
    payment_ends: the status of the payment, which a status query answers.
    """

    name: str
    sends: str
    make: Callable[[SampleCallback], CallbackRecord]
    judge: Judge
    payment_ends: Status
    again: bool = False
    forged: bool = False


class Finding(NamedTuple):
    """The result of one check; `profile` and `exchange` are None where nothing was sent for it."""

    check: str
    assessment: Assessment
    sends: str = ""
    profile: Profile | None = None
    exchange: CallbackExchange | None = None


def reference_of(callback: CallbackRecord) -> str:
    """The `reference` of the sample payment of a callback: the same text as its id."""
    return callback.transaction_id


def noted(finding: Finding) -> Finding:
    """The finding about a profile that the gateway does not send: nothing of it is wrong."""
    if finding.assessment.verdict not in {Verdict.WRONG, Verdict.WARNING}:
        return finding
    return finding._replace(assessment=finding.assessment._replace(verdict=Verdict.NOTE))


def skipped(check: Check, why: str, profile: Profile | None = None) -> Finding:
    """The finding of a check that was not made."""
    return Finding(check.name, Assessment(Verdict.SKIPPED, why), check.sends, profile)


def sample_payment(url: str, identifier: str, service_id: int) -> Payment:
    """A collection that no client requested, with an id that is recognisable as a sample."""
    return Payment(
        operation=Operation.COLLECT,
        service_id=service_id,
        transaction_id=f"{SAMPLE_PREFIX}{identifier}",
        reference=f"{SAMPLE_PREFIX}{identifier}",
        amount=Decimal("10.50"),
        nw="MTN",
        party="0244000001",
        payment_mode=PaymentOption.MOBILE_MONEY,
        currency_code=DEFAULT_CURRENCY,
        callback_url=url,
    )


def successful(sample: SampleCallback) -> CallbackRecord:
    """A successful payment (000)."""
    return sample.ended(Status.SUCCESSFUL)


def failed(sample: SampleCallback) -> CallbackRecord:
    """A failed payment, status 001 (D31)."""
    return sample.ended(Status.FAILED)


def cancelled(sample: SampleCallback) -> CallbackRecord:
    """A cancelled payment, status 003 (D31)."""
    return sample.ended(Status.CANCELLED)


def unsigned(sample: SampleCallback) -> CallbackRecord:
    """A forged callback without a signature, as anyone could send it."""
    return successful(sample._replace(secret_key=None))


def signed_by_another(sample: SampleCallback) -> CallbackRecord:
    """A forged callback that is signed with another key."""
    return successful(sample._replace(secret_key=f"not {sample.secret_key}"))


def tampered(sample: SampleCallback) -> CallbackRecord:
    """A failed payment whose body was changed to a success on the way."""
    return failed(sample)._replace(body=successful(sample).body)


# The checks of a failed payment, and of the orders behind a receiver (`doctor --paid`).
FAILED: Final = "failed"

PAID: Final = "paid"

NOT_PAID: Final = "failed_not_paid"


FIRST_CHECK: Final = Check(
    "successful",
    sends="a successful payment",
    make=successful,
    judge=receiver_verdicts.assess_first,
    payment_ends=Status.SUCCESSFUL,
)


FURTHER_CHECKS: Final = (
    Check(
        "repeated",
        sends="the same successful payment once more",
        make=successful,
        judge=receiver_verdicts.assess_repeat,
        payment_ends=Status.SUCCESSFUL,
        again=True,
    ),
    Check(
        FAILED,
        sends="a failed payment",
        make=failed,
        judge=receiver_verdicts.assess_acknowledgement,
        payment_ends=Status.FAILED,
    ),
    Check(
        "cancelled",
        sends="a cancelled payment",
        make=cancelled,
        judge=receiver_verdicts.assess_acknowledgement,
        payment_ends=Status.CANCELLED,
    ),
    Check(
        "no_signature",
        sends=f"a successful payment without {SIGNATURE_HEADER}",
        make=unsigned,
        judge=receiver_verdicts.expect_refusal(receiver_verdicts.WANT_SIGNATURE),
        payment_ends=Status.FAILED,
        forged=True,
    ),
    Check(
        "wrong_signature",
        sends="a successful payment, signed with another key",
        make=signed_by_another,
        judge=receiver_verdicts.expect_refusal(receiver_verdicts.CHECK_SIGNATURE),
        payment_ends=Status.FAILED,
        forged=True,
    ),
    Check(
        "changed_body",
        sends="a failed payment made successful, with the signature of the failed one",
        make=tampered,
        judge=receiver_verdicts.expect_refusal(receiver_verdicts.CHECK_SIGNATURE),
        payment_ends=Status.FAILED,
        forged=True,
    ),
)
