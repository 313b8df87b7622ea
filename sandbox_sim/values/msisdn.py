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


def parse_international(number: str) -> str | None:
    """The 233 form of a number in either form; None for anything else, `+233…` included."""
    local = to_local(number)
    return None if local is None else COUNTRY_CODE + local[1:]


def to_international(number: str) -> str:
    """The 233 form of a number in local form; any other text unchanged."""
    return COUNTRY_CODE + number[1:] if _LOCAL.fullmatch(number) else number


def without_plus(number: str) -> str:
    """`+233244000001` without its plus; any other text unchanged."""
    return number[1:] if _WITH_PLUS.fullmatch(number) else number


def probable_local(number: str) -> str | None:
    """The local form that a number in any form probably stands for; None if unclear."""
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

    def allows(self, number: str) -> bool:
        """Whether payments accept the number: in local form, or in any with the setting for it."""
        if self.accept_international:
            return self.allowed_international(number) is not None
        return _LOCAL.fullmatch(number) is not None and self._is_listed(number)

    def allowed_international(self, number: str) -> str | None:
        """The 233 form of an allowed number in either form, as SMS accepts it; None for others."""
        local = to_local(without_plus(number)) if self.accept_international else to_local(number)
        return COUNTRY_CODE + local[1:] if local is not None and self._is_listed(local) else None

    def _is_listed(self, local: str) -> bool:
        return local.startswith(self.prefixes) and (not self.numbers or local in self.numbers)

    def refusal(self, number: str, forms: str = "") -> str:
        """Why a number is not allowed in any form: quotes it, and names what is accepted.

        A sentence without its subject (D36). forms: a clause about the forms that are accepted.
        """
        value, prefixes = quoted(number), ", ".join(self.prefixes)
        local = to_local(number)
        if local is None:
            problem = f"{value} is not ten digits that begin {prefixes}{forms}"
            guess = probable_local(number)
            return f"{problem}; '{guess}' would work" if guess and self.allows(guess) else problem
        if local.startswith(self.prefixes):
            return f"{value} is not listed in the setting allowed_numbers{forms}"
        required = f"it must begin {prefixes} (setting allowed_prefixes)"
        return f"{value} is not allowlisted; {required}{forms}"
