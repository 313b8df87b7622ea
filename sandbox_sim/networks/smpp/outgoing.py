"""An outgoing message: its addresses, and its text in parts with a header. Sources: D23, SMPP.

Each page is one part. The parts of a longer message begin with a user data header (3GPP TS 23.040,
9.2.3.24.1): a reference that all of them share, how many they are, and the number of the part.
Pages of a longer message are shorter by the length of this header.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sandbox_sim.networks.smpp.settings import AddressType
from sandbox_sim.ports.network import SubmitRequest
from sandbox_sim.sms import sms_encoding
from sandbox_sim.values import msisdn

DEFAULT_ALPHABET: Final = 0x00  # GSM 03.38

UCS2: Final = 0x08

HAS_HEADER: Final = 0x40

# The header counts parts in one octet.
MOST_PARTS: Final = 255

# Networks show this many characters of a sender that is not a number.
_LONGEST_ALPHANUMERIC: Final = 11

_LONGEST_SHORT_CODE: Final = 6

_LONGEST_NUMBER: Final = 20

# Type of number and numbering plan (SMPP 3.4, 5.2.5 and 5.2.6).
_TYPES_AND_PLANS: Final = {
    AddressType.ALPHANUMERIC: (5, 0),
    AddressType.INTERNATIONAL: (1, 1),
    AddressType.NATIONAL: (2, 1),
    AddressType.SHORT_CODE: (3, 0),
    AddressType.UNKNOWN: (0, 0),
}


class Unsendable(ValueError):
    """SMPP cannot carry the message; the text says why."""


class SmppAddress(NamedTuple):
    """A phone number, or the name of a sender."""

    text: str
    ton: int
    npi: int


class Part(NamedTuple):
    """One part of a message, number 1 to `total`."""

    number: int
    total: int
    source: SmppAddress
    destination: SmppAddress
    data_coding: int
    esm_class: int
    octets: bytes


def parts_of(request: SubmitRequest, kind: AddressType, reference: int) -> Sequence[Part]:
    """The parts of a message, in order: as many as its text has pages.

    reference: an octet that tells the parts of this message from those of others.

    Raises:
        Unsendable: the text has too many pages, or an address has characters that cannot be sent.
    """
    pages = sms_encoding.pages(request.text)
    if len(pages) > MOST_PARTS:
        raise Unsendable(
            f"the message has {len(pages)} pages, and at most {MOST_PARTS} can be sent"
        )
    encoding = sms_encoding.measure(request.text).encoding
    source = source_address(request.sender_id, kind)
    destination = SmppAddress(msisdn.to_international(request.party.lstrip("+")), 1, 1)
    found = []
    for number, page in enumerate(pages, 1):
        header = bytes([5, 0, 3, reference, len(pages), number]) if len(pages) > 1 else b""
        found.append(
            Part(
                number,
                len(pages),
                source,
                destination,
                DEFAULT_ALPHABET if encoding == "GSM" else UCS2,
                HAS_HEADER if header else 0,
                header + sms_encoding.octets(page, encoding),
            )
        )
    return found


def source_address(sender_id: str, kind: AddressType) -> SmppAddress:
    """The sender as an address of this kind.

    Raises:
        Unsendable: it has characters that cannot be sent.
    """
    text = sender_id.strip()
    if not text or not all(" " <= character <= "~" for character in text):
        raise Unsendable("sender_id has characters other than printable ASCII")
    if kind is AddressType.AUTO:
        kind = _type_of(text)
    if kind is AddressType.ALPHANUMERIC:
        return SmppAddress(text[:_LONGEST_ALPHANUMERIC], *_TYPES_AND_PLANS[kind])
    if kind is AddressType.INTERNATIONAL:
        text = msisdn.to_international(text.lstrip("+"))
    if len(text) > _LONGEST_NUMBER:
        raise Unsendable(f"sender_id has more than {_LONGEST_NUMBER} characters")
    return SmppAddress(text, *_TYPES_AND_PLANS[kind])


def _type_of(text: str) -> AddressType:
    digits = text.removeprefix("+")
    if not digits.isdecimal():
        return AddressType.ALPHANUMERIC
    short = len(digits) <= _LONGEST_SHORT_CODE
    return AddressType.SHORT_CODE if short else AddressType.INTERNATIONAL
