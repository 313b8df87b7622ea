"""A bound connection to an SMSC: requests, answers, deliveries, and binding again.

Theory of operation. One task reads: it passes each answer to the request with the same sequence
number, and each `deliver_sm` and `data_sm` to `Deliveries`. A second task sends `enquire_link` to
check that the SMSC still answers. When the connection ends, every request under way ends without
an answer.

Data that the SMSC does not read would fill our memory. So while the buffer of the connection is
full, nothing is read or sent, and the connection ends if that lasts too long.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from sandbox_sim.networks.smpp import pdus
from sandbox_sim.networks.smpp.pdus import Pdu, UnreadablePdu
from sandbox_sim.networks.smpp.settings import SmppSettings
from sandbox_sim.ports import Clock, Ids, RunningTasks


class Pauses:
    """Pauses of any number of tasks, until `end` is called.

    `wait` loops because `Clock.wait_at_most` also returns, with its event set, when gateway time is
    moved.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wake = asyncio.Event()
        self.has_ended = False

    async def wait(self, seconds: float) -> None:
        """Return after this many seconds of real time, or when `end` is called."""
        ends_at = self._clock.monotonic() + seconds
        while not self.has_ended and (left := ends_at - self._clock.monotonic()) > 0:
            self._wake.clear()
            await self._clock.wait_at_most(self._wake, left)

    def end(self) -> None:
        """End every pause, now and later."""
        self.has_ended = True
        self._wake.set()


# How many deliveries are processed at once; the SMSC repeats the others later.
MOST_AT_ONCE: Final = 1000


log = logging.getLogger("sandbox_sim.networks")


class Deliveries:
    """Processes each delivery in a task of its own, which continues when its connection ends.

    process: processes one; returns the status to answer it with.
    """

    def __init__(self, process: Callable[[Pdu], Awaitable[int]]) -> None:
        self._process = process
        self._tasks = RunningTasks()

    def begin(self, pdu: Pdu, send: Callable[[bytes], None]) -> None:
        """Start to process a delivery; `send` sends its answer if the connection is open."""
        if len(self._tasks) >= MOST_AT_ONCE:
            send(pdus.answer(pdu, pdus.TEMPORARY_ERROR))
            return
        self._tasks.start(self._answer(pdu, send))

    async def close(self) -> None:
        """Cancel what is under way; without an answer the SMSC repeats it."""
        await self._tasks.cancel()

    async def _answer(self, pdu: Pdu, send: Callable[[bytes], None]) -> None:
        try:
            status = await self._process(pdu)
        except Exception:
            log.exception("a delivery could not be processed; the SMSC will repeat it")
            status = pdus.TEMPORARY_ERROR
        send(pdus.answer(pdu, status))


# How many of the newest requests without an answer may still be answered late.
MOST_LATE: Final = 1000


class NotWritten(Exception):
    """Nothing was sent; the text says why."""


class NoSmppResponse(Exception):
    """The request may have arrived, and no answer came; the text says why.

    network_fault: whether the circuit breaker counts it. Of the requests that end with their
    connection only one counts: one lost connection says nothing about the next one.
    """

    def __init__(self, problem: str, *, network_fault: bool = True) -> None:
        super().__init__(problem)
        self.network_fault = network_fault


