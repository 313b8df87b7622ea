"""Words such as `cancelled` where the control API takes a status of a transaction."""

from collections.abc import Iterable
from typing import Final

from pydantic import BeforeValidator

from sandbox_sim.domain.payments.transactions import STATUS_WORDS


def _code(value: object) -> object:
    return STATUS_WORDS.get(value, value) if isinstance(value, str) else value


# Marks a field that takes a status code or its word; the field has the code.
StatusWord: Final = BeforeValidator(_code)


def worded(codes: Iterable[str]) -> str:
    """The codes, and then their words, as an error lists them."""
    chosen = list(codes)
    return ", ".join([*chosen, *(word for word, code in STATUS_WORDS.items() if code in chosen)])
