"""The changes that every server has to follow at once."""

from enum import StrEnum


class Topic(StrEnum):
    """What has changed. A server that hears of it reads its copy of that again from the store."""

    CLOCK = "clock"
    RULES = "rules"
    HELD_CALLBACKS = "held"
