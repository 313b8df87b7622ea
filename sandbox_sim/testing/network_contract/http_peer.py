"""The other side of an adapter that speaks HTTP: the fault server with the dialect of a network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol, runtime_checkable

from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import Network, NetworkEnvironment
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract.fault_server import (
    STRAY_PATH,
    FaultServer,
    HttpReply,
    HttpRequest,
    closed_address,
    not_speaking_tls,
)
from sandbox_sim.testing.network_contract.peer import (
    Address,
    Decided,
    Fault,
    Peer,
    Signature,
    Submitted,
)

NO_SUCH_PATH: Final = HttpReply(404, b"{}")


class Dialect(Protocol):
    """How one network speaks, from its own side. An author of an adapter writes this."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What `network` configures the adapter with, and what it sends in their place, such as the
        credentials of `Authorization: Basic`; texts that appear nowhere else.
        """
        ...

    @property
    def large_operation(self) -> Operation:
        """An operation that is taken with any amount."""
        ...

    @property
    def needs_tokens(self) -> bool:
        """Whether requests carry a token that the network gave out."""
        ...

    def network(self, base_url: str, environment: NetworkEnvironment) -> Network:
        """The adapter under test, sent to this address."""
        ...

    def submitted(self, request: HttpRequest) -> Submitted | None:
        """What is submitted by a request, every field that it says; None where it is another one.

        Reads the amount exactly, with `sandbox_sim.values.peer_input.read_json` where it is JSON.
        """
        ...

    def asked(self, request: HttpRequest) -> str | None:
        """The reference that a status query asks about; None where it is no status query."""
        ...

    def taken(self, request: HttpRequest, *, repeated: bool) -> HttpReply:
        """The answer to a submit that is taken and not decided.

        repeated: its reference was there before.
        """
        ...

    def status(self, decided: Decided | None) -> HttpReply:
        """The answer to a status query; None for a reference that is not known.

        Raises:
            NotProven: the network has no words for it.
        """
        ...

    def unknown_word(self, request: HttpRequest) -> HttpReply:
        """A well-formed answer with a word that the network does not document."""
        ...

    def token(self, request: HttpRequest, number: int) -> HttpReply | None:
        """The answer to a request for a token, the given one in order; None for other requests."""
        ...

    def has_token(self, request: HttpRequest, oldest: int) -> bool:
        """Whether a request carries a token of this number or a later one."""
        ...

    def unauthorized(self) -> HttpReply:
        """The answer to a request without a good token."""
        ...

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        """The notification of a decision; None where the network sends none by HTTP.

        Raises:
            NotProven: the network has no words for it.
        """
        ...


@runtime_checkable
class DecidingDialect(Protocol):
    """What a `Dialect` has too whose network may decide in its answer to a submit."""

    def decided_at_once(self, request: HttpRequest, decided: Decided) -> HttpReply:
        """The answer to a submit that has this decision in it."""
        ...


@runtime_checkable
class RefusingDialect(Protocol):
    """What a `Dialect` has too that knows a refusal, which says that nothing was taken."""

    def refused(self, request: HttpRequest) -> HttpReply:
        """The answer to a submit that is refused."""
        ...


class HttpPeer:
    """A `Peer` and `DecidingPeer` made of a dialect."""

    faults = frozenset(Fault)
    addresses = frozenset(Address)

    def __init__(self, dialect: Dialect, tls_address: str) -> None:
        self.server = FaultServer(self._note, self._answer, dialect.unknown_word)
        self.secrets = dialect.secrets
        self.large_operation = dialect.large_operation
        self._dialect = dialect
        self._tls_address = tls_address
        self._decided: dict[str, Decided] = {}
        self._at_once: dict[str, Decided] = {}
        # Every submit that arrived whole, with a good token where one is needed.
        self.submits: list[Submitted] = []
        # How many requests came to where a redirect led.
        self.strays = 0
        self._tokens = 0
        self._oldest_token = 1

    @property
    def connections(self) -> int:
        """How many connections were made."""
        return self.server.connections

    @property
    def silences(self) -> int:
        """How many requests get no answer."""
        return self.server.silences

    @property
    def tokens(self) -> int | None:
        """How many tokens were given out."""
        return self._tokens if self._dialect.needs_tokens else None

    def expire_tokens(self) -> None:
        """Take no token that was given out so far."""
        self._oldest_token = self._tokens + 1

    def network(self, environment: NetworkEnvironment, address: Address) -> Network:
        """The adapter under test."""
        url = {
            Address.SERVING: self.server.url,
            Address.CLOSED: closed_address(),
            Address.BROKEN_TLS: self._tls_address,
        }[address]
        return self._dialect.network(url, environment)

    def misbehave(self, fault: Fault) -> None:
        """Show this fault to the next request."""
        self.server.misbehave(fault)

    def decide(self, decided: Decided) -> None:
        """Say this of a request from now on.

        Raises:
            NotProven: the network has no words for it.
        """
        self._dialect.status(decided)
        self._decided[decided.request.reference] = decided

    def decide_at_once(self, decided: Decided) -> bool:
        """Answer the submit of this request with this decision; False without such an answer."""
        refuses = decided.outcome is Outcome.REFUSED
        if not isinstance(self._dialect, RefusingDialect if refuses else DecidingDialect):
            return False
        self._at_once[decided.request.reference] = decided
        return True

    def notification(self, decided: Decided, signature: Signature) -> RawNotification | None:
        """The notification of this decision."""
        return self._dialect.notification(decided, signature)

    def _note(self, request: HttpRequest) -> None:
        self.strays += request.path == STRAY_PATH
        submitted = self._submitted(request)
        if submitted is not None and self._is_authorized(request):
            self.submits.append(submitted)

    def _submitted(self, request: HttpRequest) -> Submitted | None:
        """What is submitted by a request; one that the dialect cannot read counts too."""
        try:
            return self._dialect.submitted(request)
        except Exception as error:
            return Submitted(f"unreadable, {type(error).__name__}: {error}", None)

    def _is_authorized(self, request: HttpRequest) -> bool:
        dialect = self._dialect
        return not dialect.needs_tokens or dialect.has_token(request, self._oldest_token)

    def _answer(self, request: HttpRequest) -> HttpReply:
        dialect = self._dialect
        token = dialect.token(request, self._tokens + 1)
        if token is not None:
            self._tokens += 1
            return token
        if not self._is_authorized(request):
            return dialect.unauthorized()
        submitted = self._submitted(request)
        if submitted is not None:
            at_once = self._at_once.get(submitted.reference)
            if at_once is not None:
                return self._decision(request, at_once)
            same = [each for each in self.submits if each.reference == submitted.reference]
            return dialect.taken(request, repeated=len(same) > 1)
        reference = dialect.asked(request)
        if reference is not None:
            return dialect.status(self._decided.get(reference))
        if request.method == "HEAD":  # health: the network is there
            return HttpReply(200)
        return NO_SUCH_PATH

    def _decision(self, request: HttpRequest, decided: Decided) -> HttpReply:
        dialect = self._dialect
        if isinstance(dialect, RefusingDialect) and decided.outcome is Outcome.REFUSED:
            return dialect.refused(request)
        assert isinstance(dialect, DecidingDialect)  # noqa: S101 -- `decide_at_once` looked
        return dialect.decided_at_once(request, decided)


@asynccontextmanager
async def http_peer(dialect: Dialect) -> AsyncIterator[Peer]:
    """The other side of an adapter that speaks HTTP, running inside of the context."""
    async with not_speaking_tls() as tls_address:
        peer = HttpPeer(dialect, tls_address)
        async with peer.server.running():
            yield peer
