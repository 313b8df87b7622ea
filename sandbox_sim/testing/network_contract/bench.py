"""The bench of a proof: an open adapter and its reports, and the checks after every proof."""

import asyncio
import contextlib
import io
import logging
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import (
    Health,
    Network,
    NetworkEnvironment,
    Notification,
    StatusQuery,
    StatusResult,
    SubmitRequest,
    SubmitResult,
    UnreadableNotification,
)
from sandbox_sim.records.attempts import Attempt, Terms
from sandbox_sim.records.exchanges import Exchange, MessagePart, RawNotification
from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract.peer import (
    CANARY_CARD,
    OTHER_SIDE,
    Address,
    Fault,
    Peer,
    personal_texts,
    sample,
    wrong_fields,
)

T = TypeVar("T")
_NETWORK: Final = "testnet"
# The setting `timeout_s`, in real time: long enough for a busy machine. If there is no answer, the
# clock of the bench ends the call; only an adapter with its own timer waits this long.
TIMEOUT: Final = timedelta(seconds=10)
# The age of an attempt in a status query; some networks decide nothing earlier.
_LONG_AGO: Final = timedelta(days=1)
# The outcomes with which the network has the request.
ACCEPTED: Final = frozenset({Outcome.PENDING, Outcome.SUCCEEDED})


class Disproved(AssertionError):
    """The adapter breaks the contract; the message says how."""


def require(condition: object, sentence: str) -> None:
    """Raise `Disproved` with the sentence unless the condition holds."""
    if not condition:
        raise Disproved(sentence)


class NotProven(Exception):
    """The proof does not apply to this network; the message says why."""


@dataclass
class RecordedEvents:
    """The reports of the adapter while it was open.

    arrived: how many notifications were reported, saved or not. may_save: whether they are saved.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    notifications: list[Notification] = field(default_factory=list)
    parts: list[MessagePart] = field(default_factory=list)
    arrived: int = 0
    may_save: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Allow saving, until a proof clears the event."""
        self.may_save.set()

    def exchanged(self, exchange: Exchange) -> None:
        """Store the exchange."""
        self.exchanges.append(exchange)

    async def notified(self, notification: Notification) -> None:
        """Store the notification when saving is allowed."""
        self.arrived += 1
        await self.may_save.wait()
        self.notifications.append(notification)

    async def part_taken(self, attempt_id: str, number: int, total: int, network_id: str) -> None:
        """Store the part of a message."""
        self.parts.append(MessagePart(_NETWORK, attempt_id, number, total, network_id))


class BenchClock(VirtualClock):
    """A clock whose timeouts end when the proof calls `expire`, so that no proof has to wait."""

    def __init__(self) -> None:
        super().__init__()
        self._timeouts: list[asyncio.Timeout] = []

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """A timeout that ends at `expire`, however long it is."""
        timeout = super().timeout(None)
        if seconds is not None:
            self._timeouts.append(timeout)
        return timeout

    def expire(self) -> None:
        """End all open timeouts."""
        for each in self._timeouts:
            with contextlib.suppress(RuntimeError):  # it has already ended
                each.reschedule(0)
        self._timeouts.clear()


