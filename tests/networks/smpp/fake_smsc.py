"""A small SMSC in this process, which breaks exchanges on purpose if a test asks for that.

It implements the part of SMPP 3.4 that the tests need. The tests in `test_node_smsc.py` use an
SMSC that others wrote.
"""

import asyncio
import socket
import ssl
import struct
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from typing import Any, Final

import smpp34
from smpp34 import DeliverSm, SubmitSm, Tlv

from sandbox_sim.testing.network_contract.peer import OTHER_SIDE

SUBMIT_SM, DELIVER_SM, UNBIND, BIND, ENQUIRE_LINK, DATA_SM = 0x04, 0x05, 0x06, 0x09, 0x15, 0x103
ANSWER: Final = 0x80000000
RECEIPT: Final = 0x04
RTHROTTLED, RMSGQFUL, RSYSERR, RINVDSTADR = 0x58, 0x14, 0x08, 0x0B
_HEADER: Final = struct.Struct(">IIII")


class Broken(Enum):
    """What the SMSC does with the next `submit_sm` in place of answering it."""

    CLOSE_UNREAD = auto()
    CLOSE = auto()
    RESET = auto()
    HALF_ANSWER = auto()
    ANSWER_AND_CLOSE = auto()
    SILENCE = auto()
    ANOTHER_COMMAND = auto()
    NACK = auto()


Reply = int | Broken


