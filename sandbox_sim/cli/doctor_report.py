"""The findings of `sandbox-sim doctor` as lines for people."""

from collections.abc import Iterator, Sequence
from typing import Final

import click

from sandbox_sim.cli.tables import printable
from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.callbacks.receiver_checks import Finding
from sandbox_sim.domain.callbacks.receiver_verdicts import Assessment, Verdict
from sandbox_sim.domain.redaction import redact_text
from sandbox_sim.gateway.callbacks.doctor import Receiver

_COLOURS: Final = {
    Verdict.OK: "green",
    Verdict.WARNING: "yellow",
    Verdict.WRONG: "red",
    Verdict.NOTE: "cyan",
    Verdict.SKIPPED: "bright_black",
}
# An answer of a receiver is cut to this length.
_SHOWN_CHARACTERS: Final = 200


def titles(findings: Sequence[Finding], verdict: Verdict) -> Sequence[str]:
    """The titles of the checks that have this verdict at least once, in order."""
    found = (_title(f.check) for f in findings if f.assessment.verdict is verdict)
    return list(dict.fromkeys(found))


def introduction(receiver: Receiver, owner: str | None) -> str:
    """The first line: the receiver, the profiles, the key and the timeout."""
    profiles = ", ".join(receiver.profiles)
    notes = [profile for profile in receiver.profiles if not receiver.judges(profile)]
    if notes:
        judged = ", ".join(each for each in receiver.profiles if receiver.judges(each))
        profiles = f"judged as {judged}, notes on {', '.join(notes)}"
    match owner:
        case None:
            signed = "not signed (setting sign_callbacks)"
        case "--secret-key":
            signed = "signed with the key given"
        case _:
            signed = f"signed with the secret key of {owner}"
    seconds = f"{receiver.timeout.total_seconds():g} s to answer"
    return f"{printable(redact_text(receiver.url))}: {profiles}; {signed}; {seconds}\n"


def lines(of_check: Sequence[Finding], profiles: Sequence[Profile]) -> Iterator[str]:
    """The findings of one check: a line for each opinion, and what to do about it.

    profiles: all profiles of the run; an opinion about all of them is printed once.
    """
    by_opinion: dict[Assessment, list[Finding]] = {}
    for finding in of_check:
        by_opinion.setdefault(finding.assessment, []).append(finding)
    for assessment, alike in by_opinion.items():
        verdict = click.style(f"{assessment.verdict:<8}", fg=_COLOURS[assessment.verdict])
        aside = ", ".join(filter(None, (_profiles_of(alike, profiles), _duration_of(alike))))
        says = _shortened(assessment.says) + (f" ({aside})" if aside else "")
        yield f"{verdict} {_title(alike[0].check):<16} {says}"
        if assessment.verdict in {Verdict.WARNING, Verdict.WRONG}:
            yield from (f"{'':10}{line}" for line in _details(alike[0]))


def _profiles_of(alike: Sequence[Finding], profiles: Sequence[Profile]) -> str:
    """The profiles that an opinion is about."""
    named = [finding.profile for finding in alike if finding.profile is not None]
    if not named or len(profiles) == 1:
        return ""
    return "every profile" if len(named) == len(profiles) else ", ".join(named)


def _duration_of(alike: Sequence[Finding]) -> str:
    """How long the answers took."""
    durations = [f.exchange.response.duration_ms for f in alike if f.exchange is not None]
    if not durations:
        return ""
    least, most = min(durations), max(durations)
    return f"{most} ms" if least == most else f"{least} to {most} ms"


def _details(finding: Finding) -> Iterator[str]:
    """The lines that say what was sent, what came, and what to do."""
    if finding.exchange is not None:
        callback, response = finding.exchange
        yield f"sent: {finding.sends}, {callback.transaction_id}, as {callback.profile}"
        if response.body.strip():
            yield f"came: {_shortened(response.body)}"
    yield f"do:   {finding.assessment.remedy}"


def _title(check: str) -> str:
    return check.replace("_", " ")


def _shortened(text: str) -> str:
    """The beginning of a text of the receiver, in one line."""
    line = " ".join(text.split())
    if len(line) > _SHOWN_CHARACTERS:
        line = f"{line[:_SHOWN_CHARACTERS]}…"
    return printable(line)