@dataclass
class Bench:
    """An open adapter and the other side.

    clock: the clock of the adapter.
    texts: results, log records, output, messages of exceptions and errors of the event loop; they
    must not contain secrets or personal data.
    sent: the requests that were submitted. accepted: the references that the adapter reported as
    accepted. earlier_submits: how many submits the other side had before.
    """

    peer: Peer
    network: Network
    clock: BenchClock
    earlier_submits: int
    events: RecordedEvents = field(default_factory=RecordedEvents)
    texts: list[str] = field(default_factory=list)
    sent: list[SubmitRequest] = field(default_factory=list)
    accepted: set[str] = field(default_factory=set)

    async def get_token(self) -> None:
        """If the network uses tokens, submit a request so that the adapter has one."""
        if self.peer.tokens is not None:
            await self.submit(self.request(reference="first, for a token"))

    async def result_under_fault(self, call: Awaitable[T], fault: Fault) -> T:
        """The result of a call under a fault; if there is no answer, the clock ends the call."""
        if fault is not Fault.SILENCE:
            return await call
        running = asyncio.ensure_future(call)
        while not self.peer.silences and not running.done():
            await self.clock.pause(0)
        self.clock.expire()
        return await running

    @property
    def terms(self) -> Terms:
        """The terms of attempts at this network."""
        capabilities = self.network.capabilities
        return Terms(
            always_sent=capabilities.always_sent,
            has_status=capabilities.has_status,
            repeats_within=capabilities.repeats_within,
        )

    def request(self, operation: Operation | None = None, **fields: Any) -> SubmitRequest:
        """A request that fits the capabilities of the network."""
        return sample(self.network.capabilities, operation, **fields)

    def numbered(self, number: int, operation: Operation | None = None) -> SubmitRequest:
        """A request in which every field is different for each number up to 899."""
        attempt_id = f"attempt-{number}"
        request = self.request(operation, attempt_id=attempt_id, reference=f"reference-{number}")
        # No phone number ends in 9, because the simulated network declines those.
        party = request.party and f"{request.party[:-3]}{number // 9 % 100:02}{number % 9}"
        return replace(
            request,
            transaction_id=f"T{number}",
            amount=Decimal(number) + Decimal("10.37"),
            party=party,
            description=f"Order {number}",
            notification_url=f"http://127.0.0.1:9/_networks/testnet/{attempt_id}",
        )

    def attempt(self, request: SubmitRequest) -> Attempt:
        """The attempt as it is saved for a request that was sent."""
        return request.attempt(_NETWORK, "12345678901", 1, self.clock.now()).submitted()

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Submit a request; a success at once must be declared in the capabilities."""
        self.sent.append(request)
        result = await self._call("submit", self.network.submit(request))
        if result.outcome in ACCEPTED:
            self.accepted.add(request.reference)
        require(
            result.outcome is not Outcome.SUCCEEDED or self.network.capabilities.succeeds_at_once,
            "a submit ends as succeeded, but must be pending; if the network decides in its "
            "answer, declare succeeds_at_once",
        )
        return result

    async def status(self, request: SubmitRequest, age: timedelta = _LONG_AGO) -> StatusResult:
        """Query the status of a request. age: how long ago it was submitted."""
        query = StatusQuery(
            request.attempt_id,
            request.reference,
            request.transaction_id,
            request.service_id,
            request.operation,
            submitted_at=self.clock.now() - age,
        )
        return await self._call("status", self.network.status(query))

    async def health(self) -> Health:
        """Check the health of the network."""
        return await self._call("health", self.network.health())

    async def _call(self, name: str, call: Awaitable[T]) -> T:
        """The result of a call, which is also stored. Raises `Disproved` for an exception."""
        try:
            result = await call
        except Disproved:  # the signal of `contract.run`
            raise
        except Exception as error:
            raise Disproved(f"{name} raises {type(error).__name__}, but must return") from error
        self.texts.append(repr(result))
        return result

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """Parse a notification, and store the result.

        Raises:
            UnreadableNotification: the adapter raised it.
        """
        try:
            found = self.network.parse(raw)
        except UnreadableNotification as error:
            self.texts.append(str(error))
            raise
        except Exception as error:
            raise Disproved(f"parse raises {type(error).__name__}") from error
        self.texts.append(repr(found))
        return found

    def arrived(self, request: SubmitRequest) -> int:
        """How many submits of a request the other side counted."""
        return sum(each.reference == request.reference for each in self.peer.submits)


class _LogCapture(logging.Handler):
    """Stores each log record as text, with its traceback."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._texts = texts
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Store the text of the record."""
        self._texts.append(self.format(record))


@asynccontextmanager
async def open_bench(peer: Peer, address: Address = Address.SERVING) -> AsyncIterator[Bench]:
    """Open the adapter for the duration of the context.

    At the end it raises `Disproved` if a task is left, if anything else arrived than the submits of
    the proof, or if a secret is visible.
    """
    clock = BenchClock()
    environment = NetworkEnvironment(_NETWORK, clock, RandomIds(seed=1), TIMEOUT)
    bench = Bench(peer, peer.network(environment, address), clock, len(peer.submits))
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: bench.texts.append(f"unhandled {context}"))
    before = asyncio.all_tasks()
    try:
        with _captured_output(bench.texts):
            await bench.network.open(bench.events)
            try:
                yield bench
            finally:
                await bench.network.close()
            await _check_tasks(bench, before)
    finally:
        loop.set_exception_handler(None)
    _check_submits(bench)
    _check_texts(bench)


@contextlib.contextmanager
def _captured_output(texts: list[str]) -> Iterator[None]:
    """Store log records and output; the output is printed at the end."""
    handler, root, printed = _LogCapture(texts), logging.getLogger(), io.StringIO()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        texts.append(printed.getvalue())
        sys.stdout.write(printed.getvalue())


async def _check_tasks(bench: Bench, before: set["asyncio.Task[Any]"]) -> None:
    """Raise `Disproved` if a task of the adapter is left. Tasks of the other side do not count."""
    for _ in range(10):
        await bench.clock.pause(0)
    remaining = [
        task
        for task in asyncio.all_tasks() - before
        if not task.done()
        and "FaultServer" not in repr(task.get_coro())
        and task.get_name() != OTHER_SIDE
    ]
    require(not remaining, f"close leaves tasks: {remaining}")


def _check_submits(bench: Bench) -> None:
    """Raise `Disproved` unless the submits that arrived are the ones that were sent."""
    arrived = bench.peer.submits[bench.earlier_submits :]
    sent = {request.reference: request for request in bench.sent}
    for submitted in arrived:
        request = sent.get(submitted.reference)
        if request is None:
            raise Disproved(f"a submit arrived that was not sent: {submitted}")
        wrong = wrong_fields(submitted, request)
        require(
            not wrong, f"a submit of {request.operation} arrives with a wrong {wrong}: {submitted}"
        )
    arrivals = Counter(submitted.reference for submitted in arrived)
    calls = Counter(request.reference for request in bench.sent)
    for reference, times in arrivals.items():
        sent_times = calls[reference]
        require(times <= sent_times, f"{sent_times} submits of one reference arrive {times} times")
    missing = bench.accepted - arrivals.keys()
    require(not missing, f"requests that never arrived are accepted: {sorted(missing)}")


def _check_texts(bench: Bench) -> None:
    """Raise `Disproved` if a text of the adapter contains a secret or personal data.

    Exchanges may contain personal data, because they show what was sent over the wire.
    """
    events = bench.events
    secrets = (*bench.peer.secrets, CANARY_CARD)
    _require_hidden(secrets, map(repr, events.exchanges), "a secret")
    texts = [*bench.texts, repr(bench.network), str(bench.network), repr(events.notifications)]
    _require_hidden(secrets, texts, "a secret")
    customers = {text for request in bench.sent for text in personal_texts(request)}
    _require_hidden(customers, texts, "a customer")


def _require_hidden(forbidden: Collection[str], texts: Iterable[str], what: str) -> None:
    for text in texts:
        for each in forbidden:
            if each in text:
                raise Disproved(f"{what} is visible: {text.replace(each, '***')[:200]!r}…")
