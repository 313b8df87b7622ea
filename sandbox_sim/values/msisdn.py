"""Phone numbers: the allowlist, and the two forms of a number.

Source: sandbox.1, sandbox.2, D11. The local form has ten digits, `0244000001`. The international
form has 233 in place of the zero, `233244000001`.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from sandbox_sim.values.redaction import quoted

COUNTRY_CODE: Final = "233"

DECLINED_DIGIT: Final = "9"

# The networks that issue the prefixes of sandbox.4, for `match_network`.
NETWORK_OF_PREFIX: Final = {"0244": "MTN", "0200": "VOD", "0270": "AIR"}


_LOCAL: Final = re.compile(r"0[0-9]{9}")

_INTERNATIONAL: Final = re.compile(r"233[0-9]{9}")

_WITH_PLUS: Final = re.compile(r"\+233[0-9]{9}")

# The digits of a number as people write it, with or without the code of the country.
_TYPED: Final = re.compile(r"(?:(?:00)?233)?0?([0-9]{9})")


def to_local(number: str) -> str | None:
    """The local form of a number in either form; None for anything else, `+233…` included."""
    if _LOCAL.fullmatch(number):
        return number
    if _INTERNATIONAL.fullmatch(number):
        return "0" + number[len(COUNTRY_CODE) :]
    return None


def to_international(number: str) -> str:
    """The 233 form of a number in local form; any other text unchanged."""
    return COUNTRY_CODE + number[1:] if _LOCAL.fullmatch(number) else number


def without_plus(number: str) -> str:
    """`+233244000001` without its plus; any other text unchanged."""
    return number[1:] if _WITH_PLUS.fullmatch(number) else number


def probable_local(number: str) -> str | None:
    """The local form that somebody probably meant by a number in any form; None if unclear."""
    found = _TYPED.fullmatch("".join(re.findall("[0-9]", number)))
    return None if found is None else "0" + found[1]


def is_declined(identifier: str) -> bool:
    """Whether the number or account is a simulated decline: its last digit is 9 (sandbox.2)."""
    return identifier.endswith(DECLINED_DIGIT)


def network_mismatch(number: str, nw: str) -> str | None:
    """The network that issued the number, if it is not `nw` (D11); else None."""
    owner = NETWORK_OF_PREFIX.get((to_local(number) or "")[:4])
    return None if owner == nw else owner


@dataclass(frozen=True, slots=True)
class Allowlist:
    """The numbers that sandbox accepts (sandbox.1, D11).

    prefixes: local prefixes such as "0244".
    numbers: if not empty, only these local numbers, and only those with an allowed prefix.
    accept_international: payments accept the 233 form too, and SMS always does; both accept +233.
    """

    prefixes: tuple[str, ...] = ("0244", "0200", "0270")
    numbers: frozenset[str] = field(default=frozenset())
    accept_international: bool = False

    def allows(self, number: str, *, either_form: bool = False) -> bool:
        """Whether the number is allowed, in local form or, with `either_form`, in the 233 form."""
        if _LOCAL.fullmatch(number) is None:
            plain = without_plus(number) if self.accept_international else number
            form = to_local(plain) if either_form or self.accept_international else None
            return form is not None and self.allows(form)
        return number.startswith(self.prefixes) and (not self.numbers or number in self.numbers)

    def refusal(self, number: str, forms: str = "") -> str:
        """Why a number is not allowed in any form: quotes it, and names what would be taken.

        A sentence without its subject (D36). forms: a clause about the forms that are accepted.
        """
        value, prefixes = quoted(number), ", ".join(self.prefixes)
        local = to_local(number)
        if local is None:
            says = f"{value} is not ten digits that begin {prefixes}{forms}"
            meant = probable_local(number)
            return f"{says}; '{meant}' would work" if meant and self.allows(meant) else says
        if local.startswith(self.prefixes):
            return f"{value} is not listed in the setting allowed_numbers{forms}"
        says = f"{value} is not allowlisted; it must begin {prefixes} (setting allowed_prefixes)"
        return says + forms
