"""An adapter under test, open, with all that it tells; and what is looked for after every proof."""

import asyncio
import contextlib
import io
import logging
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
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
    numbered_sample,
    personal,
    sample,
    wrong_fields,
)

T = TypeVar("T")
# The setting `timeout_s`, in real time: so long that a busy machine does not end a call. Where
# nobody answers, the clock of the bench ends the call; an adapter with a timer of its own waits.
TIMEOUT: Final = timedelta(seconds=10)
# So old is an attempt that is asked for: a network may decide nothing before.
_LONG_AGO: Final = timedelta(days=1)
# The outcomes that say that the network has the request.
TAKEN: Final = frozenset({Outcome.PENDING, Outcome.SUCCEEDED})


class Disproved(AssertionError):
    """The adapter does not keep the contract; the text says what it did."""


def require(condition: object, sentence: str) -> None:
    """Raise `Disproved` with the sentence unless the condition holds."""
    if not condition:
        raise Disproved(sentence)


class NotProven(Exception):
    """The proof does not apply to this network; the text says why."""


@dataclass
class Told:
    """What the adapter told us while it was open.

    arrived: how many notifications came, saved or not. may_save: whether they are saved now.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    notifications: list[Notification] = field(default_factory=list)
    parts: list[MessagePart] = field(default_factory=list)
    arrived: int = 0
    may_save: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Save at once, until a proof clears the event."""
        self.may_save.set()

    def exchanged(self, exchange: Exchange) -> None:
        """Keep it."""
        self.exchanges.append(exchange)

    async def notified(self, notification: Notification) -> None:
        """Keep it, once it may be saved."""
        self.arrived += 1
        await self.may_save.wait()
        self.notifications.append(notification)

    async def part_taken(self, attempt_id: str, number: int, total: int, network_id: str) -> None:
        """Keep it."""
        self.parts.append(MessagePart("testnet", attempt_id, number, total, network_id))


class BenchClock(VirtualClock):
    """A clock whose timeouts end when the proof wants it, so that no proof waits."""

    def __init__(self) -> None:
        super().__init__()
        self._timeouts: list[asyncio.Timeout] = []

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """A limit that `expire` ends; the seconds do not count."""
        made = super().timeout(None)
        if seconds is not None:
            self._timeouts.append(made)
        return made

    def expire(self) -> None:
        """End every call that is under way."""
        for each in self._timeouts:
            with contextlib.suppress(RuntimeError):  # it ended before
                each.reschedule(0)
        self._timeouts.clear()


@dataclass
class Bench:
    """An open adapter and the other side.

    seen: every text in which no secret and nothing of the customer must be: results, log records,
    what is printed, texts of exceptions, errors of the loop.
    sent: the requests that were submitted. taken: the references of those said to be taken.
    counted: how many submits the other side had before.
    """

    peer: Peer
    network: Network
    environment: NetworkEnvironment
    told: Told = field(default_factory=Told)
    seen: list[str] = field(default_factory=list)
    sent: list[SubmitRequest] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    counted: int = 0

    @property
    def clock(self) -> BenchClock:
        """The clock of the adapter."""
        clock = self.environment.clock
        if not isinstance(clock, BenchClock):
            raise TypeError("a bench has a clock of its own")
        return clock

    async def get_token(self) -> None:
        """Submit a request so that the adapter has a token, where it needs one."""
        if self.peer.tokens is not None:
            await self.submit(self.request(reference="first, for a token"))

    async def ended(self, call: Awaitable[T], fault: Fault) -> T:
        """The result of a call under a fault; one without an answer is ended by the clock."""
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
        can = self.network.capabilities
        return Terms(
            always_sent=can.always_sent,
            has_status=can.has_status,
            repeats_within=can.repeats_within,
        )

    def request(self, operation: Operation | None = None, **fields: Any) -> SubmitRequest:
        """A request that the network takes by its own capabilities."""
        return sample(self.network.capabilities, operation, **fields)

    def numbered(self, number: int, operation: Operation | None = None) -> SubmitRequest:
        """Another request for each number up to 899."""
        return numbered_sample(self.network.capabilities, number, operation)

    def attempt(self, request: SubmitRequest) -> Attempt:
        """The attempt that is saved for a request, once it went out."""
        return Attempt(
            request.attempt_id,
            request.service_id,
            "12345678901",
            1,
            self.environment.name,
            request.reference,
            request.operation,
            request.amount,
            request.currency,
            self.clock.now(),
            submits=1,
        )

    async def submit(self, request: SubmitRequest) -> SubmitResult:
        """Submit; a success must be declared."""
        self.sent.append(request)
        result = await self._said("submit", self.network.submit(request))
        if result.outcome in TAKEN:
            self.taken.add(request.reference)
        require(
            result.outcome is not Outcome.SUCCEEDED or self.network.capabilities.succeeds_at_once,
            "a submit ends as succeeded: a request that the network has is pending; an adapter "
            "whose network decides in its answer declares succeeds_at_once",
        )
        return result

    async def status(self, request: SubmitRequest, age: timedelta = _LONG_AGO) -> StatusResult:
        """Ask for the status of a request that was submitted so long ago."""
        query = StatusQuery(
            request.attempt_id,
            request.reference,
            request.transaction_id,
            request.service_id,
            request.operation,
            submitted_at=self.clock.now() - age,
        )
        return await self._said("status", self.network.status(query))

    async def health(self) -> Health:
        """Ask for the health."""
        return await self._said("health", self.network.health())

    async def _said(self, name: str, call: Awaitable[T]) -> T:
        """The result of a call, which is kept; an exception is the adapter's fault."""
        try:
            result = await call
        except Disproved:  # the signal of `contract.run`
            raise
        except Exception as error:
            raise Disproved(f"{name} raised {type(error).__name__} and must answer") from error
        self.seen.append(repr(result))
        return result

    def parse(self, raw: RawNotification) -> Sequence[Notification]:
        """Read a notification, and keep what is said.

        Raises:
            UnreadableNotification: the adapter raised it.
        """
        try:
            found = self.network.parse(raw)
        except UnreadableNotification as error:
            self.seen.append(str(error))
            raise
        except Exception as error:
            raise Disproved(f"parse raises {type(error).__name__}") from error
        self.seen.append(repr(found))
        return found

    def arrived(self, request: SubmitRequest) -> int:
        """How many submits of a request the other side counted."""
        return sum(each.reference == request.reference for each in self.peer.submits)


