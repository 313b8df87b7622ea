"""Callbacks: their profiles, attempts and delivery state.

Source: service.8, delivery.1, delivery.2, delivery.3, delivery.5, delivery.6, D27 to D31.

A callback is composed once, with the exact bytes that every attempt sends, so `trans_id` and the
signature stay the same over retries.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum, auto
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal, NamedTuple, TypedDict

from sandbox_sim.records.jobs import Job, JobKind
from sandbox_sim.records.listing import values_of
from sandbox_sim.records.retry_schedule import RetrySchedule
from sandbox_sim.values.clients import Client, ServiceMode
from sandbox_sim.values.json_text import viewer
from sandbox_sim.values.redaction import redact_json, redact_text

KEPT_BODY_BYTES: Final = 4096

# How many finished callbacks of one service the store keeps.
KEPT_CALLBACKS: Final = 10_000

SIGNATURE_HEADER: Final = "X-Service-Signature"


Signature = Literal["valid", "invalid", "missing"]


class Profile(StrEnum):
    """The callback bodies that existing clients read (D27).

    `json_text.compact` writes them: an amount that is a number is a `Decimal` in them.
    """

    TRANS = "trans"
    TRANS_BARE = "trans_bare"
    FLAT = "flat"
    EVENT = "event"
    SUPERSET = "superset"


class DeliveryState(StrEnum):
    """The state of a callback (D30).

    pending: never tried.
    retrying: tried, and another attempt follows.
    delivered: acknowledged.
    failed: the last attempt was not acknowledged.
    dropped: an override keeps it from being sent.
    """

    PENDING = "pending"
    RETRYING = "retrying"
    DELIVERED = "delivered"
    FAILED = "failed"
    DROPPED = "dropped"

    @property
    def is_waiting(self) -> bool:
        """Whether an attempt is still to come."""
        return self is DeliveryState.PENDING or self is DeliveryState.RETRYING

    @property
    def is_unacknowledged(self) -> bool:
        """Whether the receiver was called and has not acknowledged."""
        return self is DeliveryState.RETRYING or self is DeliveryState.FAILED


def waiting_state(*, tried: bool) -> DeliveryState:
    """The state of a callback that waits for an attempt."""
    return DeliveryState.RETRYING if tried else DeliveryState.PENDING


@dataclass(frozen=True, slots=True)
class CallbackSettings:
    """How callbacks are written: `callback_profile`, `callback_profiles` and `sign_callbacks`."""

    profile: Profile
    profiles: Mapping[str, Profile]
    signed: bool

    def profile_of(self, url: str, client: Client | None) -> Profile:
        """The profile of the first glob that matches the URL, else of the client, else of all."""
        for glob, profile in self.profiles.items():
            if fnmatchcase(url, glob):
                return profile
        of_client = None if client is None else client.callback_profile
        return self.profile if of_client is None else Profile(of_client)

    def key_of(self, client: Client | None) -> str | None:
        """The key that signs the callbacks of a client; None where they are not signed (D29)."""
        return client.secret_key if client is not None and self.signed else None


class FailureKind(Enum):
    """Why an attempt got no HTTP response: where to look for the cause."""

    ADDRESS = auto()
    SETTING = auto()
    HOST = auto()
    CONNECTION = auto()
    TLS = auto()
    CERTIFICATE = auto()
    TIMEOUT = auto()
    EXCHANGE = auto()
    RESOURCES = auto()  # this machine has no free descriptor, port or memory for the call


class ReceiverResponse(NamedTuple):
    """The response of a receiver to one attempt.

    status_code: None where no HTTP response came; `problem` then says why, in words.
    body: at most its first 4 KiB.
    duration_ms: the duration of the whole attempt.
    failure_kind: the kind of failure. An attempt that a setting forbids counts like one at a
    receiver that cannot be reached.
    """

    status_code: int | None
    body: str
    duration_ms: int
    problem: str | None = None
    failure_kind: FailureKind | None = None

    @property
    def acknowledges(self) -> bool:
        """Whether the receiver took the callback: any 2xx (D30)."""
        return self.status_code is not None and 200 <= self.status_code < 300


class DeliveryAttempt(NamedTuple):
    """One delivery attempt, as `GET callbacks/{id}` shows it.

    sent_to: the address after rewrites.
    """

    number: int
    at: datetime
    status_code: int | None
    duration_ms: int
    response_body: str
    verdict: str
    sent_to: str
    next_attempt_at: datetime | None


class CallbackRecord(NamedTuple):
    """One notification to one receiver.

    signature: None where signing is off.
    note: the override that changed its behaviour, in words.
    held: it waits until a later callback of its service was attempted.
    target: the address with its secrets, where `url` is masked; never shown (D38).
    mode: the service mode of its transaction.
    """

    id: str
    service_id: int
    transaction_id: str
    network_transaction_id: str
    url: str
    profile: Profile
    body: str
    signature: str | None
    created_at: datetime
    state: DeliveryState = DeliveryState.PENDING
    attempts: tuple[DeliveryAttempt, ...] = ()
    note: str | None = None
    held: bool = False
    target: str | None = None
    mode: ServiceMode = ServiceMode.SANDBOX

    @property
    def address(self) -> str:
        """The address that it goes to, with its secrets."""
        return self.target or self.url

    def is_reset_with(self, service_id: int | None) -> bool:
        """Whether a reset of this service, or of all (None), deletes it."""
        return self.mode is ServiceMode.SANDBOX and service_id in {None, self.service_id}

    def delivery_job(self, due_at: datetime) -> Job:
        """The job of its next attempt."""
        is_live = self.mode is ServiceMode.PRODUCTION
        kind = JobKind.DELIVER_LIVE if is_live else JobKind.DELIVER
        return Job(due_at, kind, self.service_id, self.id)

    @property
    def headers(self) -> dict[str, str]:
        """The headers sent with the body: the signature, if there is one (D29)."""
        return {SIGNATURE_HEADER: self.signature} if self.signature else {}

    def to_resend(self, url: str | None) -> "CallbackRecord":
        """The callback, waiting again; `url` replaces its address where it is given."""
        waiting = self._replace(state=waiting_state(tried=bool(self.attempts)), held=False)
        return waiting if url is None else waiting.with_address(url)

    def next_attempt(self, at: datetime) -> "CallbackRecord":
        """The callback, whose next attempt comes at this moment and waits for no other callback."""
        last = tuple(each._replace(next_attempt_at=at) for each in self.attempts[-1:])
        return self._replace(held=False, attempts=(*self.attempts[:-1], *last))

    def with_address(self, address: str) -> "CallbackRecord":
        """The callback with this address; its secrets go to `target` only."""
        url = redact_text(address)
        return self._replace(url=url, target=None if url == address else address)

    def with_attempt(
        self,
        response: ReceiverResponse,
        at: datetime,
        schedule: RetrySchedule,
        sent_to: str | None = None,
    ) -> "CallbackRecord":
        """The callback after one more attempt.

        It is pending while attempts are left, delivered after an acknowledgement, and failed after
        the last attempt. It stays delivered if a resend was acknowledged before this attempt ended.
        sent_to: the address of the attempt, where a rewrite changed it.
        """
        number = len(self.attempts) + 1
        delivered = response.acknowledges or self.state is DeliveryState.DELIVERED
        next_at = None if delivered else schedule.next_attempt_at(number, at)
        attempt = DeliveryAttempt(
            number=number,
            at=at,
            status_code=response.status_code,
            duration_ms=response.duration_ms,
            response_body=redact_text(response.body),
            verdict=redact_text(verdict(response)),
            sent_to=self.url if sent_to is None else redact_text(sent_to),
            next_attempt_at=next_at,
        )
        undelivered = DeliveryState.FAILED if next_at is None else DeliveryState.RETRYING
        state = DeliveryState.DELIVERED if delivered else undelivered
        return self._replace(state=state, attempts=(*self.attempts, attempt))


class AttemptView(TypedDict):
    """An attempt as the control API shows it."""

    number: Annotated[int, "from 1"]
    at: Annotated[str, "when it ended"]
    status_code: Annotated[int | None, "the HTTP status; null where there was no answer"]
    duration_ms: int
    response_body: Annotated[str, "the first 4 KiB of the answer"]
    verdict: Annotated[str, "whether it was acknowledged, and what went wrong, in words"]
    sent_to: Annotated[str, "the address it went to, after the setting callback_rewrites"]
    next_attempt_at: Annotated[str | None, "when the next attempt is due; null after the last one"]


class CallbackView(TypedDict):
    """A callback with its attempts, as the control API shows it."""

    id: Annotated[str, "its identifier"]
    service_id: int
    transaction_id: str
    network_transaction_id: str
    url: Annotated[str, "where it goes, with a password masked"]
    profile: Annotated[str, Profile]
    body: Annotated[dict[str, object], "the JSON that is sent"]
    signature: Annotated[str | None, "the value of X-Service-Signature; null without signing"]
    state: Annotated[str, DeliveryState]
    unacknowledged: Annotated[bool, "it was attempted and is not acknowledged"]
    note: Annotated[str | None, "the override that changes its behaviour; else null"]
    created_at: Annotated[str, "when it became due"]
    attempts: Annotated[list[AttemptView], "oldest first"]
    mode: Annotated[str, ServiceMode]


_attempt, _callback = viewer(AttemptView), viewer(CallbackView)


FIELD_VALUES: Final = {
    "state": values_of(DeliveryState),
    "profile": values_of(Profile),
    "mode": values_of(ServiceMode),
}


def shown(callback: CallbackRecord) -> CallbackView:
    """A callback with its attempts, as the control API shows it."""
    return _callback(
        callback,
        transaction_id=redact_text(callback.transaction_id),
        body=json.loads(redact_json(callback.body)),
        unacknowledged=callback.state.is_unacknowledged,
        attempts=[*map(_attempt, callback.attempts)],
    )


def verdict(response: ReceiverResponse) -> str:
    """The result of an attempt, in words."""
    code = response.status_code
    if response.failure_kind is FailureKind.SETTING:
        return f"not sent: {response.problem}"
    if code is None:
        return f"not acknowledged: {response.problem}"
    if response.acknowledges:
        return f"acknowledged with HTTP {code}"
    if 300 <= code < 400:
        return f"not acknowledged: HTTP {code} is a redirect, and redirects are not followed"
    return f"not acknowledged: HTTP {code}, and only 2xx acknowledges"
