"""A message as it goes out: parts, alphabets, headers and addresses (D23, D39)."""

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.networks.smpp.outgoing import SmppAddress, Unsendable, parts_of, source_address
from sandbox_sim.networks.smpp.settings import AddressType
from sandbox_sim.sms.sms_encoding import measure
from tests.networks.smpp.network import sms

AUTO = AddressType.AUTO

pytestmark = [pytest.mark.decision("D23"), pytest.mark.decision("D39")]


@given(st.text(min_size=1, max_size=800))
def test_a_message_is_sent_in_as_many_parts_as_are_charged(text: str) -> None:
    parts = parts_of(sms(text), AUTO, 7)

    assert len(parts) == measure(text).page_count
    assert [part.number for part in parts] == [*range(1, len(parts) + 1)]
    assert {part.total for part in parts} == {len(parts)}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=800))
def test_each_part_fits_in_a_short_message_and_the_text_is_complete(text: str) -> None:
    parts = parts_of(sms(text), AUTO, 7)
    headers = 6 if len(parts) > 1 else 0

    # 140 octets on the air, where 7 bits of an octet of GSM count.
    for part in parts:
        bits = 8 if part.data_coding else 7
        on_air = -(-(headers * 8 + (len(part.octets) - headers) * bits) // 8)
        assert on_air <= 140
    if parts[0].data_coding:
        joined = b"".join(part.octets[headers:] for part in parts)
        assert joined.decode("utf-16-be") == text


@pytest.mark.parametrize(
    ("text", "octets", "data_coding"),
    [("a€", b"a\x1be", 0), ("日本", b"\x65\xe5\x67\x2c", 8)],
    ids=["GSM", "UCS-2"],
)
@pytest.mark.parametrize("party", ["233244000001", "0244000001", "+233244000001"])
def test_a_short_text_has_no_header_and_its_recipient_is_an_international_number(
    text: str, octets: bytes, data_coding: int, party: str
) -> None:
    (part,) = parts_of(sms(text, party=party), AUTO, 7)

    assert (part.octets, part.esm_class, part.data_coding) == (octets, 0, data_coding)
    assert part.destination == SmppAddress("233244000001", 1, 1)


def test_a_long_text_has_a_header_in_each_part() -> None:
    parts = parts_of(sms("日" * 100), AUTO, 7)

    assert [part.octets[:6] for part in parts] == [bytes([5, 0, 3, 7, 2, n]) for n in (1, 2)]
    assert [len(part.octets) for part in parts] == [6 + 134, 6 + 66]
    assert {part.esm_class for part in parts} == {0x40}


def test_more_parts_than_a_header_can_count_are_not_sent() -> None:
    assert len(parts_of(sms("a" * 153 * 255), AUTO, 7)) == 255
    with pytest.raises(Unsendable, match="has 256 pages, and at most 255 can be sent"):
        parts_of(sms("a" * 153 * 256), AUTO, 7)


@pytest.mark.parametrize(
    ("sender_id", "kind", "expected"),
    [
        ("Shop", "auto", ("Shop", 5, 0)),
        ("A very long name", "auto", ("A very long", 5, 0)),
        ("1400", "auto", ("1400", 3, 0)),
        ("233244000001", "auto", ("233244000001", 1, 1)),
        ("+233244000001", "auto", ("233244000001", 1, 1)),
        ("0244000001", "auto", ("233244000001", 1, 1)),
        ("1400", "alphanumeric", ("1400", 5, 0)),
        ("0244000001", "national", ("0244000001", 2, 1)),
        ("1400", "unknown", ("1400", 0, 0)),
        ("1234567", "short_code", ("1234567", 3, 0)),
    ],
)
def test_a_sender_has_the_address_type_of_its_form_or_of_the_setting(
    sender_id: str, kind: str, expected: tuple[str, int, int]
) -> None:
    assert source_address(sender_id, AddressType(kind)) == expected
