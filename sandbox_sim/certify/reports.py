"""Writes the results of a run: as text, JSON, JUnit and one HTML page.

All are made from one document, in which secrets and card numbers are masked.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from sandbox_sim.certify.verdicts import CaseVerdict, Result, Run, TimelineEvent
from sandbox_sim.values.json_text import map_texts
from sandbox_sim.values.redaction import redact_document
from sandbox_sim.values.timestamps import iso

MARKS: Final = {
    CaseVerdict.PASSED: "passed",
    CaseVerdict.FAILED: "FAILED",
    CaseVerdict.INCONCLUSIVE: "INCONCLUSIVE",
    CaseVerdict.NOT_APPLICABLE: "not applicable",
}
_MASK: Final = "***"
_LANES: Final = ("certify", "application", "gateway")


def run_document(run: Run, secrets: Collection[str]) -> dict[str, Any]:
    """The document of a run; `secrets` and card numbers in it are masked."""
    return {
        "succeeded": run.succeeded,
        "counts": {each.value: run.count(each) for each in CaseVerdict},
        "took_s": round(run.took.total_seconds(), 3),
        "seed": run.seed,
        "cases": [result_document(each, secrets) for each in run.results],
    }


def result_document(result: Result, secrets: Collection[str]) -> dict[str, Any]:
    """The document of one result, masked."""
    case = result.case
    happened = {
        "reason": result.reason,
        "took_s": round(result.took.total_seconds(), 3),
        "events": [_event_document(each) for each in result.events],
    }
    return {
        "name": case.name,
        "group": case.group,
        "title": case.title,
        "verdict": result.verdict.value,
        "alone": result.alone,
        "uncounted": result.uncounted,
        "good": case.good.strip(),
        "why": case.why.strip(),
        "mend": case.mend.strip(),
        **_masked(redact_document(happened), sorted(secrets, key=len)[::-1]),
    }


def _event_document(event: TimelineEvent) -> dict[str, Any]:
    return {
        "at_s": round(event.at.total_seconds(), 3),
        "gateway_time": iso(event.gateway_time),
        "source": event.source,
        "target": event.target,
        "text": event.text,
    }


def _masked(document: Any, secrets: Collection[str]) -> Any:
    def masked(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, _MASK)
        return text

    return map_texts(document, masked)


def lines(case: dict[str, Any], *, remedies: bool) -> Iterator[str]:
    """The lines of a case: its verdict and the reason; remedies: also how to fix a failure."""
    verdict = CaseVerdict(case["verdict"])
    yield f"{MARKS[verdict]:14}  {case['name']}: {case['title']}"
    if case["reason"]:
        yield f"                  {case['reason']}"
    if remedies and verdict is CaseVerdict.FAILED:
        yield from _paragraph("a good application", case["good"])
        yield from _paragraph("why", case["why"])
        yield from _paragraph("mend", case["mend"])


def timeline(case: dict[str, Any]) -> Iterator[str]:
    """A line for each event of a case."""
    for event in case["events"]:
        parties = event["source"]
        parties += "" if event["target"] == parties else f" to {event['target']}"
        yield f"  {event['at_s']:7.3f} s  {parties}: {event['text']}"


def _paragraph(name: str, text: str) -> Iterator[str]:
    """Several lines are printed below the name, so that code keeps its indentation."""
    parts = text.splitlines()
    if len(parts) == 1:
        yield f"                  {name}: {text}"
        return
    yield f"                  {name}:"
    yield from (f"                    {line}" for line in parts)


def lines_about_several(document: dict[str, Any]) -> Iterator[str]:
    """A line for each reason why cases were not run, or not like the others, with their names."""
    names: dict[tuple[str, str], list[str]] = {}
    for case in document["cases"]:
        why_not = "" if case["events"] else case["reason"]
        reasons = {
            MARKS[CaseVerdict(case["verdict"])]: why_not,
            "run alone": case["alone"],
            "not counted": case["uncounted"],
        }
        for mark, reason in reasons.items():
            names.setdefault((mark, reason), []).append(case["name"])
    for (mark, reason), cases in sorted(names.items(), key=lambda each: each[0][0]):
        if reason:
            yield f"{mark:14}  {reason}: {', '.join(cases)}"


def summary(document: dict[str, Any]) -> str:
    """The last line: how many cases have each verdict, and the time."""
    counts = ", ".join(
        f"{count} {verdict}" for verdict, count in document["counts"].items() if count
    )
    return f"{counts}; {document['took_s']:.1f} s"


def junit(document: dict[str, Any]) -> str:
    """The results as JUnit XML, in which an inconclusive case is an error."""
    counts = document["counts"]
    suite = ET.Element(
        "testsuite",
        name="sandbox-sim certify",
        tests=str(len(document["cases"])),
        failures=str(counts["failed"]),
        errors=str(counts["inconclusive"]),
        skipped=str(counts["not applicable"]),
        time=str(document["took_s"]),
    )
    tags = {"failed": "failure", "inconclusive": "error", "not applicable": "skipped"}
    for case in document["cases"]:
        element = ET.SubElement(
            suite,
            "testcase",
            classname=f"certify.{case['group'].replace(' ', '_')}",
            name=case["name"],
            time=str(case["took_s"]),
        )
        if tag := tags.get(case["verdict"]):
            found = ET.SubElement(element, tag, message=_xml_text(case["reason"]))
            found.text = _xml_text("\n".join(lines(case, remedies=True)))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _xml_text(text: str) -> str:
    """The text without the characters that XML cannot have."""
    return "".join(each if each >= " " or each in "\t\n" else "�" for each in text)


def html(document: dict[str, Any]) -> str:
    """One page that needs no other file."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 -- for a page

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html")
    return page.render(run=document, summary=summary(document), lanes=_LANES)
