"""The values that a field of a record can have, for fields with a fixed set of them.

A filter with any other value finds nothing, whatever happens, so it is refused with the list.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

_NO_WORDS: Final[Mapping[str, str]] = {}
_SHOWN_CHARACTERS: Final = 60


class ImpossibleValue(ValueError):
    """A filter asks for a value that its field never has; the text lists those it can have."""


class FieldValues(NamedTuple):
    """values: all of them. words: what may be said instead of a value. optional: None is one."""

    values: tuple[str, ...]
    words: Mapping[str, str] = _NO_WORDS
    optional: bool = False

    def read(self, name: str, value: object) -> object:
        """The value that is meant, or `ImpossibleValue`."""
        if isinstance(value, str):
            value = self.words.get(value, value)
            if value in self.values:
                return value
        if value is None and self.optional:
            return None
        raise ImpossibleValue(f"{name} {_shortened(value)} is none of {self._listed()}")

    @property
    def accepted(self) -> Sequence[str]:
        """What a text filter may be: `matched`, with `null` for None."""
        return tuple("null" if each is None else each for each in self.matched)

    @property
    def matched(self) -> Sequence[str | None]:
        """What a `match` may have: the values, the words for them, and None where it is one."""
        return tuple(dict.fromkeys((*self.values, *self.words, *([None] if self.optional else []))))

    def _listed(self) -> str:
        word_of = {value: word for word, value in self.words.items()}
        listed = [f"{each} ({word_of[each]})" if each in word_of else each for each in self.values]
        return ", ".join([*listed, "null"] if self.optional else listed)


def values_of(values: Iterable[str], **more: Any) -> FieldValues:
    """The field values of an enumeration."""
    return FieldValues(tuple(map(str, values)), **more)


def read_match(fields: Mapping[str, FieldValues], match: Mapping[str, object]) -> dict[str, object]:
    """The `match` with words in it replaced by values; `ImpossibleValue` where one cannot be."""
    return {
        name: fields[name].read(name, value) if name in fields else value
        for name, value in match.items()
    }


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
