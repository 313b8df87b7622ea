"""The PDUs and command statuses of SMPP 3.4.

After a status that is not listed here, such as one of a vendor, the SMSC may have taken the
message.

The package smpp34 writes `submit_sm` and reads `deliver_sm`. The other PDUs are a header and a few
texts that end in a zero octet.

A delivery receipt (5.2.28 and appendix B) names the message and its state in its text
(`id:… stat:DELIVRD err:000 …`), in two optional parameters, or in both.
"""

import asyncio
import re
import struct
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sandbox_sim.networks.smpp.outgoing import HAS_HEADER, UCS2
from sandbox_sim.networks.smpp.settings import ReceiptIds
from sandbox_sim.records.reports import Outcome

if TYPE_CHECKING:
    from smpp34 import DeliverSm

    from sandbox_sim.networks.smpp.outgoing import Part

OK: Final = 0x00

INVALID_COMMAND: Final = 0x03

# To an SMSC: deliver it again later, or never.
TEMPORARY_ERROR: Final = 0x64

PERMANENT_ERROR: Final = 0x65


_STATUSES: Final[Mapping[str, Any]] = tomllib.loads(
    files(__package__).joinpath("statuses.toml").read_text("utf-8")
)
_NAMES: Final[Mapping[int, str]] = {
    number: name
    for table in (*_STATUSES["refusals"].values(), _STATUSES["others"])
    for name, number in table.items()
}

# The SMSC did not take the message, and will take it later.
THROTTLED: Final = frozenset({"ESME_RTHROTTLED", "ESME_RMSGQFUL"})

# The SMSC itself failed, and may have taken the message.
SYSTEM_ERRORS: Final = frozenset({"ESME_RSYSERR", "ESME_RX_T_APPN", "ESME_RUNKNOWNERR"})

# The statuses of a refusal, and the interface's code for each.
REFUSALS: Final[Mapping[str, str]] = {
    name: code for code, table in _STATUSES["refusals"].items() for name in table
}


def name_of(status: int) -> str:
    """The name of a status; one that SMPP does not list is named by its number."""
    return _NAMES.get(status) or f"status {status:#010x}"


try:
    import smpp34
except ImportError:
    raise ImportError(
        "the package smpp34 is not installed: install the extra smpp of sandbox-sim"
    ) from None


SUBMIT_SM: Final = 0x04

DELIVER_SM: Final = 0x05

UNBIND: Final = 0x06

BIND_TRANSCEIVER: Final = 0x09

ENQUIRE_LINK: Final = 0x15

DATA_SM: Final = 0x103

# How an SMSC delivers a message or a receipt.
DELIVERIES: Final = frozenset({DELIVER_SM, DATA_SM})

GENERIC_NACK: Final = 0x80000000

# An answer has the command of its request and this bit.
ANSWER: Final = 0x80000000

BOUND: Final = BIND_TRANSCEIVER | ANSWER

SMPP_3_4: Final = 0x34

RECEIPT_WANTED: Final = 0x01

# A longer PDU is invalid; `deliver_sm` with a whole message_payload is shorter.
MOST_OCTETS: Final = 0x20000

LAST_SEQUENCE: Final = 0x7FFFFFFF

# SMPP allows 64 characters; some SMSCs write more.
LONGEST_ID: Final = 255


_HEADER: Final = struct.Struct(">IIII")

# service_type and both addresses; esm_class; registered_delivery; data_coding.
_DATA_SM: Final = re.compile(rb"([^\0]*\0(?:..[^\0]*\0){2})(.)(.)(.)", re.DOTALL)


class UnreadablePdu(ValueError):
    """The received octets are not a valid SMPP PDU; the text says why."""


class Pdu(NamedTuple):
    """A PDU as it came; `octets` is all of it."""

    command: int
    status: int
    sequence: int
    octets: bytes

    @property
    def is_answer(self) -> bool:
        """Whether it is an answer to a request of the gateway."""
        return bool(self.command & ANSWER)

    @property
    def message_id(self) -> str:
        """The first text of the body, the identifier in `submit_sm_resp`; empty if invalid."""
        try:
            return identifier(self.octets[_HEADER.size :].partition(b"\0")[0])
        except UnreadablePdu:
            return ""


