"""The requests that `compare` sends: those of `fixtures/samples`, which are in `cases.json` too.

`cases.json` is written by `python -m tests.cli.compare.cases --write`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final, NamedTuple

Json = Mapping[str, Any]

_REPEAT: Final = re.compile(r"<([0-9]+) times more>")
_PLACEHOLDER: Final = re.compile(r"<([a-z_]+)>")
# The default delays of ours are over after so long, except that of a card page.
_SETTLED_MS: Final = 800
# A case that needs more time is not sent.
_LONGEST_MS: Final = 10_000


class Afterwards(NamedTuple):
    """A second request of a case, sent so many milliseconds after the first one."""

    advance_ms: int
    path: str
    request: Json

    @property
    def is_late(self) -> bool:
        """Whether it is about what the first request has come to in the end."""
        return self.advance_ms >= _SETTLED_MS


class Case(NamedTuple):
    """One sample: what is sent. `headers` replace those of a well-behaved client."""

    name: str
    title: str
    path: str
    headers: Mapping[str, str]
    request: Json
    afterwards: Afterwards | None

    @property
    def services(self) -> frozenset[int]:
        """The services that it is about, as the sample numbers them."""
        then = self.afterwards.request if self.afterwards else {}
        ids = (request.get("service_id") for request in (self.request, then))
        return frozenset(each for each in ids if isinstance(each, int))


class Prepared(NamedTuple):
    """A case with the service ids and the `transaction_id` of this run in it."""

    case: Case
    number: int
    request: Json
    then: Json


class NotSent(NamedTuple):
    """A case that is left out, and why."""

    name: str
    why: str


class Plan(NamedTuple):
    """What a run sends.

    fresh: every case has services of its own, which nobody has used before.
    """

    cases: Sequence[Prepared]
    left_out: Sequence[NotSent]
    fresh: bool


def load() -> Sequence[Case]:
    """Every case of the package."""
    text = files(__package__).joinpath("cases.json").read_text("utf-8")
    return [read(name, sample) for name, sample in json.loads(text).items()]


def read(name: str, sample: Json) -> Case:
    """The case of one entry."""
    then = sample.get("afterwards")
    return Case(
        name,
        sample["title"],
        sample["path"],
        sample.get("headers", {}),
        sample["request"],
        Afterwards(then["advance_ms"], then["path"], then["request"]) if then else None,
    )


def plan(run: int, service_ids: Sequence[int]) -> Plan:
    """What to send.

    run: a number of six digits that makes the ids of this run its own.
    service_ids: the services to use; without any, each case has new ones.
    """
    prepared: list[Prepared] = []
    left_out: list[NotSent] = []
    for case in load():
        services = _services(case, run, len(prepared) + 1, service_ids)
        why = _objection(case, services, fresh=not service_ids)
        if why:
            left_out.append(NotSent(case.name, why))
            continue
        number = len(prepared) + 1
        then = case.afterwards.request if case.afterwards else {}
        own = [_own(each, services, f"{run}-{number}") for each in (case.request, then)]
        prepared.append(Prepared(case, number, own[0], own[1]))
    return Plan(prepared, left_out, not service_ids)


def fill(request: Json, known: Mapping[str, object]) -> dict[str, Any]:
    """The request with the known placeholders put in and the repetitions written out."""

    def filled(value: object) -> object:
        if isinstance(value, str):
            return _PLACEHOLDER.sub(lambda place: str(known.get(place[1], place[0])), value)
        return _repeated(value) if isinstance(value, list) else value

    return {name: filled(value) for name, value in request.items()}


def _services(case: Case, run: int, number: int, given: Sequence[int]) -> Mapping[int, int]:
    """The service of this run for each one of the sample; its last digit is 9 where that was 9."""
    if not given:
        return {each: int(f"{run}{number:03d}{each % 10}") for each in case.services}
    left = {poor: [id_ for id_ in given if (id_ % 10 == 9) == poor] for poor in (False, True)}
    found = {}
    for each in sorted(case.services):
        fitting = left[each % 10 == 9]
        if fitting:
            found[each] = fitting.pop(0)
    return found


def _objection(case: Case, services: Mapping[int, int], *, fresh: bool) -> str:
    """Why a case is not sent; empty where it is."""
    then = case.afterwards
    if then is not None and then.advance_ms > _LONGEST_MS:
        return f"it takes {then.advance_ms // 60_000} minutes"
    if services.keys() != case.services:
        poor = any(each % 10 == 9 for each in case.services - services.keys())
        return "it needs a --service-id that ends in 9" if poor else "it needs one more service"
    asked = ((case.path, case.request), (then.path, then.request) if then else ("", {}))
    if not fresh and any(p == "/sms/history" and "batch_id" not in r for p, r in asked):
        return "the service has a history of its own; leave --service-id out"
    return ""


def _own(request: Json, services: Mapping[int, int], suffix: str) -> dict[str, Any]:
    own = dict(request)
    if own.get("service_id") in services:
        own["service_id"] = services[own["service_id"]]
    if "transaction_id" in own:
        own["transaction_id"] = f"{own['transaction_id']}-{suffix}"
    return own


def _repeated(entries: Sequence[object]) -> list[object]:
    written: list[object] = []
    for entry in entries:
        repeat = _REPEAT.fullmatch(entry) if isinstance(entry, str) else None
        written += written[-1:] * int(repeat[1]) if repeat else [entry]
    return written
