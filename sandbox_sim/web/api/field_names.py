"""Misspelt field names: the name that a client probably meant. Source: D5, D36."""

import difflib
from collections.abc import Iterable
from typing import Final

from sandbox_sim.domain.refused_values import quoted
from sandbox_sim.domain.text_cache import cached_by_text
from sandbox_sim.web.api import request_models
from sandbox_sim.web.api.request_models import Body

# How much of two names must be the same: where the right one is missing, and where it is there.
_ENOUGH: Final = 0.7
_NEARLY_ALL: Final = 0.92
# How many unknown names of a body are compared, and how long they are, so that no body costs much.
_MOST_NAMES: Final = 5
_LONGEST: Final = 40


def _names(model: type[Body]) -> dict[str, str]:
    """The name of each field in a body, by its name in the model."""
    return {name: field.alias or name for name, field in model.model_fields.items()}


_MODELS: Final = [
    each
    for each in vars(request_models).values()
    if isinstance(each, type) and issubclass(each, Body)
]
_OF_ANY_MODEL: Final = frozenset(name for model in _MODELS for name in _names(model).values())
# The name of each field without case and underscores, because clients write `customerNumber` too.
_BY_LETTERS: Final = {name.replace("_", ""): name for name in sorted(_OF_ANY_MODEL)}


def unknown(names: Iterable[object]) -> list[str]:
    """The first names that no operation has; long ones are left out."""
    found: list[str] = []
    for name in names:
        if isinstance(name, str) and len(name) <= _LONGEST and name not in _OF_ANY_MODEL:
            found.append(name)
            if len(found) == _MOST_NAMES:
                break
    return found


def meant(field: str, names: Iterable[str]) -> str | None:
    """A sentence about the one of these unknown names that stands for a missing field, if any."""
    letters = {_letters(name): name for name in names}
    near = difflib.get_close_matches(field.replace("_", ""), letters, n=1, cutoff=_ENOUGH)
    return _sentence(letters[near[0]], field) if near else None


def misspelt(body: Body) -> tuple[str, ...]:
    """A sentence for each unknown field of a valid body that is probably a misspelt one."""
    names = unknown(body.__pydantic_extra__ or ())
    if not names:
        return ()
    known = _names(type(body))
    given = {known[name] for name in body.model_fields_set if name in known}
    found = []
    for name in names:
        field, likeness = _nearest(name)
        if field in known.values() and likeness >= (_NEARLY_ALL if field in given else _ENOUGH):
            found.append(_sentence(name, field))
    return tuple(found)


@cached_by_text(maxsize=512)
def _nearest(name: str) -> tuple[str, float]:
    """The field whose name is most like this one, and how much of both is the same."""
    letters = _letters(name)
    near = difflib.get_close_matches(letters, _BY_LETTERS, n=1, cutoff=_ENOUGH)
    if not near:
        return "", 0.0
    return _BY_LETTERS[near[0]], difflib.SequenceMatcher(None, letters, near[0]).ratio()


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _sentence(name: str, field: str) -> str:
    return f"{quoted(name)[1:-1]} is unknown: did you mean {field}?"
