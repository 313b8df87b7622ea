"""What `compare` found, as lines for people and as a document for machines."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import click

from sandbox_sim.cli.compare.cases import Plan, fill
from sandbox_sim.cli.compare.differences import Difference
from sandbox_sim.cli.compare.settings_search import REMARKS, RULES, Findings
from sandbox_sim.cli.tables import printable, shortened, table

_PARTS: Final = {"answer": "answer", "later": "second answer", "callback": "callback"}
# The fields of a request that say what it does.
_TOLD: Final = ("trans_type", "amount", "nw", "customer_number", "account_number", "service_id")


def requests(url: str, plan: Plan) -> Iterator[str]:
    """What would be sent to the other side, a line for each request."""
    sent = sum(2 if each.then else 1 for each in plan.cases)
    yield f"{sent} requests would go to {printable(url)}:"
    rows = []
    for each in plan.cases:
        told = fill(each.request, {})
        words = [str(told[name]) for name in _TOLD if told.get(name) not in (None, "")]
        recipients = told.get("recipients")
        words += [f"{len(recipients)} recipients"] if isinstance(recipients, list) else []
        rows.append((each.case.name, each.case.path, " ".join(words)))
        if each.case.afterwards is not None:
            rows.append(("", each.case.afterwards.path, "afterwards"))
    yield from table(("case", "path", "request"), rows)
    yield "With credentials of production (mode P) these are real payments and messages."


def lines(url: str, plan: Plan, findings: Findings, remarks: Sequence[str]) -> Iterator[str]:
    """The report."""
    yield f"{printable(url)}: {len(plan.cases)} cases compared"
    titles = {each.case.name: each.case.title for each in plan.cases}
    for name, of_case in groupby(findings.differences, lambda each: each.case):
        yield ""
        yield click.style(f"{name}: {titles[name]}", bold=True)
        rows = [_row(each, findings) for each in of_case]
        for line in table(("where", "field", "here", "there", "rule", "setting"), rows):
            yield f"  {line}"
    yield from _settings(findings)
    if plan.left_out or remarks:
        yield ""
        yield click.style("not compared", bold=True)
        yield from (f"  {each.name}: {each.why}" for each in plan.left_out)
        yield from (f"  {each}" for each in remarks)
    yield ""
    found = len(findings.differences)
    if not found:
        yield "no difference"
        return
    without = found - len(findings.causes)
    cases = len({each.case for each in findings.differences})
    yield f"differences: {found} in {cases} cases; no setting of ours changes {without} of them"


def _settings(findings: Findings) -> Iterator[str]:
    if not findings.settings:
        return
    yield ""
    yield click.style("settings that would make us agree", bold=True)
    for name, value in findings.settings.items():
        words = "; ".join(filter(None, (RULES[name], REMARKS.get(name))))
        yield f"  {name} = {toml(value)}  # {words}"


def _row(each: Difference, findings: Findings) -> Sequence[str]:
    cause = findings.causes.get(each)
    return (
        _PARTS[each.part],
        each.field,
        shortened(each.ours),
        shortened(each.theirs),
        ", ".join(_rules(each, findings)) or "-",
        "-" if cause is None else cause.name,
    )


def _rules(each: Difference, findings: Findings) -> Sequence[str]:
    """The rule that decided ours, and the decision of the setting that would change it."""
    cause = findings.causes.get(each)
    named = [each.rule] if each.rule else []
    return list(dict.fromkeys([*named, *([RULES[cause.name]] if cause else [])]))


def toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{json.dumps(str(k))} = {json.dumps(v)}" for k, v in value.items())
        return f"{{ {pairs} }}"
    return json.dumps(value)


def document(
    url: str, plan: Plan, findings: Findings, remarks: Sequence[str]
) -> Mapping[str, object]:
    """The whole report as JSON."""
    return {
        "url": url,
        "agrees": not findings.differences,
        "cases": len(plan.cases),
        "settings": dict(findings.settings),
        "differences": [
            {
                "case": each.case,
                "part": each.part,
                "field": each.field,
                "ours": each.ours,
                "theirs": each.theirs,
                "rules": list(_rules(each, findings)),
                "setting": findings.causes[each].name if each in findings.causes else None,
            }
            for each in findings.differences
        ],
        "not_compared": [
            *({"case": each.name, "why": each.why} for each in plan.left_out),
            *({"case": None, "why": each} for each in remarks),
        ],
    }
