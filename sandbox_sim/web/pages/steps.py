"""The steps of a timeline: each has a time, a title, a reason and actions. Source: D39."""

from typing import NamedTuple

from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.web.pages.listing import Act, Badge


class TimelineSettings(NamedTuple):
    """The settings for the times of steps, and the address and credentials in commands to copy."""

    behaviour: Behaviour
    credentials: str
    url: str


class Link(NamedTuple):
    """A link to a page. path: below `/_sandbox/`."""

    words: str
    path: str


class Step(NamedTuple):
    """A step of a timeline.

    tone: the colour of its mark. box: a quoted text or a document.
    due: the gateway time of a future step.
    asks: the forms of the step, by name; target: where they go, below `/_sandbox/`.
    statuses: the choices of a form that settles.
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
