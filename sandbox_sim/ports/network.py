"""A network: what carries payments and messages in production mode. Source: D32, D39.

An adapter implements `Network` and is registered under the entry-point group `sandbox_sim.networks`
with a `NetworkFactory`. The rules for an adapter, which `sandbox_sim.testing.network_contract`
checks:

- `submit` sends the request at most once. It answers NOT_SENT only where not a byte of the request
  can have arrived, REFUSED only for a definite no of the network, and UNKNOWN wherever the answer
  leaves a doubt. That the network has the request is PENDING; SUCCEEDED is for a network whose
  answer is final, and the capabilities declare it. It answers; it does not raise.
- `status` never makes a network do something. It sets `found` to False where the network does not
  know the reference.
- `verify` is over the exact bytes. `parse` reads and proves nothing.
- What the capabilities do not declare is answered with NOT_SENT and nothing is sent.
- A call ends within the setting `timeout_s`. One that takes longer is cancelled, and a submit is
  UNKNOWN then.
- After `close` no task and no connection is left.

The texts of results and notifications are cleaned and cut where these are made: what an adapter
says can always be saved and shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple, Protocol

from sandbox_sim.operations import Operation
from sandbox_sim.ports.clock import Clock
from sandbox_sim.ports.ids import Ids
from sandbox_sim.records.attempts import LONGEST_PAUSE
from sandbox_sim.records.exchanges import Exchange, NotificationTrust, RawNotification, Scrubber
from sandbox_sim.records.ledger import SMS_UNITS
from sandbox_sim.records.reports import (
    NOTHING_PROMISED,
    SAYS_NOTHING,
    AlwaysSent,
    Echo,
    Outcome,
    Report,
    Source,
)
from sandbox_sim.values import peer_input
from sandbox_sim.values.hosts import has_dot_segment
from sandbox_sim.values.response_codes import CATALOGUE, Code

_STATUS_OUTCOMES: Final = frozenset(
    {Outcome.PENDING, Outcome.SUCCEEDED, Outcome.FAILED, Outcome.REVERSED, Outcome.UNKNOWN}
)

# A refusal with one of these codes may pass: the network has too much load, our account has too
# little money, or its credentials are not taken. Any other one is of the request itself.
_REFUSALS_THAT_MAY_PASS: Final = frozenset(
    {Code.INSUFFICIENT_BALANCE, Code.TOO_MANY_REQUESTS, Code.SERVER_ERROR}
)

# The fields of a `SubmitRequest` that clients know by another name.
_SENT_AS: Final = {"party": "customer_number", "description": "reference", "text": "msg_body"}


class NetworkConfigError(ValueError):
    """The settings of a network are not usable; the text names each and what is wrong with it."""


class UnreadableNotification(ValueError):
    """A notification is not in the form of its network; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a network can do.

    operations: what it takes.
    nws: the values of `nw` that it takes; empty for every one. An SMS has none.
    currencies: the currencies that it takes.
    repeats_within: a second submit with the same reference within this time is the same request for
    the network; None where it may be a second request.
    has_status: whether `status` can ask the network.
    trust: what its notifications are worth.
    always_sent: the fields that come with every success, each with where it comes from; a success
    without one is a mismatch.
    succeeds_at_once: whether the answer to a submit may say that money moved; the network documents
    a word for it that is final, and another one for what it has only taken.
    reference_is_transaction_id: the reference of a first attempt is the client's `transaction_id`;
    else it is a UUID (version 4).
    sent_as: currencies that the network takes in another one, with the same figures. Only the
    sandbox of a network, where no money moves, may have any (D41).
    in_path: the fields of a `SubmitRequest` that stand in the path of a URL.
    decides_within: after how long an attempt without an outcome is listed for a person, where the
    adapter has a setting for it; None for the setting `give_up_after_s`. Gateway time.
    reports_reversals: whether it says REVERSED of a payment that it took back after it succeeded.
    submit_within: how long a submit may take where that is longer than the setting `timeout_s`, as
    a message in many parts does. Real time.
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
        """Why the network does not take a request, in words; None where it does."""
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
        """Which field has a value that would change the path of the URL; None where none has."""
        for name in sorted(self.in_path):
            if has_dot_segment(getattr(request, name)):
                return (
                    f"{_SENT_AS.get(name, name)} must not be . or .., or have them between "
                    "slashes, because the network has it in the path of a URL"
                )
        return None


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """A payment or a message as it goes to a network.

    attempt_id: ours; `notification_url` has it too.
    reference: the idempotency reference.
    repeated: whether a request with this reference began to be sent before.
    amount: of a message, the units that it costs.
    party: phone number, account or card number as the client sent it; never logged.
    description: the client's `reference`, a free text.
    notification_url: where the network is to send its notification; empty where we have no address.
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


@dataclass(frozen=True, slots=True)
class SubmitResult:
    """The result of a submit.

    code: of REFUSED, the interface's response code for the client, such as 402 or 019. What
    concerns our account and not the request, such as credentials, is 500. After 402, 429 and 500
    the same request may be repeated, after any other code it is not.
    reason: in words; of a refusal or failure those of the network.
    network_id: the network's own identifier, empty where it gave none.
    redirect_url: of a card payment, the page that the customer goes to.
    network_fault: no connection, a reset, a timeout, or an UNKNOWN by HTTP 5xx; the circuit breaker
    counts these. A failure for a reason of ours does not count, such as wrong credentials.
    """

    outcome: Outcome
    code: str = ""
    reason: str = ""
    network_id: str = ""
    redirect_url: str = ""
    echo: Echo = SAYS_NOTHING
    cancelled: bool = False
    network_fault: bool = False

    def __post_init__(self) -> None:
        """Clean the texts, and refuse a result that says two things.

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
        return Report(
            self.outcome,
            Source.SUBMIT,
            self.echo,
            cancelled=self.cancelled,
            network_id=self.network_id,
            reason=self.reason,
            may_pass=self.code in _REFUSALS_THAT_MAY_PASS,
        )