class _KeptLog(logging.Handler):
    """Keeps each record as text, with its traceback."""

    def __init__(self, seen: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._seen = seen
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self._seen.append(self.format(record))


@asynccontextmanager
async def opened(peer: Peer, address: Address = Address.SERVING) -> AsyncIterator[Bench]:
    """The adapter, open inside of the context.

    After it no task is left, exactly the requests of the proof arrived, each once for each submit,
    and nothing was seen that is secret.
    """
    environment = NetworkEnvironment("testnet", BenchClock(), RandomIds(seed=1), TIMEOUT)
    bench = Bench(peer, peer.network(environment, address), environment)
    bench.counted = len(peer.submits)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: bench.seen.append(f"unhandled {context}"))
    before = asyncio.all_tasks()
    try:
        with _overheard(bench.seen):
            await bench.network.open(bench.told)
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
def _overheard(seen: list[str]) -> Iterator[None]:
    """Keep what is logged and what is printed, which is shown afterwards."""
    handler, root, printed = _KeptLog(seen), logging.getLogger(), io.StringIO()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        seen.append(printed.getvalue())
        sys.stdout.write(printed.getvalue())


async def _check_tasks(bench: Bench, before: set["asyncio.Task[Any]"]) -> None:
    """No task of the adapter is left. The other side notices the end of a connection in its own."""
    for _ in range(10):
        await bench.clock.pause(0)
    left = [
        task
        for task in asyncio.all_tasks() - before
        if not task.done()
        and "FaultServer" not in repr(task.get_coro())
        and task.get_name() != OTHER_SIDE
    ]
    require(not left, f"close leaves tasks: {left}")


def _check_submits(bench: Bench) -> None:
    """What arrived is what was submitted, in every part, and no more often."""
    came = bench.peer.submits[bench.counted :]
    sent = {request.reference: request for request in bench.sent}
    for submitted in came:
        request = sent.get(submitted.reference)
        if request is None:
            raise Disproved(f"nobody submitted what arrived as {submitted}")
        wrong = wrong_fields(submitted, request)
        require(
            not wrong, f"a submit of {request.operation} arrives with another {wrong}: {submitted}"
        )
    often = Counter(submitted.reference for submitted in came)
    calls = Counter(request.reference for request in bench.sent)
    for reference, times in often.items():
        asked = calls[reference]
        require(times <= asked, f"{asked} submits of one reference arrive {times} times")
    missing = bench.taken - often.keys()
    require(not missing, f"what never arrived is called taken: {sorted(missing)}")


def _check_texts(bench: Bench) -> None:
    """Nothing that is secret is in a text that leaves the adapter.

    An exchange shows what went over the wire, and so the customer too; no other text does.
    """
    told = bench.told
    secrets = (*bench.peer.secrets, CANARY_CARD)
    _check_unseen(secrets, map(repr, told.exchanges), "a secret")
    texts = [*bench.seen, repr(bench.network), str(bench.network), repr(told.notifications)]
    _check_unseen(secrets, texts, "a secret")
    customers = {text for request in bench.sent for text in personal(request)}
    _check_unseen(customers, texts, "a customer")


def _check_unseen(hidden: Iterable[str], texts: Iterable[str], what: str) -> None:
    hidden = tuple(hidden)
    for text in texts:
        for each in hidden:
            if each in text:
                raise Disproved(f"{what} can be seen: {text.replace(each, '***')[:200]!r}…")
