"""A checkup of a receiver: the callbacks that it is sent, and who judges each answer.

Source: delivery.1, delivery.2, D27, D29 to D31. Only of a receiver that takes what is genuine does
a refusal tell anything, so each profile has to be acknowledged once (`FIRST`) before it is checked
any further (`FOLLOWING`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from sandbox_sim.domain.callbacks import callbacks, receiver_verdicts
from sandbox_sim.domain.callbacks.callbacks import SIGNATURE_HEADER, Answer, Callback, Profile
from sandbox_sim.domain.callbacks.receiver_verdicts import Judge, Opinion, Verdict
from sandbox_sim.domain.payments.payment import Payment
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.vocabulary import DEFAULT_CURRENCY, Operation, PaymentOption

# What every sample's transaction id begins with.
MARK: Final = "DOCTOR-"

# Why a check was not made.
NOT_THROUGH: Final = "no callback comes through"
NOT_TAKEN: Final = "tells nothing until the successful one is acknowledged"
NOT_SIGNED: Final = "callbacks are not signed here (setting sign_callbacks)"


class Exchange(NamedTuple):
    """A callback that was sent, and what came back."""

    callback: Callback
    answer: Answer


class Sample(NamedTuple):
    """What a callback of a checkup is made of; `transaction` is pending, and this one's alone."""

    transaction: Transaction
    profile: Profile
    secret_key: str | None
    callback_id: str
    at: datetime

    def ended(self, status: Status) -> Callback:
        """The callback that tells how the transaction ended."""
        ended = self.transaction.moved(status, self.at)
        return callbacks.compose(ended, self.profile, self.secret_key, self.callback_id, self.at)


@dataclass(frozen=True, slots=True)
class Check:
    """One kind of callback, in words and in bytes, and what a healthy receiver does with it.

    again: the first callback of the profile goes out once more, byte for byte, and none is made.
    forged: the gateway would not send it, and its signature is all that tells.
    """

    name: str
    sends: str
    make: Callable[[Sample], Callback]
    judge: Judge
    again: bool = False
    forged: bool = False


class Finding(NamedTuple):
    """What one check found out; `profile` and `exchange` None where nothing was sent for it."""

    check: str
    opinion: Opinion
    sends: str = ""
    profile: Profile | None = None
    exchange: Exchange | None = None


def skipped(check: Check, why: str, profile: Profile | None = None) -> Finding:
    """The finding where a check was not made."""
    return Finding(check.name, Opinion(Verdict.SKIPPED, why), check.sends, profile)


def payment(url: str, identifier: str) -> Payment:
    """A collection that nobody asked for, with an id that nobody takes for a real one."""
    return Payment(
        operation=Operation.COLLECT,
        service_id=1,
        transaction_id=f"{MARK}{identifier}",
        reference=f"{MARK}{identifier}",
        amount=Decimal("10.50"),
        nw="MTN",
        party="0244000001",
        payment_mode=PaymentOption.MOBILE_MONEY,
        currency_code=DEFAULT_CURRENCY,
        callback_url=url,
    )


def successful(sample: Sample) -> Callback:
    """What every payment hopes for."""
    return sample.ended(Status.SUCCESSFUL)


def failed(sample: Sample) -> Callback:
    """Status 001 (D31)."""
    return sample.ended(Status.FAILED)


def cancelled(sample: Sample) -> Callback:
    """Status 003 (D31)."""
    return sample.ended(Status.CANCELLED)


def unsigned(sample: Sample) -> Callback:
    """As anybody could make it."""
    return successful(sample._replace(secret_key=None))


def signed_by_another(sample: Sample) -> Callback:
    """As somebody with a key could make it, but not with this one."""
    return successful(sample._replace(secret_key=f"not {sample.secret_key}"))


def changed(sample: Sample) -> Callback:
    """As somebody on the way could make it who would like to be paid for."""
    return failed(sample)._replace(body=successful(sample).body)


FIRST: Final = Check(
    "successful",
    sends="a successful payment",
    make=successful,
    judge=receiver_verdicts.acknowledged,
)

FOLLOWING: Final = (
    Check(
        "repeated",
        sends="the same successful payment once more",
        make=successful,
        judge=receiver_verdicts.answered_alike,
        again=True,
    ),
    Check(
        "failed",
        sends="a failed payment",
        make=failed,
        judge=receiver_verdicts.acknowledged,
    ),
    Check(
        "cancelled",
        sends="a cancelled payment",
        make=cancelled,
        judge=receiver_verdicts.acknowledged,
    ),
    Check(
        "no_signature",
        sends=f"a successful payment without {SIGNATURE_HEADER}",
        make=unsigned,
        judge=receiver_verdicts.refused(receiver_verdicts.WANT_SIGNATURE),
        forged=True,
    ),
    Check(
        "wrong_signature",
        sends="a successful payment, signed with another key",
        make=signed_by_another,
        judge=receiver_verdicts.refused(receiver_verdicts.CHECK_SIGNATURE),
        forged=True,
    ),
    Check(
        "changed_body",
        sends="a failed payment made successful, with the signature of the failed one",
        make=changed,
        judge=receiver_verdicts.refused(receiver_verdicts.CHECK_SIGNATURE),
        forged=True,
    ),
)
