"""One connection to an SMSC: requests with their answers, and what the SMSC sends by itself.

Theory of operation. One task reads: it hands each answer to the request with the same sequence
number, and each `deliver_sm` to `Deliveries`. A second task asks with `enquire_link` whether the
SMSC is still there. When the connection has ended, every request that is under way ends without an
answer.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from sandbox_sim.adapters.networks.smpp import pdus
from sandbox_sim.adapters.networks.smpp.deliveries import Deliveries
from sandbox_sim.adapters.networks.smpp.pauses import Pauses
from sandbox_sim.adapters.networks.smpp.pdus import Pdu, UnreadablePdu
from sandbox_sim.gateway.ports import Clock

# So many answers that come too late are waited for.
MOST_LATE: Final = 1000


class NotWritten(Exception):
    """Nothing was sent; the text says why."""


class NoAnswer(Exception):
    """The request may have arrived, and no answer came; the text says why."""


class SmscConnection:
    """An open connection.

    on_end: called once when the connection has ended.
    within_s: how long the SMSC may take to answer, in real time.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        clock: Clock,
        deliveries: Deliveries,
        within_s: float,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._deliveries = deliveries
        self._within_s = within_s
        self._sequence = 0
        self._answers: dict[int, asyncio.Future[Pdu]] = {}
        self._late: dict[int, Callable[[Pdu], None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._pauses = Pauses(clock)
        self.problem = ""
        self.on_end: Callable[[], None] = lambda: None
        self._start(self._read())

    @property
    def has_ended(self) -> bool:
        """Whether nothing can be sent any more; `problem` says why."""
        return self._pauses.has_ended

    async def ask(
        self, write: Callable[[int], bytes], late: Callable[[Pdu], None] | None = None
    ) -> Pdu:
        """Send a request, once, and return its answer.

        write: makes the request with a sequence number.
        late: called with the answer if it comes after this gave up waiting.

        Raises:
            NotWritten: the connection ended before.
            NoAnswer: no answer came in time, or the connection ended.
        """
        if self.has_ended:
            raise NotWritten(self.problem)
        sequence = self._sequence = self._sequence % pdus.LAST_SEQUENCE + 1
        octets = write(sequence)
        waiting: asyncio.Future[Pdu] = asyncio.get_running_loop().create_future()
        self._answers[sequence] = waiting
        try:
            async with self._clock.timeout(self._within_s):
                self._writer.write(octets)
                await self._writer.drain()
                return await waiting
        except TimeoutError:
            if late is not None and len(self._late) < MOST_LATE:
                self._late[sequence] = late
            raise NoAnswer(f"no answer within {self._within_s:g} s") from None
        except OSError as error:
            raise NoAnswer(f"the connection broke: {type(error).__name__}") from None
        finally:
            self._answers.pop(sequence, None)

    def enquire_each(self, seconds: float) -> None:
        """From now on ask so often whether the SMSC is there; end the connection if it is not."""
        self._start(self._enquire(seconds))

    async def close(self) -> None:
        """Tell the SMSC that we go, and end everything."""
        if not self.has_ended:
            self._send(pdus.request(pdus.UNBIND, self._sequence % pdus.LAST_SEQUENCE + 1))
            self._end("the network was closed")
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._writer.transport.get_write_buffer_size():
            self._writer.transport.abort()  # the SMSC does not read
        with suppress(OSError):
            await self._writer.wait_closed()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _send(self, octets: bytes) -> None:
        """Send what needs no answer; where the connection has ended, nothing."""
        if not self.has_ended:
            self._writer.write(octets)

    def _end(self, problem: str) -> None:
        """End the connection once. What was written is still sent, if the SMSC reads it."""
        if self.has_ended:
            return
        self.problem = problem
        self._pauses.end()
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(NoAnswer(problem))
        self._late.clear()
        self._writer.close()
        self.on_end()

    async def _read(self) -> None:
        try:
            while True:
                self._handle(await pdus.read_pdu(self._reader))
                if self.has_ended:
                    return
        except asyncio.IncompleteReadError:
            self._end("the SMSC ended the connection")
        except OSError as error:
            self._end(f"the connection broke: {type(error).__name__}")
        except UnreadablePdu as error:
            self._end(f"the SMSC sent {error}")

    def _handle(self, pdu: Pdu) -> None:
        if pdu.is_answer:
            waiting, late = self._answers.get(pdu.sequence), self._late.pop(pdu.sequence, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(pdu)
            elif late is not None:
                late(pdu)
        elif pdu.command == pdus.DELIVER_SM:
            self._deliveries.begin(pdu, self._send)
        elif pdu.command == pdus.ENQUIRE_LINK:
            self._send(pdus.answer(pdu))
        elif pdu.command == pdus.UNBIND:
            self._send(pdus.answer(pdu))
            self._end("the SMSC unbound us")
        else:
            self._send(pdus.not_understood(pdu))

    async def _enquire(self, seconds: float) -> None:
        while not self.has_ended:
            await self._pauses.wait(seconds)
            try:
                await self.ask(lambda sequence: pdus.request(pdus.ENQUIRE_LINK, sequence))
            except NotWritten:
                return
            except NoAnswer as error:
                self._end(f"enquire_link: {error}")
