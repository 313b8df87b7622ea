"""A network: what carries payments and messages in production mode. Source: D32, D39.

An adapter implements `Network` and is registered under the entry-point group `sandbox_sim.networks`
with a `NetworkFactory`. The rules for an adapter, which `sandbox_sim.testing.network_contract`
checks:

- `submit` sends the request at most once. It returns NOT_SENT only if no byte of the request can
  have arrived, REFUSED only if the network definitely refused it, and UNKNOWN if in doubt. PENDING
  means that the network has taken it; SUCCEEDED that its answer is final, which the capabilities
  must declare. `submit` does not raise.
- `status` changes nothing at the network. It sets `found` to False if the network does not know the
  reference.
- `verify` checks the exact bytes. `parse` only reads them.
- A request that the capabilities do not declare is not sent, and gets NOT_SENT.
- A call ends within the setting `timeout_s`. One that takes longer is cancelled, and a submit is
  then UNKNOWN.
- After `close` no task and no connection is left.

The constructors of results and notifications clean and cut their texts, so these can always be
saved and shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple, Protocol

from sandbox_sim.operations import Operation
from sandbox_sim.ports import NetworkConfigError
from sandbox_sim.ports.clock import Clock
from sandbox_sim.ports.ids import Ids
from sandbox_sim.records.attempts import LONGEST_PAUSE, Attempt
from sandbox_sim.records.exchanges import Exchange, NotificationTrust, RawNotification, Scrubber
from sandbox_sim.records.ledger import SMS_UNITS
from sandbox_sim.records.reports import (
    EMPTY_ECHO,
    NOTHING_PROMISED,
    AlwaysSent,
    Echo,
    Outcome,
    Report,
    Source,
)
from sandbox_sim.values import peer_input
from sandbox_sim.values.hosts import has_dot_segment
from sandbox_sim.values.response_codes import CATALOGUE, Code

__all__ = [
    "Capabilities",
    "Health",
    "Network",
    "NetworkConfigError",
    "NetworkEnvironment",
    "NetworkEvents",
    "NetworkFactory",
    "Notification",
    "StatusQuery",
    "StatusResult",
    "SubmitRequest",
    "SubmitResult",
    "UnreadableNotification",
    "scrubber_of",
]

_STATUS_OUTCOMES: Final = frozenset(
    {Outcome.PENDING, Outcome.SUCCEEDED, Outcome.FAILED, Outcome.REVERSED, Outcome.UNKNOWN}
)

# A refusal with one of these codes may be temporary: the network is overloaded, our account has too
# little money, or its credentials are wrong. Any other one concerns the request itself.
_TEMPORARY_REFUSALS: Final = frozenset(
    {Code.INSUFFICIENT_BALANCE, Code.TOO_MANY_REQUESTS, Code.SERVER_ERROR}
)

# The fields of a `SubmitRequest` that clients know by another name.
_CLIENT_NAMES: Final = {"party": "customer_number", "description": "reference", "text": "msg_body"}


class UnreadableNotification(ValueError):
    """A notification is not in the format of its network; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a network can do.

    operations: those that it takes.
    nws: the values of `nw` that it takes; empty for any. An SMS has none.
    currencies: those that it takes.
    repeats_within: the network treats a second submit with the same reference within this time as
    the same request; None if it may treat it as a second request.
    has_status: whether `status` can ask the network.
    trust: how far its notifications are trusted.
    always_sent: the fields that every success has, each with its source; a success without one is
    a mismatch.
    succeeds_at_once: whether the answer to a submit may say that money moved: the network documents
    a final status, and another one for a request that it has only taken.
    reference_is_transaction_id: the reference of a first attempt is the client's `transaction_id`;
    else it is a UUID (version 4).
    sent_as: currencies that are replaced by another one, with the same figures. Only the sandbox of
    a network, where no money moves, may have any (D41).
    in_path: the fields of a `SubmitRequest` that are part of the path of a URL.
    decides_within: after how long an attempt without an outcome is listed for a person, if the
    adapter has a setting for it; None for the setting `give_up_after_s`. Gateway time.
    reports_reversals: whether it reports REVERSED for a payment that it reversed after a success.
    submit_within: how long a submit may take if that is longer than the setting `timeout_s`, as for
    a message in many parts. Real time.
    """

    operations: frozenset[Operation]
    currencies: frozenset[str]
    nws: frozenset[str] = frozenset()
    repeats_within: timedelta | None = None
    has_status: bool = True
    trust: NotificationTrust = NotificationTrust.HINT
    always_sent: AlwaysSent = NOTHING_PROMISED
    succeeds_at_once: bool = False
    reference_is_transaction_id: bool = False
    in_path: frozenset[str] = frozenset()
    decides_within: timedelta | None = None
    submit_within: timedelta | None = None
    reports_reversals: bool = False
    sent_as: Mapping[str, str] = field(default_factory=dict)

    def objection(self, request: "SubmitRequest") -> str | None:
        """Why the network does not take a request, in words; None if it does."""
        if request.operation not in self.operations:
            return f"the network does not take the operation {request.operation}"
        is_sms = request.operation is Operation.SMS
        if is_sms is not (request.currency == SMS_UNITS):
            return f"the operation {request.operation} has no amount in {request.currency}"
        if self.nws and not is_sms and request.nw not in self.nws:
            return f"the network does not take nw {request.nw}"
        if request.currency not in self.currencies:
            return f"the network does not take the currency {request.currency}"
        return self.unfit_value(request)

    def unfit_value(self, request: "SubmitRequest") -> str | None:
        """The field with a value that would change the path of the URL, in words; or None."""
        for name in sorted(self.in_path):
            if has_dot_segment(getattr(request, name)):
                return (
                    f"{_CLIENT_NAMES.get(name, name)} must not be . or .., or contain them between "
                    "slashes, because it becomes part of a URL of the network"
                )
        return None


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """A payment or a message as it goes to a network.

    attempt_id: the gateway's id of the attempt; `notification_url` contains it.
    reference: the idempotency reference.
    repeated: whether sending a request with this reference was begun before.
    amount: for a message, the units that it costs.
    party: phone number, account or card number as the client sent it; never logged.
    description: the client's `reference`, a free text.
    notification_url: where the network sends its notification; empty if the gateway has no address.
    text, sender_id: of a message.
    """

    attempt_id: str
    reference: str
    transaction_id: str
    service_id: int
    operation: Operation
    amount: Decimal
    currency: str
    nw: str
    party: str = field(repr=False)
    payment_mode: str
    description: str = field(repr=False)
    request_time: str
    notification_url: str = field(default="", repr=False)
    repeated: bool = False
    nickname: str = field(default="", repr=False)
    currency_val: str = ""
    landing_page: str = field(default="", repr=False)
    text: str = field(default="", repr=False)
    sender_id: str = ""

    def attempt(
        self, network: str, network_transaction_id: str, number: int, now: datetime
    ) -> Attempt:
        """The attempt to send this request, as the gateway saves it before it does."""
        return Attempt(
            *(self.attempt_id, self.service_id, network_transaction_id, number, network),
            *(self.reference, self.operation, self.amount, self.currency, now),
            transaction_id=self.transaction_id,
        )


@dataclass(frozen=True, slots=True)
class SubmitResult:
    """The result of a submit.

    code: with REFUSED, the interface's response code for the client, such as 402 or 019; 500 if the
    refusal concerns our account, such as its credentials. After 402, 429 and 500 the same request
    may be repeated, after any other code it is not.
    reason: in words; for a refusal or failure those of the network.
    network_id: the network's own identifier, or empty.
    redirect_url: for a card payment, the page that the customer goes to.
    network_fault: no connection, a reset, a timeout, or an UNKNOWN by HTTP 5xx; the circuit breaker
    counts these. A failure for a reason of ours does not count, such as wrong credentials.
    """

    outcome: Outcome
    code: str = ""
    reason: str = ""
    network_id: str = ""
    redirect_url: str = ""
    echo: Echo = EMPTY_ECHO
    cancelled: bool = False
    network_fault: bool = False

    def __post_init__(self) -> None:
        """Clean the texts, and refuse a result that contradicts itself.

        Raises:
            ValueError: REFUSED without a code of the interface, or a code with another outcome.
        """
        _clean(self)
        if (self.outcome is Outcome.REFUSED) != bool(self.code):
            raise ValueError(f"an outcome of {self.outcome} cannot have the code {self.code!r}")
        if self.code and self.code not in CATALOGUE:
            raise ValueError(f"{self.code} is not a response code of the interface")

    @property
    def report(self) -> Report:
        """The result as the rules about attempts read it."""
        report = _report(self, Source.SUBMIT)
        return report._replace(may_pass=self.code in _TEMPORARY_REFUSALS)


@dataclass(frozen=True, slots=True)
class StatusQuery:
    """Which attempt to ask about; the fields are those of its `SubmitRequest`.

    submitted_at: when the attempt was saved, just before it was first sent; None if unknown.
    """

    attempt_id: str
    reference: str
    transaction_id: str
    service_id: int
    operation: Operation
    network_id: str = ""
    submitted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StatusResult:
    """What a network says about an attempt that it was asked about.

    found: False if it does not know the reference; the outcome is then UNKNOWN.
    retry_after: how long the network asks us to wait before the next query, or None; the gateway
    waits for `longest_pause` at most.
    """

    outcome: Outcome
    found: bool = True
    reason: str = ""
    network_id: str = ""
    echo: Echo = EMPTY_ECHO
    cancelled: bool = False
    retry_after: timedelta | None = None

    def __post_init__(self) -> None:
        """Clean the texts, and refuse a result that a status query cannot have.

        Raises:
            ValueError: the outcome is NOT_SENT or REFUSED, or a reference that was not found has
            an outcome.
        """
        _clean(self)
        if self.outcome not in _STATUS_OUTCOMES:
            raise ValueError(f"a status query cannot end as {self.outcome}")
        if not self.found and self.outcome is not Outcome.UNKNOWN:
            raise ValueError(f"a reference that was not found cannot be {self.outcome}")

    @property
    def report(self) -> Report:
        """The result as the rules about attempts read it."""
        return _report(self, Source.STATUS)._replace(found=self.found)


@dataclass(frozen=True, slots=True)
class Notification:
    """One parsed notification. It names its attempt by one of the ids or by the reference.

    attempt_id: from the address that it came to.
    reference: the idempotency reference; used to find the attempt, while `echo.reference` is
    compared with it.
    network_id: the network's own identifier.
    part_id: the identifier of a part of a message, as in `NetworkEvents.part_taken`; the outcome
    is then that of the part.
    """

    outcome: Outcome
    attempt_id: str = ""
    reference: str = ""
    network_id: str = ""
    part_id: str = ""
    echo: Echo = EMPTY_ECHO
    cancelled: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        """Clean the texts."""
        _clean(self)

    @property
    def report(self) -> Report:
        """The notification as the rules about attempts read it."""
        return _report(self, Source.NOTIFICATION)


def _report(result: SubmitResult | StatusResult | Notification, source: Source) -> Report:
    """What a network said, as the rules about attempts read it."""
    return Report(
        result.outcome,
        source,
        result.echo,
        cancelled=result.cancelled,
        network_id=result.network_id,
        reason=result.reason,
    )


_CLEANERS: Final = {
    **dict.fromkeys(
        ("attempt_id", "reference", "network_id", "part_id"), peer_input.clean_identifier
    ),
    "reason": peer_input.clean_reason,
    "redirect_url": peer_input.clean_address,
}


def _clean(result: SubmitResult | StatusResult | Notification) -> None:
    """Clean the texts that an adapter took from a peer."""
    for name, clean in _CLEANERS.items():
        text = getattr(result, name, "")
        if text:
            object.__setattr__(result, name, clean(text))
    echo = result.echo
    if echo.reference or echo.currency:
        reference, currency = (
            None if text is None else peer_input.clean_identifier(text)
            for text in (echo.reference, echo.currency)
        )
        object.__setattr__(result, "echo", echo._replace(reference=reference, currency=currency))


class Health(NamedTuple):
    """Whether a network can be reached; shown to people, and not used by routing.

    detail: what was tried and its result, in words.
    """

    ok: bool
    detail: str


class NetworkEvents(Protocol):
    """Receives what a network reports outside the result of a call."""

    def exchanged(self, exchange: Exchange) -> None:
        """A request and its answer, scrubbed, for the journal; never waits."""

    async def notified(self, notification: Notification) -> None:
        """A notification that did not come by HTTP, such as a receipt over SMPP.

        It counts as signed: the adapter's own connection proves its origin. Returns when it is
        saved; only then may the adapter acknowledge it. One about an unknown part is tried again
        later: a network may report on a part before it answers the submit.
        """

    async def part_taken(self, attempt_id: str, number: int, total: int, network_id: str) -> None:
        """The network took a part of a message, number 1 to `total`, under this identifier.

        Returns when it is saved: from then on a notification with this `part_id` is about it.
        """


class Network(Protocol):
    """An adapter for one configured network.

    It may have an attribute `scrubber`, a `Scrubber` of its secrets: the gateway scrubs the
    notifications that it keeps and shows with it. Headers that carry credentials by their name, and
    card numbers, are scrubbed in any case.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What the network can do; does not change while the adapter is open."""

    async def open(self, events: NetworkEvents) -> None:
        """Make the adapter ready, even if the network is unreachable; `health` reports that."""

    async def close(self) -> None:
        """End every task and connection; a submit under way ends as UNKNOWN."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Send a request, at most once. See the rules of this module."""

    async def status(self, query: StatusQuery) -> StatusResult:
        """Ask for the outcome of a request; UNKNOWN if the network does not answer."""

    def verify(self, raw: RawNotification) -> bool:
        """Whether the exact bytes prove that the notification comes from the network."""

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """What the notification says, in order.

        Raises:
            UnreadableNotification: it is not in the format of this network.
        """

    async def health(self) -> Health:
        """Whether the network can be reached. Does not submit; requests a token at most."""


def scrubber_of(network: Network) -> Scrubber:
    """The `scrubber` of an adapter; a new one if the adapter has none."""
    found = getattr(network, "scrubber", None)
    return found if isinstance(found, Scrubber) else Scrubber()


@dataclass(frozen=True, slots=True)
class NetworkEnvironment:
    """What a network factory gets in addition to the settings.

    name: of the network in the configuration.
    timeout: the setting `timeout_s`, in real time.
    longest_pause: the maximum of `StatusResult.retry_after` that the gateway obeys.
    """

    name: str
    clock: Clock
    ids: Ids
    timeout: timedelta
    longest_pause: timedelta = LONGEST_PAUSE


class NetworkFactory(Protocol):
    """The callable that an entry point of `sandbox_sim.networks` names."""

    def __call__(self, settings: Mapping[str, object], environment: NetworkEnvironment) -> Network:
        """A network with these settings, not yet open.

        settings: the table of the network in the configuration, without `adapter`, `timeout_s` and
        the settings of polling; secrets are already read from their files and the environment.

        Raises:
            NetworkConfigError: the settings are invalid.
        """