class FakeSmsc:
    """replies: a status or a fault for each of the next `submit_sm`; the others get ESME_ROK.

    submits: those that arrived whole. ids: the next message ids; numbers follow them.
    bind_status: the status of the answer to a bind. is_silent: whether it no longer answers.
    """

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()
        self.ids: deque[str] = deque()
        self.submits: list[SubmitSm] = []
        self.binds: list[tuple[str, str, str]] = []
        self.came: list[int] = []
        self.bind_status = 0
        self.is_silent = False
        self.silences = 0
        self.port = 0
        self._late: list[tuple[asyncio.StreamWriter, int]] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._bound: list[asyncio.StreamWriter] = []
        self._acknowledged: dict[int, asyncio.Future[int]] = {}
        self._sequence = 0
        self._taken = 0

    @property
    def bound(self) -> int:
        """How many connections are bound."""
        return len(self._bound)

    def drop(self) -> None:
        """Close every connection."""
        for writer in self._writers:
            writer.close()

    def answer_late(self, status: int = 0) -> None:
        """Answer each `submit_sm` that is still without an answer."""
        for writer, sequence in self._late:
            self._answer_submit(writer, sequence, status)
        self._late.clear()

    def stop_reading(self) -> None:
        """Stop reading from the newest bound connection."""
        self._bound[-1].transport.pause_reading()  # type: ignore[attr-defined]

    def send(self, octets: bytes) -> None:
        """Send these octets over the newest bound connection."""
        self._bound[-1].write(octets)

    def deliver(
        self, text: str | bytes = "", esm_class: int = RECEIPT, data_coding: int = 0, **tlvs: Any
    ) -> asyncio.Future[int]:
        """Send a `deliver_sm`; the future has the status that it is answered with.

        tlvs: `message_id`, `state`, or `payload`.
        """
        parameters = []
        if "message_id" in tlvs:
            parameters.append(Tlv(0x001E, tlvs["message_id"] + b"\0"))
        if "state" in tlvs:
            parameters.append(Tlv(0x0427, bytes([tlvs["state"]])))
        if "payload" in tlvs:
            parameters.append(Tlv(0x0424, tlvs["payload"]))
        acknowledged = self._next_acknowledged()
        pdu = DeliverSm(
            "233244000001",
            "Shop",
            text.encode("latin-1") if isinstance(text, str) else text,
            esm_class=esm_class,
            data_coding=data_coding,
            sequence_number=self._sequence,
            tlvs=parameters,
        )
        self.send(pdu.encode())
        return acknowledged

    def data(self, body: bytes) -> asyncio.Future[int]:
        """Send a `data_sm` with this body; the future has the status that it is answered with."""
        acknowledged = self._next_acknowledged()
        self.send(written(DATA_SM, 0, self._sequence, body))
        return acknowledged

    def _next_acknowledged(self) -> asyncio.Future[int]:
        """Take the next sequence number; returns the future status of the answer to it."""
        self._sequence += 1
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._acknowledged[self._sequence] = found
        return found

    def receipt(self, message_id: str, state: str = "DELIVRD") -> asyncio.Future[int]:
        """Send the receipt of a message."""
        times = "submit date:2601010900 done date:2601010901"
        return self.deliver(
            f"id:{message_id} sub:001 dlvrd:001 {times} stat:{state} err:000 text:Hello"
        )

    def ask(self, command: int) -> None:
        """Send a request without a body."""
        self._sequence += 1
        self.send(_HEADER.pack(16, command, 0, self._sequence))

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator["FakeSmsc"]:
        """Listen on 127.0.0.1 and a free port, inside of the context."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for _ in range(10):  # a connection that was just accepted begins
                await asyncio.sleep(0)
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.gather(*self._serving)
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name(OTHER_SIDE)
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        self._writers.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                await self._read(reader, writer)
        self._writers.discard(writer)
        if writer in self._bound:
            self._bound.remove(writer)
        writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readexactly(16)
        length, command, status, sequence = _HEADER.unpack(head)
        self.came.append(command)
        if command == SUBMIT_SM and self.replies and self.replies[0] is Broken.CLOSE_UNREAD:
            self.replies.popleft()
            writer.close()
            return
        octets = head + await reader.readexactly(length - 16)
        if command == BIND:
            system_id, password, system_type = octets[16:].split(b"\0")[:3]
            self.binds.append((system_id.decode(), password.decode(), system_type.decode()))
            if not self.bind_status:
                self._bound.append(writer)
            writer.write(written(BIND | ANSWER, self.bind_status, sequence, b"Fake\0"))
        elif command == SUBMIT_SM:
            submit = smpp34.decode(octets)
            assert isinstance(submit, SubmitSm)
            self.submits.append(submit)
            self._reply(writer, sequence)
        elif command in {DELIVER_SM | ANSWER, DATA_SM | ANSWER}:
            self._acknowledged.pop(sequence).set_result(status)
        elif command in {ENQUIRE_LINK, UNBIND} and not self.is_silent:
            writer.write(written(command | ANSWER, 0, sequence))

    def _reply(self, writer: asyncio.StreamWriter, sequence: int) -> None:
        reply = self.replies.popleft() if self.replies else 0
        if isinstance(reply, int):
            self._answer_submit(writer, sequence, reply)
            return
        if reply is Broken.SILENCE:
            self.silences += 1
            self._late.append((writer, sequence))
        elif reply is Broken.ANOTHER_COMMAND:
            writer.write(written(ENQUIRE_LINK | ANSWER, RINVDSTADR, sequence))
        elif reply is Broken.NACK:
            writer.write(written(ANSWER, 0x03, sequence))
        elif reply is Broken.HALF_ANSWER:
            writer.write(written(SUBMIT_SM | ANSWER, 0, sequence, b"1\0")[:10])
        elif reply is Broken.ANSWER_AND_CLOSE:
            self._answer_submit(writer, sequence, 0)
        if reply is Broken.RESET:
            found = writer.get_extra_info("socket")
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        elif reply in {Broken.CLOSE, Broken.HALF_ANSWER, Broken.ANSWER_AND_CLOSE}:
            writer.close()

    def _answer_submit(self, writer: asyncio.StreamWriter, sequence: int, status: int) -> None:
        body = b""
        if not status:
            self._taken += 1
            body = (self.ids.popleft() if self.ids else str(self._taken)).encode() + b"\0"
        writer.write(written(SUBMIT_SM | ANSWER, status, sequence, body))


def written(command: int, status: int, sequence: int, body: bytes = b"") -> bytes:
    """A PDU."""
    return _HEADER.pack(16 + len(body), command, status, sequence) + body
