"""A network: what carries payments and messages in production mode. Source: D32, D39.

An adapter implements `Network` and is registered under the entry-point group `sandbox_sim.networks`
with a `NetworkFactory`. The rules for an adapter, which `sandbox_sim.testing.network_contract`
checks:

- `submit` sends the request at most once. It answers NOT_SENT only where not a byte of the request
  can have arrived, REFUSED only for a definite no of the network, and UNKNOWN wherever the answer
  leaves a doubt. It answers; it does not raise.
- `status` never makes a network do something. It sets `found` to False where the network does not
  know the reference.
- `verify` is over the exact bytes. `parse` reads and proves nothing.
- What the capabilities do not declare is answered with NOT_SENT and nothing is sent.
- After `close` no task and no connection is left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple, Protocol

from sandbox_sim.domain.double_entry.accounts import SMS_UNITS
from sandbox_sim.domain.networks.exchanges import Exchange
from sandbox_sim.domain.networks.notifications import NotificationTrust, RawNotification
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.reports import (
    NOTHING_PROMISED,
    SAYS_NOTHING,
    AlwaysSent,
    Echo,
    Report,
    Source,
)
from sandbox_sim.domain.response_codes import CATALOGUE
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ports.clock import Clock
from sandbox_sim.gateway.ports.ids import Ids

_STATUS_OUTCOMES: Final = frozenset(
    {Outcome.PENDING, Outcome.SUCCEEDED, Outcome.FAILED, Outcome.UNKNOWN}
)


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
    reference_is_transaction_id: the reference of a first attempt is the client's `transaction_id`;
    else it is a UUID (version 4).
    decides_within: after how long an attempt without an outcome is listed for a person, where the
    adapter has a setting for it; None for the setting `give_up_after_s`. Gateway time.
    """

    operations: frozenset[Operation]
    currencies: frozenset[str]
    nws: frozenset[str] = frozenset()
    repeats_within: timedelta | None = None
    has_status: bool = True
    trust: NotificationTrust = NotificationTrust.HINT
    always_sent: AlwaysSent = NOTHING_PROMISED
    reference_is_transaction_id: bool = False
    decides_within: timedelta | None = None

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
    """What came of a submit.

    code: of REFUSED, the interface's response code for the client, such as 402 or 019.
    reason: in words; of a refusal or failure those of the network.
    network_id: the network's own identifier, empty where it gave none.
    redirect_url: of a card payment, the page that the customer goes to.
    transport_fault: no connection, a reset or a timeout; the circuit breaker counts these.
    """

    outcome: Outcome
    code: str = ""
    reason: str = ""
    network_id: str = ""
    redirect_url: str = ""
    echo: Echo = SAYS_NOTHING
    cancelled: bool = False
    transport_fault: bool = False

    def __post_init__(self) -> None:
        """Refuse a result that says two things.

        Raises:
            ValueError: REFUSED without a code of the interface, or a code with another outcome.
        """
        if (self.outcome is Outcome.REFUSED) != bool(self.code):
            raise ValueError(f"an outcome of {self.outcome} cannot have the code {self.code!r}")
        if self.code and self.code not in CATALOGUE:
            raise ValueError(f"{self.code} is no response code of the interface")

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
    retry_after: how long the network wants not to be asked; None where it says nothing.
    """

    outcome: Outcome
    found: bool = True
    reason: str = ""
    network_id: str = ""
    echo: Echo = SAYS_NOTHING
    cancelled: bool = False
    retry_after: timedelta | None = None

    def __post_init__(self) -> None:
        """Refuse a result that a status query cannot have.

        Raises:
            ValueError: the outcome is NOT_SENT or REFUSED, or something is said of a reference that
            was not found.
        """
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


class Health(NamedTuple):
    """Whether a network can be reached, for people; routing never asks.

    detail: what was tried and what came of it, in words.
    """

    ok: bool
    detail: str


class NetworkEvents(Protocol):
    """Where a network puts what does not come as the result of a call."""

    def exchanged(self, exchange: Exchange) -> None:
        """A request and its answer, scrubbed, for the journal; never waits."""
        ...

    async def notified(self, notification: Notification) -> None:
        """A notification that did not come by HTTP, such as a receipt over SMPP.

        It counts as signed: the adapter's own connection proves it. Returns when it is saved; only
        then may the adapter acknowledge it. One about a part that is not known yet is tried again:
        a network may report on a part before it answers the submit.
        """
        ...

    async def part_taken(self, attempt_id: str, number: int, total: int, network_id: str) -> None:
        """The network took a part of a message, number 1 to `total`, under this identifier.

        Returns when it is saved: from then on a notification with this `part_id` is about it.
        """
        ...


class Network(Protocol):
    """An adapter for one configured network."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; the same for as long as it is open."""
        ...

    async def open(self, events: NetworkEvents) -> None:
        """Make it ready. A network that is away is no reason to fail: `health` tells."""
        ...

    async def close(self) -> None:
        """End every task and connection; a submit under way ends as UNKNOWN."""
        ...

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Send a request, at most once. See the rules of this module."""
        ...

    async def status(self, query: StatusQuery) -> StatusResult:
        """Ask what became of a request. A network that does not answer is UNKNOWN."""
        ...

    def verify(self, raw: RawNotification) -> bool:
        """Whether the notification is proven to come from the network, by its exact bytes."""
        ...

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """What the notification says, in order.

        Raises:
            UnreadableNotification: it is not in the form of this network.
        """
        ...

    async def health(self) -> Health:
        """Whether the network can be reached. Asks for a token at most; submits nothing."""
        ...


@dataclass(frozen=True, slots=True)
class NetworkEnvironment:
    """What an adapter gets from us when it is made.

    name: of the network in the configuration.
    timeout: the setting `timeout_s`, in real time.
    """

    name: str
    clock: Clock
    ids: Ids
    timeout: timedelta


class NetworkFactory(Protocol):
    """What an entry point of `sandbox_sim.networks` names."""

    def __call__(self, settings: Mapping[str, object], environment: NetworkEnvironment) -> Network:
        """A network with these settings, not yet open.

        settings: the table of the network in the configuration, without `adapter`, `timeout_s` and
        what concerns polling; secrets are read from their files and the environment already.

        Raises:
            NetworkConfigError: the settings are not usable.
        """
        ...
