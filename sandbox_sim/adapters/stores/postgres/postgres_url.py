"""The URL of a Postgres store: recognised, and shown without its password."""

import re
from typing import Final

SCHEMES: Final = ("postgresql://", "postgres://")
# Masks up to the last @: for a malformed URL it is better to hide too much than to show half a
# password. Parameters may have passwords too.
_PASSWORD: Final = re.compile(r"^(\w+://[^:@]*):.*@|(?<=password=)[^&]+", re.IGNORECASE)


def is_postgres(store: str) -> bool:
    """Whether the setting `store` names a Postgres database."""
    return store.startswith(SCHEMES)


def masked(store: str) -> str:
    """The setting `store` with its password masked."""
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] else "***", store)
