"""Finds the settings with which our side would agree with the other side, by trying them.

A candidate is a setting with another value. It is taken if our gateway with this setting agrees in
more parts of cases than before, and no part that agreed now differs. At the end, settings that are
not needed are dropped again.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from sandbox_sim.cli.compare.cases import STATUS, Difference, Observed, Plan, differences
from sandbox_sim.explanations import rules
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.response_codes import CATALOGUE

Observations = Mapping[str, Observed]
Run = Callable[[Mapping[str, Any], Plan], Awaitable[Observations]]
# Returns the differences with these settings changed, in all cases or some.
Trial = Callable[..., Awaitable[Sequence[Difference]]]

# Notes on settings whose value cannot be observed.
REMARKS: Final = {"approved_senders": "name the senders that are approved there"}
_LOCAL_NUMBER: Final = re.compile("0[0-9]{9}")
_REFUSED_CODES: Final = frozenset({"019", "S002"})
_ACCEPTED_CODES: Final = frozenset({"202", "015", "370"})


class Candidate(NamedTuple):
    """A setting and a value for it."""

    name: str
    value: Any


class Findings(NamedTuple):
    """The differences between two sides, and the settings that would remove them.

    settings: the settings to change, each with its value.
    causes: from each difference to the setting that removes it.
    """

    differences: Sequence[Difference]
    settings: Mapping[str, Any]
    causes: Mapping[Difference, Candidate]


@cache
def decision_on(setting: str) -> str:
    """The id of the first decision that this setting belongs to."""
    return next(each.id for each in rules() if setting in each.settings and each.id[0] == "D")


async def find(
    plan: Plan, settings: Settings, ours: Observations, theirs: Observations, run: Run
) -> Findings:
    """Find every difference, and the settings of ours that would remove it.

    run: observes our gateway with some settings changed.
    """

    async def trial(changed: Mapping[str, Any], partial_plan: Plan = plan) -> Sequence[Difference]:
        return compared(partial_plan, await run(changed, partial_plan), theirs)

    remaining = first = compared(plan, ours, theirs)
    changed: dict[str, Any] = {}
    causes: dict[Difference, Candidate] = {}
    every = candidates(plan, settings, theirs)
    alternatives = [each for each in every if each.value != getattr(settings, each.name)]
    better = True
    while remaining and better:
        better = False
        for candidate in await _ranked(plan, alternatives, changed, remaining, trial):
            after = await trial({**changed, candidate.name: candidate.value})
            if not _is_better(after, remaining):
                continue
            remaining_keys = {_key(each) for each in after}
            for each in first:
                if _key(each) not in remaining_keys:
                    causes.setdefault(each, candidate)
            changed[candidate.name] = candidate.value
            remaining, better = after, True
    needed = await _needed(changed, remaining, trial)
    return Findings(
        [*first, *(each for each in remaining if _key(each) not in set(map(_key, first)))],
        dict(sorted(needed.items())),
        {each: cause for each, cause in causes.items() if cause.name in needed},
    )


def compared(plan: Plan, ours: Observations, theirs: Observations) -> Sequence[Difference]:
    """Every difference between two sides."""
    return [
        each
        for name in (each.case.name for each in plan.cases)
        for each in differences(name, ours[name], theirs[name], fresh=plan.fresh)
    ]


def candidates(plan: Plan, settings: Settings, theirs: Observations) -> Iterator[Candidate]:
    """The settings that may explain differences, with values observed at the other side."""
    for name in ("accept_international", "match_network", "sandbox_card_entry", "sign_callbacks"):
        yield Candidate(name, not getattr(settings, name))
    yield Candidate("duplicates", "accept" if settings.duplicates == "reject" else "reject")
    yield Candidate("balances", "fixed" if settings.balances == "live" else "live")
    yield from (Candidate("callback_profile", each) for each in Profile)
    for status in {each.answer.get(STATUS) for each in theirs.values() if _is_rejection(each)}:
        yield Candidate("sandbox_reject_status", status)
    units = theirs["12-sms-balance-success"].answer.get("response_data.sms_balance")
    if plan.fresh and isinstance(units, int) and units >= 0:
        yield Candidate("sms_initial_units", units)
    yield from _numbers(plan, settings, theirs)
    yield from _cards(plan, settings, theirs)
    senders = sorted({s for code, s in _codes_of(plan, theirs, "sender_id") if code == "370"})
    yield Candidate("approved_senders", senders or ["-"])


def _is_rejection(observed: Observed) -> bool:
    row = CATALOGUE.get(str(observed.answer.get("response_code")))
    return row is not None and row.sandbox


def _numbers(plan: Plan, settings: Settings, theirs: Observations) -> Iterator[Candidate]:
    """The prefixes and the numbers that the other side accepts."""
    numbers = _codes_of(plan, theirs, "customer_number")
    local_numbers = [(code, number) for code, number in numbers if _LOCAL_NUMBER.fullmatch(number)]
    accepted = sorted({number for code, number in local_numbers if code in _ACCEPTED_CODES})
    refused = {number for code, number in local_numbers if code in _REFUSED_CODES} - set(accepted)
    prefixes = {number[:4] for number in accepted}
    refused_prefixes = {number[:4] for number in refused} - prefixes
    new = [each for each in settings.allowed_prefixes if each not in refused_prefixes]
    allowed = [*new, *sorted(prefixes - set(new))]
    if allowed and allowed != settings.allowed_prefixes:
        yield Candidate("allowed_prefixes", allowed)
    if accepted:
        yield Candidate("allowed_numbers", accepted)


def _cards(plan: Plan, settings: Settings, theirs: Observations) -> Iterator[Candidate]:
    """Our test cards, without those that the other side refuses, plus those that it accepts."""
    cards = dict(settings.test_cards)
    for each in plan.cases:
        code = theirs[each.case.name].answer.get("response_code")
        card = each.request.get("customer_number")
        if each.request.get("nw") not in {"VIS", "MAS"} or not isinstance(card, str):
            continue
        fits = cards.get(card) == each.request["nw"] and each.request["trans_type"] == "CTM"
        if code == "019" and fits:
            del cards[card]
        elif code == "000" and each.request["trans_type"] == "CTM":
            cards[card] = each.request["nw"]
    if cards != settings.test_cards and cards:
        yield Candidate("test_cards", cards)


def _codes_of(plan: Plan, theirs: Observations, field: str) -> Iterator[tuple[str, str]]:
    """The code of each first answer, with the value of a field in its request."""
    for each in plan.cases:
        value = each.request.get(field)
        if isinstance(value, str):
            yield str(theirs[each.case.name].answer.get("response_code")), value


async def _ranked(
    plan: Plan,
    alternatives: Sequence[Candidate],
    changed: Mapping[str, Any],
    remaining: Sequence[Difference],
    trial: Trial,
) -> Sequence[Candidate]:
    """The candidates that remove some of the remaining differences, the best one first."""
    concerned = {each.case for each in remaining}
    partial_plan = plan._replace(cases=[each for each in plan.cases if each.case.name in concerned])
    ranked = []
    for number, candidate in enumerate(alternatives):
        after = await trial({**changed, candidate.name: candidate.value}, partial_plan)
        if _is_better(after, remaining):
            ranked.append((len(_differing_parts(after)), _count_fields(after), number))
    return [alternatives[number] for *_, number in sorted(ranked)]


def _is_better(after: Sequence[Difference], before: Sequence[Difference]) -> bool:
    """Whether fewer parts or fields differ, and every part that agreed before still agrees."""
    parts, parts_before = _differing_parts(after), _differing_parts(before)
    if not parts <= parts_before:
        return False
    return parts != parts_before or _count_fields(after) < _count_fields(before)


def _differing_parts(found: Sequence[Difference]) -> frozenset[tuple[str, str]]:
    """The parts that differ; if the first answer of a case differs, all its parts count."""
    by_answer = {each.case for each in found if each.part == "answer"}
    follows = ((case, part) for case in by_answer for part in ("later", "callback"))
    return frozenset((*((each.case, each.part) for each in found), *follows))


def _count_fields(found: Sequence[Difference]) -> int:
    """How many fields differ, not counting those that follow from a different first answer."""
    by_answer = {each.case for each in found if each.part == "answer"}
    return sum(each.part == "answer" or each.case not in by_answer for each in found)


def _key(each: Difference) -> tuple[str, str, str]:
    return each.case, each.part, each.field


async def _needed(
    changed: Mapping[str, Any], remaining: Sequence[Difference], trial: Trial
) -> Mapping[str, Any]:
    """The settings that are needed: without them, more would differ."""
    needed = dict(changed)
    for name in changed if len(changed) > 1 else ():
        without = {other: value for other, value in needed.items() if other != name}
        if not _is_better(remaining, await trial(without)):
            needed = without
    return needed
