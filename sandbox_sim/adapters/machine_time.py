"""The machine's time and random names, for commands that end soon.

A server has its clock and its ids from `clock_and_ids`, which needs asyncio and the records.
"""

import secrets
import time
from datetime import UTC, datetime

# Seconds, for durations only.
monotonic = time.monotonic


def now() -> datetime:
    """The machine's time, in UTC."""
    return datetime.now(UTC)


def random_name() -> str:
    """Eight hex digits."""
    return secrets.token_hex(4)
