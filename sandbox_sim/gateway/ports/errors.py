"""What a store raises, and how long its callers wait before they try again."""

from typing import Final

# Real time, in seconds, between two tries of a task that needs a store which is away.
STORE_PAUSE_S: Final = 1.0


class StoreError(Exception):
    """The state cannot be opened, read or saved; the text says why. Nothing was half done."""


class StoreInUse(StoreError):
    """Another server has the state open, and it can be open once only."""


class JobLost(Exception):
    """A claimed job is not ours any more: finished, deleted, or claimed by another server."""