def identifier(octets: bytes) -> str:
    """The identifier that an SMSC gave a message.

    Raises:
        UnreadablePdu: it is much longer than SMPP allows, or has other than printable ASCII.
    """
    text = octets.decode("latin-1").strip()
    if len(text) > LONGEST_ID:
        raise UnreadablePdu(f"an identifier of {len(text)} characters is too long")
    if not all(" " <= character <= "~" for character in text):
        raise UnreadablePdu("an identifier with characters other than printable ASCII")
    return text


async def read_pdu(reader: asyncio.StreamReader) -> Pdu:
    """The next PDU.

    Raises:
        UnreadablePdu: its length is invalid.
        asyncio.IncompleteReadError: the connection ended.
    """
    head = await reader.readexactly(_HEADER.size)
    length, command, status, sequence = _HEADER.unpack(head)
    if not _HEADER.size <= length <= MOST_OCTETS:
        raise UnreadablePdu(f"a PDU of {length} octets")
    body = await reader.readexactly(length - _HEADER.size)
    return Pdu(command, status, sequence, head + body)


def delivered(pdu: Pdu) -> "DeliverSm":
    """The fields of a `deliver_sm`, or those of a `data_sm` as the `deliver_sm` that says the same.

    Raises:
        UnreadablePdu: its fields cannot be read.
    """
    octets = pdu.octets if pdu.command == DELIVER_SM else _as_deliver_sm(pdu)
    try:
        found = smpp34.decode(octets)
    except smpp34.SmppError as error:
        raise UnreadablePdu(str(error)) from None
    if not isinstance(found, smpp34.DeliverSm):
        raise UnreadablePdu("it is not a deliver_sm")
    return found


def _as_deliver_sm(pdu: Pdu) -> bytes:
    """A `data_sm` (4.7.1) with the fields that only a `deliver_sm` has, all empty."""
    found = _DATA_SM.match(pdu.octets, _HEADER.size)
    if found is None:
        raise UnreadablePdu("a data_sm that ends before its data_coding")
    addresses, esm_class, registered, coding = found.groups()
    # First protocol_id, priority_flag and two times, then replace_if_present_flag, and at the end
    # sm_default_msg_id and sm_length.
    fields = addresses + esm_class + bytes(4) + registered + bytes(1) + coding + bytes(2)
    return _pack(DELIVER_SM, pdu.status, pdu.sequence, fields + pdu.octets[found.end() :])


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
    # Then the type and the range of our addresses, which the SMSC knows already.
    return _pack(BIND_TRANSCEIVER, OK, sequence, texts + bytes([SMPP_3_4, 0, 0, 0]))


def request(command: int, sequence: int) -> bytes:
    """A request without a body: `enquire_link` or `unbind`."""
    return _pack(command, OK, sequence)


def answer(pdu: Pdu, status: int = OK) -> bytes:
    """The answer to a request of the SMSC."""
    body = b"\0" if pdu.command in DELIVERIES else b""  # its message_id is not used
    return _pack(pdu.command | ANSWER, status, pdu.sequence, body)


def generic_nack(pdu: Pdu) -> bytes:
    """The answer to a request that the adapter does not know."""
    return _pack(GENERIC_NACK, INVALID_COMMAND, pdu.sequence)


def _pack(command: int, status: int, sequence: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), command, status, sequence) + body


_RECEIPTED_MESSAGE_ID: Final = 0x001E

_MESSAGE_PAYLOAD: Final = 0x0424

_MESSAGE_STATE: Final = 0x0427

# The kind of a message, in its esm_class.
_KIND: Final = 0b00111100

_RECEIPT: Final = 0b00000100

_INTERMEDIATE: Final = 0b00100000


_STATES: Final[Mapping[str, Outcome]] = {
    "DELIVRD": Outcome.SUCCEEDED,
    **dict.fromkeys(("EXPIRED", "DELETED", "UNDELIV", "REJECTD"), Outcome.FAILED),
    **dict.fromkeys(("SCHEDLD", "ENROUTE", "ACCEPTD"), Outcome.PENDING),
}

# The states in the order of the values that the parameter message_state has for them.
_STATES_IN_ORDER: Final = (
    *("SCHEDLD", "ENROUTE", "DELIVRD", "EXPIRED", "DELETED", "UNDELIV"),
    *("ACCEPTD", "UNKNOWN", "REJECTD"),
)

_ID: Final = re.compile(r"\bid:([^\s\0]+)", re.IGNORECASE)

# Shown as the reason of a failure, so only short and printable values are read.
_STATE: Final = re.compile(r"\bstat:([!-~]{1,25})", re.IGNORECASE)

