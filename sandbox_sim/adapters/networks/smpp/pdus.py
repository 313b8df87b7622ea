"""The PDUs of SMPP 3.4 that the adapter writes and reads. Source: SMPP 3.4, sections 4 and 5.

The package smpp34 writes `submit_sm` and reads `deliver_sm`. The others are a header and a few
texts that end in a zero octet.
"""

import asyncio
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from sandbox_sim.adapters.networks.smpp import statuses

try:
    import smpp34
except ImportError:
    raise ImportError(
        "the package smpp34 is not installed: install the extra smpp of sandbox-sim"
    ) from None

if TYPE_CHECKING:
    from smpp34 import DeliverSm

    from sandbox_sim.adapters.networks.smpp.outgoing import Part

SUBMIT_SM: Final = 0x04
DELIVER_SM: Final = 0x05
UNBIND: Final = 0x06
BIND_TRANSCEIVER: Final = 0x09
ENQUIRE_LINK: Final = 0x15
GENERIC_NACK: Final = 0x80000000
# An answer has the command of its request and this bit.
ANSWER: Final = 0x80000000
BOUND: Final = BIND_TRANSCEIVER | ANSWER
SMPP_3_4: Final = 0x34
RECEIPT_WANTED: Final = 0x01
# A longer PDU is none; `deliver_sm` with a whole message_payload is shorter.
MOST_OCTETS: Final = 0x20000
LAST_SEQUENCE: Final = 0x7FFFFFFF

_HEADER: Final = struct.Struct(">IIII")


class UnreadablePdu(ValueError):
    """What came is no PDU of SMPP; the text says why."""


class Pdu(NamedTuple):
    """A PDU as it came; `octets` is all of it."""

    command: int
    status: int
    sequence: int
    octets: bytes

    @property
    def is_answer(self) -> bool:
        """Whether it answers a request of ours."""
        return bool(self.command & ANSWER)

    @property
    def message_id(self) -> str:
        """The first text of the body: the identifier in `submit_sm_resp`."""
        return self.octets[_HEADER.size :].partition(b"\0")[0].decode("latin-1").strip()


async def read_pdu(reader: asyncio.StreamReader) -> Pdu:
    """The next PDU.

    Raises:
        UnreadablePdu: its length cannot be.
        asyncio.IncompleteReadError: the connection ended.
    """
    head = await reader.readexactly(_HEADER.size)
    length, command, status, sequence = _HEADER.unpack(head)
    if not _HEADER.size <= length <= MOST_OCTETS:
        raise UnreadablePdu(f"a PDU of {length} octets")
    body = await reader.readexactly(length - _HEADER.size)
    return Pdu(command, status, sequence, head + body)


def delivered(pdu: Pdu) -> "DeliverSm":
    """What a `deliver_sm` says.

    Raises:
        UnreadablePdu: its fields cannot be read.
    """
    try:
        found = smpp34.decode(pdu.octets)
    except smpp34.SmppError as error:
        raise UnreadablePdu(str(error)) from None
    if not isinstance(found, smpp34.DeliverSm):
        raise UnreadablePdu("it is no deliver_sm")
    return found


def submit_sm(sequence: int, part: "Part") -> bytes:
    """A request to send a part of a message, with a receipt."""
    octets: bytes = smpp34.SubmitSm(
        part.source.text,
        part.destination.text,
        part.octets,
        source_addr_ton=part.source.ton,
        source_addr_npi=part.source.npi,
        dest_addr_ton=part.destination.ton,
        dest_addr_npi=part.destination.npi,
        esm_class=part.esm_class,
        registered_delivery=RECEIPT_WANTED,
        data_coding=part.data_coding,
        sequence_number=sequence,
    ).encode()
    return octets


def bind_transceiver(sequence: int, system_id: str, password: str, system_type: str) -> bytes:
    """A request to send and receive over this connection."""
    texts = b"".join(text.encode("ascii") + b"\0" for text in (system_id, password, system_type))
    # Then the type and the range of our addresses, which are the SMSC's to know.
    return _written(BIND_TRANSCEIVER, statuses.OK, sequence, texts + bytes([SMPP_3_4, 0, 0, 0]))


def request(command: int, sequence: int) -> bytes:
    """A request without a body: `enquire_link` or `unbind`."""
    return _written(command, statuses.OK, sequence)


def answer(pdu: Pdu, status: int = statuses.OK) -> bytes:
    """The answer to a request of the SMSC."""
    body = b"\0" if pdu.command == DELIVER_SM else b""  # its message_id is not used
    return _written(pdu.command | ANSWER, status, pdu.sequence, body)


def not_understood(pdu: Pdu) -> bytes:
    """The answer to a request that the adapter does not know."""
    return _written(GENERIC_NACK, statuses.INVALID_COMMAND, pdu.sequence)


def _written(command: int, status: int, sequence: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), command, status, sequence) + body
