"""Text, JSON, JUnit and HTML of a run."""

import json
import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest

from sandbox_sim.certify import reports
from sandbox_sim.certify.cases import load
from sandbox_sim.certify.verdicts import CaseVerdict, Result, Run, TimelineEvent

CASES = {case.name: case for case in load()}
SECOND = timedelta(seconds=1)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEXT = "card 4111111111111111, key s3cret-key, <b>Bearer tok</b>\x00"


RUN = Run(
    (
        Result(CASES["success"], CaseVerdict.PASSED, "", SECOND),
        Result(
            CASES["forged_unsigned"],
            CaseVerdict.FAILED,
            TEXT,
            SECOND,
            (
                TimelineEvent(SECOND, NOON, "certify", "application", TEXT),
                TimelineEvent(SECOND, NOON, "application", "application", "the order is paid"),
                TimelineEvent(SECOND, NOON, "gateway", "application", "callback"),
            ),
        ),
        Result(CASES["outage"], CaseVerdict.INCONCLUSIVE, "the limit is used up", SECOND),
        Result(CASES["number_refused"], CaseVerdict.NOT_APPLICABLE, "we know them", SECOND),
    ),
    seed=7,
    took=4 * SECOND,
)
DOCUMENT = reports.run_document(RUN, {"s3cret-key", "Bearer tok", "callback"})


@pytest.mark.parametrize(
    "report", [json.dumps(DOCUMENT), reports.junit(DOCUMENT), reports.html(DOCUMENT)]
)
def test_reports_mask_card_numbers_keys_and_headers(report: str) -> None:
    assert "forged_unsigned" in report
    assert "411111******1111" in report
    for secret in ("4111111111111111", "s3cret-key", "Bearer tok"):
        assert secret not in report


def test_a_secret_that_is_a_common_word_is_masked_only_in_the_timeline() -> None:
    shown = DOCUMENT["cases"][1]

    assert shown["title"] == "A callback without a signature"
    assert shown["events"][2]["text"] == "***"


def test_the_document_has_the_verdicts_and_the_timeline() -> None:
    assert DOCUMENT["succeeded"] is False
    assert DOCUMENT["counts"] == dict.fromkeys(
        ("passed", "failed", "inconclusive", "not applicable"), 1
    )
    assert DOCUMENT["cases"][1]["events"][1] == {
        "at_s": 1.0,
        "gateway_time": "2026-01-01T12:00:00.000Z",
        "source": "application",
        "target": "application",
        "text": "the order is paid",
    }
    assert reports.summary(DOCUMENT) == (
        "1 passed, 1 failed, 1 inconclusive, 1 not applicable; 4.0 s"
    )


def test_a_run_succeeds_with_cases_not_applicable_but_not_with_inconclusive_ones() -> None:
    passed, _, inconclusive, not_applicable = RUN.results

    assert Run((passed, not_applicable), None, SECOND).succeeded
    assert not Run((passed, inconclusive), None, SECOND).succeeded


def test_the_remedy_of_a_failed_case_is_shown_on_demand() -> None:
    passed, failed = (list(reports.lines(each, remedies=True)) for each in DOCUMENT["cases"][:2])

    assert passed == ["passed          success: An ordinary payment"]
    assert failed[0].startswith("FAILED          forged_unsigned: ")
    begin = failed.index("                  mend:")
    assert failed[begin + 1].startswith("                    genuine = hmac.new(")
    assert failed[begin + 3] == f"{' ' * 24}return 401                 # before the body is parsed"
    assert len(list(reports.lines(DOCUMENT["cases"][1], remedies=False))) == 2


def test_junit_has_failures_errors_and_skips() -> None:
    suite = ET.fromstring(reports.junit(DOCUMENT))  # noqa: S314 -- our own

    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    assert [[inner.tag for inner in each] for each in suite] == [
        [],
        ["failure"],
        ["error"],
        ["skipped"],
    ]


def test_the_page_loads_no_other_file_and_escapes_its_texts() -> None:
    page = reports.html(DOCUMENT)

    assert re.findall(r'(?:src|href)="[^#]|url\(|@import|<script', page) == []
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "prefers-color-scheme: dark" in page
    assert re.findall(r'<details id="(\w+)" open>', page) == ["forged_unsigned"]
    assert re.findall(r'<a href="#(\w+)">', page) == ["forged_unsigned"]
    assert "seed 7" in page


def test_the_page_draws_each_message_between_the_lanes_of_its_parties() -> None:
    page = reports.html(DOCUMENT)

    drawn = re.findall(r'class="message (\w+)" style="grid-column: (\d) / span (\d);', page)
    assert drawn == [("right", "2", "2"), ("self", "3", "1"), ("left", "3", "2")]
