"""Times as requests write them (`request_time`) and as answers do (ISO 8601); durations.

People write durations as `90`, `0.8s`, `5m` or `1h30m`.
"""

import re
from datetime import datetime
from typing import Annotated, Final

_DAY: Final = (
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-9]))"
)

_MINUTES: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"

# Accepts `2026-01-31 09:30`, `2026-01-31 09:30:00` and `2026-01-31T09:30:00Z`; the last form with
# or without seconds and their fraction. Days and hours that no calendar has are refused, except 29
# February, which is accepted in every year.
REQUEST_TIME: Final = (
    rf"^[0-9]{{4}}-{_DAY}(?: {_MINUTES}(?::[0-5][0-9])?"
    rf"|T{_MINUTES}(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?Z)$"
)


# A time in a JSON document, as `iso` writes it.
Timestamp = Annotated[str, "ISO 8601 in UTC with milliseconds"]


def iso(moment: datetime) -> str:
    """A UTC time in ISO 8601 with milliseconds and Z."""
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


# The longest timeout that a person may ask for, in seconds of real time.
MAX_WAIT_S: Final = 600

VALID_WAIT: Final = f"a number of seconds from 0 to {MAX_WAIT_S}"


def is_valid_wait(seconds: object) -> bool:
    """Whether a value is `VALID_WAIT`; `nan` and booleans are not valid."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return False
    return 0 <= seconds <= MAX_WAIT_S


_PART: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)?")
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_duration(text: str) -> float | None:
    """The seconds of a duration; None where the text is not one."""
    parts: list[tuple[str, str]] = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return float(sum(float(number) * _SECONDS[unit or "s"] for number, unit in parts))