_ERROR: Final = re.compile(r"\berr:([!-~]{1,25})", re.IGNORECASE)

# After this comes the beginning of the message text.
_QUOTED: Final = re.compile(r"\btext:", re.IGNORECASE)

_HEX: Final = re.compile(r"[0-9A-Fa-f]+")


class Receipt(NamedTuple):
    """A parsed receipt.

    text_id: the identifier in its text; parameter_id: in its parameter; empty if absent.
    reason: the state in the SMSC's words, if the message did not arrive.
    """

    outcome: Outcome
    text_id: str
    parameter_id: str
    reason: str


def receipt_of(delivered: "DeliverSm") -> Receipt | None:
    """The receipt in a `deliver_sm`; None if it is a message from a phone.

    Its kind or a parameter makes it a receipt. Its text does not, because a phone can send that.

    Raises:
        UnreadablePdu: an identifier in it is invalid.
    """
    parameters = {each.tag: bytes(each.value) for each in delivered.tlvs}
    kind = delivered.esm_class & _KIND
    if kind not in {_RECEIPT, _INTERMEDIATE} and _RECEIPTED_MESSAGE_ID not in parameters:
        return None
    text = _QUOTED.split(_text_of(delivered, parameters), maxsplit=1)[0]
    text_state = _search(_STATE, text).upper()
    state = parameters.get(_MESSAGE_STATE, b"")
    is_listed = len(state) == 1 and state[0] < len(_STATES_IN_ORDER)
    parameter_state = _STATES_IN_ORDER[state[0]] if is_listed else ""
    outcome = _outcome(text_state, parameter_state)
    if kind == _INTERMEDIATE and outcome in {Outcome.SUCCEEDED, Outcome.FAILED}:
        outcome = Outcome.PENDING
    error = _search(_ERROR, text)
    reason = f"{text_state or parameter_state}{f', err {error}' if error else ''}"
    return Receipt(
        outcome,
        identifier(_search(_ID, text).encode("latin-1")),
        identifier(parameters.get(_RECEIPTED_MESSAGE_ID, b"").partition(b"\0")[0]),
        reason if outcome is Outcome.FAILED else "",
    )


def _text_of(delivered: "DeliverSm", parameters: Mapping[int, bytes]) -> str:
    """The text of a receipt. Where it quotes a message in UCS-2, some SMSCs write all of it so."""
    octets = bytes(delivered.short_message) or parameters.get(_MESSAGE_PAYLOAD, b"")
    if delivered.esm_class & HAS_HEADER and octets:
        octets = octets[octets[0] + 1 :]
    if delivered.data_coding != UCS2 or not octets.startswith(b"\0"):
        return octets.decode("latin-1")
    return octets.decode("utf-16-be", "replace").encode("ascii", "replace").decode()


def key_of_answer(message_id: str, form: ReceiptIds) -> str:
    """The key for an identifier of `submit_sm_resp`; its receipts have the same key."""
    if form is ReceiptIds.SAME:
        return _normalized(message_id)
    return _decimal(message_id, 16 if form is ReceiptIds.DECIMAL_OF_HEX else 10)


def key_of_receipt(receipt: Receipt, form: ReceiptIds) -> str:
    """The key of the message of a receipt; empty if the receipt has no identifier.

    The parameter repeats `submit_sm_resp`; only the text may have the number in another form.
    """
    if form is ReceiptIds.SAME or not receipt.text_id:
        return key_of_answer(receipt.parameter_id or receipt.text_id, form)
    return _decimal(receipt.text_id, 10 if form is ReceiptIds.DECIMAL_OF_HEX else 16)


def _normalized(text: str) -> str:
    """A number without leading zeros, in lower case; any other text unchanged."""
    return (text.lower().lstrip("0") or "0") if _HEX.fullmatch(text) else text


def _decimal(text: str, base: int) -> str:
    """A number in decimal; any other text unchanged."""
    is_number = _HEX.fullmatch(text) if base == 16 else text.isascii() and text.isdecimal()
    return str(int(text, base)) if is_number else text


def _outcome(*states: str) -> Outcome:
    """The outcome of several states; UNKNOWN if they disagree or are not listed."""
    outcomes = {_STATES[state] for state in states if state in _STATES}
    return outcomes.pop() if len(outcomes) == 1 else Outcome.UNKNOWN


def _search(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""
