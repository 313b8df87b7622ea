"""The number of pages of a text, compared with a slow packer that is written for the test (D23)."""

import pytest
from hypothesis import example, given, strategies as st

from sandbox_sim.sms.sms_encoding import measure, octets, pages

pytestmark = pytest.mark.decision("D23")

# GSM 03.38, table 1, in the order of its codes; 0x1B is the escape, not a character.
TABLE = (
    "@£$¥èéùìòÇ\nØø\rÅå"
    "Δ_ΦΓΛΩΠΨΣΘΞÆæßÉ"
    " !\"#¤%&'()*+,-./"
    "0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNO"
    "PQRSTUVWXYZÄÖÑÜ§"
    "¿abcdefghijklmno"
    "pqrstuvwxyzäöñüà"
)

EXTENSION = "\f^{}\\[~]|€"

# Characters of neither table. Some look like GSM: c with cedilla, the backtick, the escape.
OUTSIDE = "çÁêő`\t\x1b\u00a0’–…中\N{GRINNING FACE}\N{MUSICAL SYMBOL G CLEF}"
GSM_TEXT = st.text(st.sampled_from(TABLE + EXTENSION), min_size=1, max_size=700)
ANY_TEXT = st.text(st.sampled_from(TABLE + EXTENSION + OUTSIDE), min_size=1, max_size=300)


def units(char: str, encoding: str) -> int:
    """How many septets or UTF-16 code units a character takes."""
    if encoding == "GSM":
        return 2 if char in EXTENSION else 1
    return len(char.encode("utf-16-be")) // 2


def pack(text: str, encoding: str) -> list[str]:
    """The text cut into pages. A page takes characters while they fit whole."""
    alone, joined = (160, 153) if encoding == "GSM" else (70, 67)
    if sum(units(char, encoding) for char in text) <= alone:
        return [text]
    pages = [""]
    for char in text:
        if sum(units(c, encoding) for c in pages[-1] + char) > joined:
            pages.append("")
        pages[-1] += char
    return pages


def test_a_gsm_character_takes_one_or_two_septets_and_any_other_is_unicode() -> None:
    assert (len(set(TABLE)), len(set(EXTENSION)), set(TABLE) & set(EXTENSION)) == (127, 10, set())
    for characters, alone in ((TABLE, 160), (EXTENSION, 80)):
        for char in characters:
            assert measure(char * alone) == ("GSM", alone, 1)
            assert measure(char * (alone + 1)) == ("GSM", alone + 1, 2)
    for char in OUTSIDE:
        assert measure("Hello" + char) == ("UNICODE", 6, 1)
    assert measure("[" * 69 + "中") == ("UNICODE", 70, 1)


@pytest.mark.spec("endpoint.9")
@pytest.mark.parametrize(
    ("text", "pages"),
    [
        pytest.param("a" * 1, 1, id="1 septet"),
        pytest.param("a" * 160, 1, id="160 septets, all of one page"),
        pytest.param("a" * 161, 2, id="161 septets"),
        pytest.param("a" * 306, 2, id="twice 153"),
        pytest.param("a" * 307, 3, id="twice 153 and one"),
        pytest.param("a" * 459, 3, id="three times 153"),
        pytest.param("a" * 460, 4, id="three times 153 and one"),
        pytest.param("€" * 80, 1, id="80 pairs"),
        pytest.param("€" * 81, 2, id="81 pairs"),
        pytest.param("a" * 158 + "€", 1, id="a pair that ends on 160"),
        pytest.param("a" * 159 + "€", 2, id="a pair that would end on 161"),
        pytest.param("a" * 151 + "€" + "a" * 153, 2, id="a pair that ends on the border"),
        pytest.param("a" * 152 + "€" + "a" * 151, 2, id="a pair that moves to the next page whole"),
        pytest.param("a" * 152 + "€" + "a" * 152, 3, id="a pair that moves and takes a page more"),
        pytest.param("€" * 152, 2, id="152 pairs, 76 a page"),
        pytest.param("€" * 153, 3, id="153 pairs, though 306 septets would fit two pages"),
    ],
)
def test_a_gsm_text_has_the_pages_of_its_septets(text: str, pages: int) -> None:
    assert measure(text) == ("GSM", len(text), pages)


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        pytest.param("中" * 70, 1, id="70 code units, all of one page"),
        pytest.param("中" * 71, 2, id="71 code units"),
        pytest.param("中" * 134, 2, id="twice 67"),
        pytest.param("中" * 135, 3, id="twice 67 and one"),
        pytest.param("\uffff" * 70, 1, id="the last character of one code unit"),
        pytest.param("\U00010000" * 35 + "a", 2, id="the first character of two"),
        pytest.param("😀" * 35, 1, id="35 pairs"),
        pytest.param("😀" * 36, 2, id="36 pairs"),
        pytest.param("中" * 65 + "😀" + "中" * 67, 2, id="a pair that ends on the border"),
        pytest.param(
            "中" * 66 + "😀" + "中" * 65, 2, id="a pair that moves to the next page whole"
        ),
        pytest.param("中" * 66 + "😀" + "中" * 66, 3, id="a pair that moves and takes a page more"),
        pytest.param("😀" * 66, 2, id="66 pairs, 33 a page"),
        pytest.param("😀" * 67, 3, id="67 pairs, though 134 code units would fit two pages"),
    ],
)
def test_a_unicode_text_has_the_pages_of_its_code_units(text: str, pages: int) -> None:
    assert measure(text) == ("UNICODE", len(text), pages)


@given(ANY_TEXT | GSM_TEXT | st.text(min_size=1, max_size=300))
@example("x" * 400)
@example("ж" * 200)
def test_a_text_has_the_pages_of_the_slow_packer(text: str) -> None:
    encoding = "GSM" if set(text) <= set(TABLE + EXTENSION) else "UNICODE"
    packed = pack(text, encoding)

    assert measure(text) == (encoding, len(text), len(packed))
    assert list(pages(text)) == packed
    assert len(pages(text)) == len(packed)


def test_gsm_is_sent_as_its_codes_and_unicode_as_utf_16_big_endian() -> None:
    codes = [code for code in range(128) if code != 0x1B]

    assert octets(TABLE, "GSM") == bytes(codes)
    assert octets(EXTENSION, "GSM") == bytes.fromhex(
        "1b0a 1b14 1b28 1b29 1b2f 1b3c 1b3d 1b3e 1b40 1b65"
    )
    assert octets("ç\N{GRINNING FACE}", "UNICODE") == bytes.fromhex("00e7 d83d de00")
    assert octets("\ud83d", "UNICODE") == bytes.fromhex("d83d")
