"""What a store raises, and how long its callers wait before they try again."""

from typing import Final

# Real time between two tries of whoever has to wait for a store that is away.
STORE_PAUSE_S: Final = 1.0


class StoreError(Exception):
    """The state cannot be opened, read or saved; the text says why. Nothing was half done."""


class JobLost(Exception):
    """A claimed job is ours no more: done already, forgotten, or another server's by now."""
