"""Card numbers of every brand, and the ways to write one, as strategies."""

from hypothesis import strategies as st

# First digits and lengths of each brand.
BRANDS = {
    "visa": ("4", (13, 16, 19)),
    "mastercard": ("55", (16,)),
    "mastercard 2": ("2720", (16,)),
    "amex": ("37", (15,)),
    "discover": ("6011", (16, 19)),
    "discover 64": ("644", (16,)),
    "verve": ("506101", (16, 18, 19)),
}
DIGITS = (
    "0123456789",
    "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19",  # fullwidth
    "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669",  # Arabic-Indic
    "".join(chr(0x1D7D8 + digit) for digit in range(10)),  # mathematical, two UTF-16 units each
)
GAPS = ("", "", " ", "-", "  ", " - ", "\u00a0", "\u2013", "\u200b", "\t")


def with_check_digit(digits: str) -> str:
    """Append the check digit of a card number to these digits (ISO/IEC 7812)."""
    doubled = [int(digit) * (2 - place % 2) for place, digit in enumerate(reversed(digits))]
    total = sum(each // 10 + each % 10 for each in doubled)
    return digits + str(-total % 10)


@st.composite
def numbers(draw: st.DrawFn) -> str:
    """Draw the digits of a card number with a correct check digit."""
    prefix, lengths = draw(st.sampled_from(list(BRANDS.values())))
    missing = draw(st.sampled_from(lengths)) - len(prefix) - 1
    rest = draw(st.text("0123456789", min_size=missing, max_size=missing))
    return with_check_digit(prefix + rest)


@st.composite
def spelt(draw: st.DrawFn, number: str) -> str:
    """Draw a way to write these digits, with gaps or with other digit characters."""
    alphabet = draw(st.sampled_from(DIGITS))
    gap, group = draw(st.sampled_from(GAPS)), draw(st.sampled_from([1, 4, 6]))
    groups = [number[k : k + group] for k in range(0, len(number), group)]
    return gap.join("".join(alphabet[int(digit)] for digit in each) for each in groups)
