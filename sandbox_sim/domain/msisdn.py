"""Phone numbers: who is on the allowlist, and the two forms of a number.

Source: sandbox.1, sandbox.2, D11. The local form is ten digits, `0244000001`; the
international form puts 233 in the place of the zero, `233244000001`.
"""

import re
from dataclasses import dataclass, field
from typing import Final

COUNTRY_CODE: Final = "233"
DECLINED_DIGIT: Final = "9"
# The networks that issue the prefixes of sandbox.4, for the setting `match_network`.
NETWORK_OF_PREFIX: Final = {"0244": "MTN", "0200": "VOD", "0270": "AIR"}

_LOCAL: Final = re.compile(r"0[0-9]{9}")
_INTERNATIONAL: Final = re.compile(r"233[0-9]{9}")


def local(number: str) -> str | None:
    """The local form of a number in either form; None for anything else, `+233…` included."""
    if _LOCAL.fullmatch(number):
        return number
    if _INTERNATIONAL.fullmatch(number):
        return "0" + number[len(COUNTRY_CODE) :]
    return None


def international(number: str) -> str:
    """The 233 form of a phone number; what is no phone number stays as it is."""
    return COUNTRY_CODE + number[1:] if _LOCAL.fullmatch(number) else number


def is_declined(identifier: str) -> bool:
    """The last digit 9 of a number or an account is a simulated decline (sandbox.2)."""
    return identifier.endswith(DECLINED_DIGIT)


def network_mismatch(number: str, nw: str) -> str | None:
    """The network that the number belongs to, where that is another one than `nw` says (D11)."""
    owner = NETWORK_OF_PREFIX.get((local(number) or "")[:4])
    return owner if owner not in {None, nw} else None


@dataclass(frozen=True, slots=True)
class Allowlist:
    """Which numbers sandbox takes (sandbox.1, D11).

    prefixes: local prefixes such as "0244".
    numbers: exact local numbers that narrow the prefixes; empty means every one of them.
    accept_international: payments take the 233 form too; SMS always does.
    match_network: `nw` must be the network that issues the prefix.
    """

    prefixes: tuple[str, ...] = ("0244", "0200", "0270")
    numbers: frozenset[str] = field(default=frozenset())
    accept_international: bool = False
    match_network: bool = False

    def admits(self, number: str, *, either_form: bool = False) -> bool:
        """Whether the number is listed; in local form only, unless `either_form`."""
        if _LOCAL.fullmatch(number) is None:
            form = local(number) if either_form or self.accept_international else None
            return form is not None and self.admits(form)
        return number.startswith(self.prefixes) and (not self.numbers or number in self.numbers)
