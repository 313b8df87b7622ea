"""The setting `store`: what it names, checked, and shown without a password."""

import re
from pathlib import Path
from typing import Final

SCHEMES: Final = ("postgresql://", "postgres://")
# Up to the last @, whatever stands before it: better to hide too much of an address that was
# written wrongly than half a password. Parameters may hold passwords too.
_PASSWORD: Final = re.compile(r"^(\w+://[^:@]*):.*@|(?<=password=)[^&]+", re.IGNORECASE)


def is_postgres(store: str) -> bool:
    """Whether the setting `store` names a Postgres database."""
    return store.startswith(SCHEMES)


def checked(store: str) -> str:
    """The setting, or `ValueError` with what it must be."""
    if is_postgres(store) or store == "memory:":
        return store
    if not store.startswith("sqlite:"):
        raise ValueError("must be memory:, sqlite:PATH or postgresql://USER@HOST/DATABASE")
    if "\x00" in store:
        raise ValueError("must not hold a NUL")
    try:
        Path(store.removeprefix("sqlite:")).expanduser()
    except RuntimeError:
        raise ValueError("must be a path whose home folder, after ~, is known") from None
    return store


def masked(store: str) -> str:
    """The setting `store` as it may be shown."""
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] else "***", store)
