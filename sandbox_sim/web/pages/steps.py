"""The steps of a timeline: each has when, what, why, and what one can do. Source: D39."""

from typing import NamedTuple

from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.web.pages.listing import Act, Badge


class TimelineSettings(NamedTuple):
    """What decides when the steps come, and the address and credentials in commands to copy."""

    behaviour: Behaviour
    credentials: str
    url: str


class Link(NamedTuple):
    """A page of ours. path: below `/_sandbox/`."""

    words: str
    path: str


class Step(NamedTuple):
    """A step of a timeline.

    tone: the colour of its mark. box: the words of somebody else, or a document.
    due: the gateway time of a step that is still to come.
    asks: the forms that the step offers, by name; target: where they go, below `/_sandbox/`.
    statuses: those that a form offers to settle with.
    """

    tone: str
    title: str
    at: str | None = None
    badge: Badge | None = None
    text: str = ""
    rule: str = ""
    box: str = ""
    advice: str = ""
    details: tuple[tuple[str, str], ...] = ()
    copies: tuple[tuple[str, str], ...] = ()
    acts: tuple[Act, ...] = ()
    links: tuple[Link, ...] = ()
    asks: tuple[str, ...] = ()
    target: str = ""
    statuses: tuple[str, ...] = ("000", "001", "003")
    due: str | None = None


class Timeline(NamedTuple):
    """All steps of a record, oldest first, under a heading."""

    title: str
    about: str
    badge: Badge
    steps: tuple[Step, ...]
