"""What a delivery receipt says. Source: SMPP 3.4, 5.2.28 and appendix B.

A receipt names the message and its state in its text (`id:… stat:DELIVRD err:000 …`), in two
optional parameters, or in both.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from sandbox_sim.networks.smpp.pdus import identifier
from sandbox_sim.networks.smpp.settings import ReceiptIds
from sandbox_sim.records.reports import Outcome

if TYPE_CHECKING:
    from smpp34 import DeliverSm


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

# The values of the parameter message_state, as the text has them.
_NUMBERED: Final[Mapping[int, str]] = dict(
    enumerate(
        (
            *("SCHEDLD", "ENROUTE", "DELIVRD", "EXPIRED", "DELETED", "UNDELIV"),
            *("ACCEPTD", "UNKNOWN", "REJECTD"),
        )
    )
)

_ID: Final = re.compile(r"\bid:([^\s\0]+)", re.IGNORECASE)

# Shown as the reason of a failure, so what is long or cannot be printed is left out.
_STATE: Final = re.compile(r"\bstat:([!-~]{1,25})", re.IGNORECASE)

_ERROR: Final = re.compile(r"\berr:([!-~]{1,25})", re.IGNORECASE)

# What follows is the beginning of the message, in the words of the sender.
_QUOTED: Final = re.compile(r"\btext:", re.IGNORECASE)

_HEX: Final = re.compile(r"[0-9A-Fa-f]+")


class Receipt(NamedTuple):
    """A receipt, read.

    written_id: the identifier in its text, parameter_id: that of its parameter; empty if absent.
    reason: the state in the SMSC's words, where the message did not arrive.
    """

    outcome: Outcome
    written_id: str
    parameter_id: str
    reason: str


def receipt_of(delivered: "DeliverSm") -> Receipt | None:
    """The receipt in a `deliver_sm`; None where it is a message of a phone.

    Its kind or a parameter makes it a receipt. Its text does not: a phone can send that too.

    Raises:
        UnreadablePdu: an identifier in it is none.
    """
    parameters = {each.tag: bytes(each.value) for each in delivered.tlvs}
    kind = delivered.esm_class & _KIND
    if kind not in {_RECEIPT, _INTERMEDIATE} and _RECEIPTED_MESSAGE_ID not in parameters:
        return None
    octets = bytes(delivered.short_message) or parameters.get(_MESSAGE_PAYLOAD, b"")
    text = _QUOTED.split(octets.decode("latin-1"), maxsplit=1)[0]
    written = _found(_STATE, text).upper()
    state = parameters.get(_MESSAGE_STATE, b"")
    numbered = _NUMBERED.get(state[0], "") if len(state) == 1 else ""
    outcome = _outcome(written, numbered)
    if kind == _INTERMEDIATE and outcome in {Outcome.SUCCEEDED, Outcome.FAILED}:
        outcome = Outcome.PENDING
    error = _found(_ERROR, text)
    reason = f"{written or numbered}{f', err {error}' if error else ''}"
    return Receipt(
        outcome,
        identifier(_found(_ID, text).encode("latin-1")),
        identifier(parameters.get(_RECEIPTED_MESSAGE_ID, b"").partition(b"\0")[0]),
        reason if outcome is Outcome.FAILED else "",
    )


def key_of_answer(message_id: str, form: ReceiptIds) -> str:
    """What an identifier of `submit_sm_resp` is found by; the same as that of its receipts."""
    if form is ReceiptIds.SAME:
        return _same(message_id)
    return _number(message_id, 16 if form is ReceiptIds.DECIMAL_OF_HEX else 10)


def key_of_receipt(receipt: Receipt, form: ReceiptIds) -> str:
    """What the message of a receipt is found by; empty where the receipt names none.

    The parameter repeats `submit_sm_resp`; only the text may have the number in another form.
    """
    if form is ReceiptIds.SAME or not receipt.written_id:
        return key_of_answer(receipt.parameter_id or receipt.written_id, form)
    return _number(receipt.written_id, 10 if form is ReceiptIds.DECIMAL_OF_HEX else 16)


def _same(text: str) -> str:
    """A number without its leading zeros, its letters small; any other text as it is."""
    return (text.lower().lstrip("0") or "0") if _HEX.fullmatch(text) else text


def _number(text: str, base: int) -> str:
    """A number in decimal; any other text as it is."""
    is_number = _HEX.fullmatch(text) if base == 16 else text.isascii() and text.isdecimal()
    return str(int(text, base)) if is_number else text


def _outcome(*states: str) -> Outcome:
    """What states say together; UNKNOWN where they disagree, or none of them is listed."""
    said = {_STATES[state] for state in states if state in _STATES}
    return said.pop() if len(said) == 1 else Outcome.UNKNOWN


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""
