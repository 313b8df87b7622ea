"""The other side of an adapter under test: what it can be made to do, and what it counts."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, runtime_checkable

from sandbox_sim.domain.networks.notifications import RawNotification
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.reports import SAYS_NOTHING, Echo
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ports.network import Network, NetworkEnvironment, SubmitRequest

# The name of each task that a peer runs for itself, so that it does not count as the adapter's.
OTHER_SIDE: Final = "the other side"


class Address(StrEnum):
    """Where the adapter is sent."""

    SERVING = "serving"
    CLOSED = "closed"  # nothing listens there
    BROKEN_TLS = "broken_tls"  # what listens does not speak TLS, and the address is https


class Fault(StrEnum):
    """What the other side does with the next request, in place of answering it."""

    CLOSE_BEFORE_READ = "close_before_read"
    CLOSE_AFTER_READ = "close_after_read"
    RESET_AFTER_READ = "reset_after_read"
    HALF_ANSWER = "half_answer"
    CLOSE_AFTER_ANSWER = "close_after_answer"
    SILENCE = "silence"
    HTML_502 = "html_502"
    EMPTY_200 = "empty_200"
    CUT_JSON = "cut_json"
    UNKNOWN_WORD = "unknown_word"
    TOO_MANY_REQUESTS = "too_many_requests"
    CONFLICT = "conflict"
    REDIRECT = "redirect"


class Signature(StrEnum):
    """How a notification is signed."""

    GOOD = "good"
    ABSENT = "absent"
    WRONG = "wrong"
    OTHER_KEY = "other_key"
    REWRITTEN = "rewritten"  # good, but over the body written anew and not over the bytes sent


class Submitted(NamedTuple):
    """A submit as it arrived; `amount` is read exactly."""

    reference: str
    amount: Decimal | None


class Decided(NamedTuple):
    """What the other side says of a request.

    echo: what it says that it did; a None in it is left out of the answer where it can be.
    """

    request: SubmitRequest
    outcome: Outcome
    echo: Echo = SAYS_NOTHING


class Peer(Protocol):
    """The other side, running."""

    @property
    def faults(self) -> frozenset[Fault]:
        """Those that it can be made to show."""
        ...

    @property
    def addresses(self) -> frozenset[Address]:
        """Where an adapter can be sent."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """What the adapter was configured with and nobody may see."""
        ...

    @property
    def large_operation(self) -> Operation:
        """An operation that it takes with any amount."""
        ...

    @property
    def submits(self) -> Sequence[Submitted]:
        """Every submit that arrived whole, oldest first."""
        ...

    @property
    def connections(self) -> int:
        """How many connections for submits were made; equal to the submits where none are made."""
        ...

    @property
    def silences(self) -> int:
        """How many requests arrived so far that get no answer at all."""
        ...

    @property
    def strays(self) -> int:
        """How many requests came to where a redirect led."""
        ...

    @property
    def tokens(self) -> int | None:
        """How many tokens it gave out; None where it needs none."""
        ...

    def expire_tokens(self) -> None:
        """Take no token that was given out so far."""
        ...

    def network(self, environment: NetworkEnvironment, address: Address) -> Network:
        """The adapter under test, not yet open, sent to this address."""
        ...

    def misbehave(self, fault: Fault) -> None:
        """Show this fault to the next request, a submit or a status query."""
        ...

    def decide(self, decided: Decided) -> None:
        """Say this of a request from now on, when asked for its status."""
        ...

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        """The notification of this decision; None where it does not send any by HTTP."""
        ...


@runtime_checkable
class NotifyingPeer(Protocol):
    """What a `Peer` has too whose network notifies over a connection of its own, not by HTTP."""

    async def notify(self, decided: Decided) -> bool:
        """Notify of this decision about a request that was submitted.

        Returns whether the adapter acknowledged it, when it did.
        """
        ...


# Makes the other side; it runs inside of the context.
PeerFactory = AbstractAsyncContextManager[Peer]