@dataclass(frozen=True, slots=True)
class StatusQuery:
    """Which attempt to ask about; the fields are those of its `SubmitRequest`.

    submitted_at: when the attempt was saved, just before it was first sent; None where that is not
    known.
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

    found: False where it does not know the reference; the outcome is UNKNOWN then.
    retry_after: how long the network wants not to be asked; None where it says nothing. It is left
    alone for `longest_pause` at most.
    """

    outcome: Outcome
    found: bool = True
    reason: str = ""
    network_id: str = ""
    echo: Echo = SAYS_NOTHING
    cancelled: bool = False
    retry_after: timedelta | None = None

    def __post_init__(self) -> None:
        """Clean the texts, and refuse a result that a status query cannot have.

        Raises:
            ValueError: the outcome is NOT_SENT or REFUSED, or something is said of a reference that
            was not found.
        """
        _clean(self)
        if self.outcome not in _STATUS_OUTCOMES:
            raise ValueError(f"a status query cannot end as {self.outcome}")
        if not self.found and self.outcome is not Outcome.UNKNOWN:
            raise ValueError(f"a reference that was not found cannot be {self.outcome}")

    @property
    def report(self) -> Report:
        """The result as the rules about attempts read it."""
        return Report(
            self.outcome,
            Source.STATUS,
            self.echo,
            self.found,
            self.cancelled,
            self.network_id,
            self.reason,
        )


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification of a network, read. It names its attempt by one of the ids or the reference.

    attempt_id: from the address that it came to.
    reference: the idempotency reference; `echo.reference` is compared, this one only finds.
    network_id: the network's own identifier.
    part_id: the identifier of a part of a message, as `NetworkEvents.part_taken` had it; the
    outcome is then that of the part.
    """

    outcome: Outcome
    attempt_id: str = ""
    reference: str = ""
    network_id: str = ""
    part_id: str = ""
    echo: Echo = SAYS_NOTHING
    cancelled: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        """Clean the texts."""
        _clean(self)

    @property
    def report(self) -> Report:
        """The notification as the rules about attempts read it; only one that counts is used."""
        return Report(
            self.outcome,
            Source.NOTIFICATION,
            self.echo,
            cancelled=self.cancelled,
            network_id=self.network_id,
            reason=self.reason,
        )


_CLEANED: Final = {
    **dict.fromkeys(("attempt_id", "reference", "network_id", "part_id"), peer_input.identifier),
    "reason": peer_input.reason,
    "redirect_url": peer_input.address,
}


def _clean(said: SubmitResult | StatusResult | Notification) -> None:
    """Clean the texts of what an adapter made of the words of a peer."""
    for name, cleaned in _CLEANED.items():
        text = getattr(said, name, "")
        if text:
            object.__setattr__(said, name, cleaned(text))
    echo = said.echo
    if echo.reference or echo.currency:
        reference, currency = (
            None if text is None else peer_input.identifier(text)
            for text in (echo.reference, echo.currency)
        )
        object.__setattr__(said, "echo", echo._replace(reference=reference, currency=currency))


class Health(NamedTuple):
    """Whether a network can be reached, for people; routing never asks.

    detail: what was tried and its result, in words.
    """

    ok: bool
    detail: str


class NetworkEvents(Protocol):
    """Where a network puts what does not come as the result of a call."""

    def exchanged(self, exchange: Exchange) -> None:
        """A request and its answer, scrubbed, for the journal; never waits."""

    async def notified(self, notification: Notification) -> None:
        """A notification that did not come by HTTP, such as a receipt over SMPP.

        It counts as signed: the adapter's own connection proves it. Returns when it is saved; only
        then may the adapter acknowledge it. One about a part that is not known yet is tried again:
        a network may report on a part before it answers the submit.
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
        """What it can do; the same for as long as it is open."""

    async def open(self, events: NetworkEvents) -> None:
        """Make it ready. Succeeds even if the network is away; `health` reports that."""

    async def close(self) -> None:
        """End every task and connection; a submit under way ends as UNKNOWN."""

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Send a request, at most once. See the rules of this module."""

    async def status(self, query: StatusQuery) -> StatusResult:
        """Ask for the outcome of a request. A network that does not answer is UNKNOWN."""

    def verify(self, raw: RawNotification) -> bool:
        """Whether the notification is proven to come from the network, by its exact bytes."""

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """What the notification says, in order.

        Raises:
            UnreadableNotification: it is not in the form of this network.
        """

    async def health(self) -> Health:
        """Whether the network can be reached. Asks for a token at most; submits nothing."""


def scrubber_of(network: Network) -> Scrubber:
    """The `scrubber` of an adapter, which knows its secrets; of one without it, a new one."""
    found = getattr(network, "scrubber", None)
    return found if isinstance(found, Scrubber) else Scrubber()


@dataclass(frozen=True, slots=True)
class NetworkEnvironment:
    """What an adapter gets from us when it is made.

    name: of the network in the configuration.
    timeout: the setting `timeout_s`, in real time.
    longest_pause: how long the network is left alone at most where it asks for a pause.
    """

    name: str
    clock: Clock
    ids: Ids
    timeout: timedelta
    longest_pause: timedelta = LONGEST_PAUSE


class NetworkFactory(Protocol):
    """What an entry point of `sandbox_sim.networks` names."""

    def __call__(self, settings: Mapping[str, object], environment: NetworkEnvironment) -> Network:
        """A network with these settings, not yet open.

        settings: the table of the network in the configuration, without `adapter`, `timeout_s` and
        what concerns polling; secrets are read from their files and the environment already.

        Raises:
            NetworkConfigError: the settings are not usable.
        """
