"""The address of a Postgres store: told from others, and shown without its password."""

import re
from typing import Final

SCHEMES: Final = ("postgresql://", "postgres://")
# Up to the last @, whatever stands before it: better to hide too much of an address that was
# written wrongly than half a password. Parameters may hold passwords too.
_PASSWORD: Final = re.compile(r"^(\w+://[^:@]*):.*@|(?<=password=)[^&]+", re.IGNORECASE)


def is_postgres(store: str) -> bool:
    """Whether the setting `store` names a Postgres database."""
    return store.startswith(SCHEMES)


def masked(store: str) -> str:
    """The setting `store` as it may be shown."""
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] else "***", store)
