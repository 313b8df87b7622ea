"""Times as the interface writes them: `request_time` coming in, ISO 8601 with Z going out."""

import re
from datetime import datetime
from typing import Final

_REQUEST_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2}(?::\d{2})?|T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?Z)",
    re.ASCII,
)


def is_request_time(text: str) -> bool:
    """Whether the text is an accepted `request_time`.

    Those are `2026-01-31 09:30`, `2026-01-31 09:30:00` and `2026-01-31T09:30:00Z`, with or without
    a fraction of the second.
    """
    if not _REQUEST_TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text[:16])
    except ValueError:
        return False
    return len(text) < 19 or text[16] != ":" or text[17:19] < "60"


def iso(moment: datetime) -> str:
    """A UTC moment in ISO 8601, to the millisecond, with Z."""
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
