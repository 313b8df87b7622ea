"""What every server of a gateway reacts to at once."""

from enum import StrEnum


class Topic(StrEnum):
    """What every server of a gateway has to hear of at once."""

    CLOCK = "clock"
    RULES = "rules"
    HELD = "held"
