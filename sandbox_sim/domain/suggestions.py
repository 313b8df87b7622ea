"""Suggests the name that a user meant when a name is unknown."""

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one; None if none is like it."""
    import difflib  # noqa: PLC0415 -- needed only for an error

    found = difflib.get_close_matches(name, known, n=1)
    return found[0] if found else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: `did you mean status?`, or the names there are."""
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {near}?"
    return f"there are {', '.join(names) or 'none'}"