@dataclass(eq=False, repr=False)
class SmscConnection:
    """An open connection.

    on_end: called once when the connection has ended.
    timeout_s: how long the SMSC may take to answer, in real time.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    clock: Clock
    deliveries: Deliveries
    timeout_s: float

    def __post_init__(self) -> None:
        self._sequence = 0
        self._answers: dict[int, asyncio.Future[Pdu]] = {}
        self._late_handlers: dict[int, Callable[[Pdu], None]] = {}
        self._tasks = RunningTasks()
        self._pauses = Pauses(self.clock)
        self.problem = ""
        self.on_end: Callable[[], None] = lambda: None
        self._tasks.start(self._read())

    @property
    def has_ended(self) -> bool:
        """Whether the connection has ended; `problem` says why."""
        return self._pauses.has_ended

    async def ask(
        self, write: Callable[[int], bytes], on_late_answer: Callable[[Pdu], None] | None = None
    ) -> Pdu:
        """Send a request, once, and return its answer.

        write: makes the request with a sequence number.
        on_late_answer: called with the answer if it comes after this gave up waiting.

        Raises:
            NotWritten: the connection ended before, or the SMSC does not read.
            NoSmppResponse: no answer came in time, or the connection ended.
        """
        await self._wait_for_room()
        if self.has_ended:
            raise NotWritten(self.problem)
        sequence = self._sequence = self._sequence % pdus.LAST_SEQUENCE + 1
        octets = write(sequence)
        answer: asyncio.Future[Pdu] = asyncio.get_running_loop().create_future()
        self._answers[sequence] = answer
        try:
            async with self.clock.timeout(self.timeout_s):
                self.writer.write(octets)
                return await answer
        except TimeoutError:
            if on_late_answer is not None:
                self._late_handlers[sequence] = on_late_answer
                if len(self._late_handlers) > MOST_LATE:
                    del self._late_handlers[next(iter(self._late_handlers))]
            raise NoSmppResponse(f"no answer within {self.timeout_s:g} s") from None
        finally:
            self._answers.pop(sequence, None)

    def enquire_each(self, seconds: float) -> None:
        """Send `enquire_link` at this interval; end the connection if there is no answer."""
        self._tasks.start(self._enquire(seconds))

    async def close(self) -> None:
        """Unbind, close the connection and end its tasks."""
        if not self.has_ended:
            self._send(pdus.request(pdus.UNBIND, self._sequence % pdus.LAST_SEQUENCE + 1))
            self._end("the network was closed")
        await self._tasks.cancel()
        with suppress(OSError):
            await self.writer.wait_closed()

    def _send(self, octets: bytes) -> None:
        """Send a PDU that needs no answer, unless the connection has ended."""
        if not self.has_ended:
            self.writer.write(octets)

    async def _wait_for_room(self) -> None:
        """Return when there is room in the buffer, or the connection has ended."""
        _, full = self.writer.transport.get_write_buffer_limits()
        if self.writer.transport.get_write_buffer_size() <= full:
            return
        try:
            async with self.clock.timeout(self.timeout_s):
                await self.writer.drain()
        except TimeoutError:
            self._end("the SMSC does not read")
        except OSError as error:
            self._end(_describe_failure(error))

    def _end(self, problem: str) -> None:
        """End the connection, if it has not ended; drop what is still in its buffer."""
        if self.has_ended:
            return
        self.problem = problem
        self._pauses.end()
        pending = [each for each in self._answers.values() if not each.done()]
        for number, each in enumerate(pending):
            each.set_exception(NoSmppResponse(problem, network_fault=number == 0))
        self._late_handlers.clear()
        if self.writer.transport.get_write_buffer_size():
            self.writer.transport.abort()  # it would wait for an SMSC that does not read
        else:
            self.writer.close()
        self.on_end()

    async def _read(self) -> None:
        try:
            while True:
                self._handle(await pdus.read_pdu(self.reader))
                await self._wait_for_room()
                if self.has_ended:
                    return
        except asyncio.IncompleteReadError:
            self._end("the SMSC ended the connection")
        except OSError as error:
            self._end(_describe_failure(error))
        except UnreadablePdu as error:
            self._end(f"the SMSC sent {error}")

    def _handle(self, pdu: Pdu) -> None:
        if pdu.is_answer:
            answer = self._answers.get(pdu.sequence)
            on_late_answer = self._late_handlers.pop(pdu.sequence, None)
            if answer is not None and not answer.done():
                answer.set_result(pdu)
            elif on_late_answer is not None:
                on_late_answer(pdu)
        elif pdu.command in pdus.DELIVERIES:
            self.deliveries.begin(pdu, self._send)
        elif pdu.command == pdus.ENQUIRE_LINK:
            self._send(pdus.answer(pdu))
        elif pdu.command == pdus.UNBIND:
            self._send(pdus.answer(pdu))
            self._end("the SMSC ended the bind")
        else:
            self._send(pdus.generic_nack(pdu))

    async def _enquire(self, seconds: float) -> None:
        while not self.has_ended:
            await self._pauses.wait(seconds)
            try:
                await self.ask(lambda sequence: pdus.request(pdus.ENQUIRE_LINK, sequence))
            except NotWritten:
                return
            except NoSmppResponse as error:
                self._end(f"enquire_link: {error}")


def _describe_failure(error: OSError) -> str:
    return f"the connection failed: {type(error).__name__}"


# Pauses are longer by up to this share, so that several servers do not all bind at once.
JITTER: Final = 0.1

# How long, in real time, the end of TLS may take.
TLS_END_S: Final = 1.0

NOT_OPEN: Final = "the network is not open"


# An SMSC says so for a while after a server of ours died: its connection is still open there.
ALREADY_BOUND: Final = "ESME_RALYBND"


class BindRefused(Exception):
    """The SMSC refuses the bind with this status."""

    def __init__(self, status: str) -> None:
        super().__init__(f"the SMSC refuses the bind: {status}")
        self.network_fault = status in pdus.SYSTEM_ERRORS | pdus.THROTTLED | {ALREADY_BOUND}


@dataclass(eq=False, repr=False)
class SmppLink:
    """Keeps the connection of one network bound.

    name: of the network, for the log.
    timeout_s: how long a connection, a bind or an answer may take, in real time.
    problem: why it is not bound.
    network_fault: whether the SMSC or the connection to it caused the problem.
    """

    name: str
    settings: SmppSettings
    clock: Clock
    ids: Ids
    deliveries: Deliveries
    timeout_s: float

    def __post_init__(self) -> None:
        self._connection: SmscConnection | None = None
        self._bound, self._lost = asyncio.Event(), asyncio.Event()
        self._bind_tried = asyncio.Event()
        self._bind_tried.set()
        self._stable_from = 0.0
        self._binding: asyncio.Task[None] | None = None
        self.problem, self.network_fault = NOT_OPEN, False

    def open(self) -> None:
        """Start to bind, without waiting for it."""
        self._bind_tried.clear()
        self._binding = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Unbind, and stop binding again."""
        if self._binding is not None:
            self._binding.cancel()
            await asyncio.gather(self._binding, return_exceptions=True)
            self._binding = None
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        self.problem, self.network_fault = NOT_OPEN, False
        self._bind_tried.set()

    async def bound(self) -> SmscConnection | None:
        """The bound connection; waits for a bind that is under way. None if there is none.

        Does not wait in a pause between two binds.
        """
        await self._bind_tried.wait()
        return self._connection

    async def bound_within(self, seconds: float) -> SmscConnection | None:
        """The bound connection; waits for it for this much real time. None if there is none."""
        try:
            async with self.clock.timeout(seconds):
                await self._bound.wait()
        except TimeoutError:
            return None
        return self._connection

    async def _run(self) -> None:
        """Bind again after each loss, at once if the bind lasted longer than the pause."""
        failures = 0
        while True:
            pause = self._pause(failures)
            self._stable_from = self.clock.monotonic() + pause
            await self._bind()
            if self._connection is not None:
                await self._lost.wait()
            if not self._bind_tried.is_set():
                failures = 0
                continue
            failures += 1
            await Pauses(self.clock).wait(pause)
            self._bind_tried.clear()

    def _pause(self, failures: int) -> float:
        """Seconds until the next bind. failures: how many binds in a row failed."""
        longest = self.settings.reconnect_at_most_s
        pause = min(self.settings.reconnect_after_s * 2.0 ** min(failures, 30), longest)
        return pause * (1 + JITTER * self.ids.draw())

    async def _bind(self) -> None:
        """Bind, or set `problem`."""
        settings = self.settings
        try:
            connection = await self._connected()
        except BindRefused as refusal:
            self.problem, self.network_fault = str(refusal), refusal.network_fault
        except (NoSmppResponse, NotWritten, OSError, ValueError) as error:
            why = str(error) or type(error).__name__
            self.problem = f"no bind at {settings.host}:{settings.port}: {why}"
            self.network_fault = True
        else:
            log.info("network %s is bound as %s", self.name, settings.system_id)
            connection.on_end = self._on_end
            connection.enquire_each(settings.enquire_link_s)
            self._connection = connection
            self._lost.clear()
            self._bound.set()
        if self._connection is None:
            log.warning("network %s: %s", self.name, self.problem)
        self._bind_tried.set()

    async def _connected(self) -> SmscConnection:
        """A new connection that is bound."""
        settings, tls = self.settings, self.settings.tls
        try:
            async with self.clock.timeout(self.timeout_s):
                streams = await asyncio.open_connection(
                    settings.host,
                    settings.port,
                    ssl=ssl.create_default_context() if tls else None,
                    ssl_shutdown_timeout=TLS_END_S if tls else None,
                )
        except TimeoutError:
            what = "TLS connection" if tls else "connection"
            raise NotWritten(f"no {what} within {self.timeout_s:g} s") from None
        connection = SmscConnection(*streams, self.clock, self.deliveries, self.timeout_s)
        try:
            await self._ask_to_bind(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _ask_to_bind(self, connection: SmscConnection) -> None:
        settings = self.settings
        account = settings.system_id, settings.password.get_secret_value(), settings.system_type
        answer = await connection.ask(lambda number: pdus.bind_transceiver(number, *account))
        if (answer.command, answer.status) != (pdus.BOUND, pdus.OK):
            raise BindRefused(pdus.name_of(answer.status))
        if connection.has_ended:
            raise NoSmppResponse(connection.problem)

    def _on_end(self) -> None:
        """Note that the connection has ended."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self.problem, self.network_fault = connection.problem, True
            log.warning("network %s: %s", self.name, self.problem)
        if self.clock.monotonic() >= self._stable_from:
            self._bind_tried.clear()  # the next bind follows at once
        self._bound.clear()
        self._lost.set()
