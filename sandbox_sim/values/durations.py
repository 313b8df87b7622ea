"""Durations as people write them: `90`, `0.8s`, `5m` or `1h30m`."""

import re
from typing import Final

_PART: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)?")
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds_of(text: str) -> float | None:
    """The seconds of a duration; None where the text is not one."""
    parts: list[tuple[str, str]] = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return float(sum(float(number) * _SECONDS[unit or "s"] for number, unit in parts))
