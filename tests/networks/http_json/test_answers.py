"""Answers to `http_json`: the meaning of a word, a status and the repeated fields."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.ports.network import StatusQuery
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.testing.network_contract import HttpReply
from tests.networks import fakes
from tests.networks.http_json.api import REFERENCE, opened, reply

pytestmark = pytest.mark.decision("D39")

SUBMIT: dict[str, Any] = {
    "submit__outcomes": {
        "NEW": "pending",
        "PAID": "succeeded",
        "NO": "failed",
        "BUSY": "not_sent",
        "POOR": "refused 402",
        "true": "pending",
        "7": "pending",
    },
    "submit__statuses": {"202": "pending", "400": "refused 400", "429": "not_sent"},
}


@pytest.mark.parametrize(
    ("answer", "outcome", "code"),
    [
        (reply(200, state="NEW"), Outcome.PENDING, ""),
        (reply(201, state="PAID"), Outcome.SUCCEEDED, ""),
        (reply(200, state="NO"), Outcome.FAILED, ""),
        (reply(422, state="NO"), Outcome.FAILED, ""),
        (reply(200, state="POOR"), Outcome.REFUSED, "402"),
        (reply(409, state="POOR"), Outcome.REFUSED, "402"),
        (reply(200, state="BUSY"), Outcome.NOT_SENT, ""),
        (reply(200, state=True), Outcome.PENDING, ""),
        (reply(200, state=7), Outcome.PENDING, ""),
        # Words of no table, even with a status that is in one.
        (reply(200, state="new"), Outcome.UNKNOWN, ""),
        (reply(202, state="HELD"), Outcome.UNKNOWN, ""),
        (reply(400, state="HELD"), Outcome.UNKNOWN, ""),
        (reply(200, state=False), Outcome.UNKNOWN, ""),
        (reply(200, state=7.5), Outcome.UNKNOWN, ""),
        # Statuses that do not fit the word.
        (reply(400, state="PAID"), Outcome.UNKNOWN, ""),
        (reply(404, state="NEW"), Outcome.UNKNOWN, ""),
        (reply(500, state="NO"), Outcome.UNKNOWN, ""),
        (reply(503, state="POOR"), Outcome.UNKNOWN, ""),
        (reply(302, state="BUSY"), Outcome.UNKNOWN, ""),
        # No word: the status alone.
        (HttpReply(202), Outcome.PENDING, ""),
        (reply(400), Outcome.REFUSED, "400"),
        (HttpReply(400, b"<html>"), Outcome.REFUSED, "400"),
        (reply(429), Outcome.NOT_SENT, ""),
        (HttpReply(200), Outcome.UNKNOWN, ""),
        (reply(401), Outcome.UNKNOWN, ""),
        (reply(500), Outcome.UNKNOWN, ""),
    ],
    ids=lambda value: f"{value.status} {value.body!r}" if isinstance(value, HttpReply) else None,
)
async def test_only_answers_that_the_tables_list_are_believed(
    answer: HttpReply, outcome: Outcome, code: str
) -> None:
    async with opened(answer, **SUBMIT) as api:
        result = await api.network.submit(fakes.request())

        assert (result.outcome, result.code) == (outcome, code)
        assert len(api.came) == 1


async def test_the_reason_is_the_text_or_the_word_of_the_network_without_secrets() -> None:
    settings = {"submit__fields__reason": ["error.text", "message"], **SUBMIT}
    said = {"message": "too little money", "error": {"text": ""}}
    answers = (
        reply(400, state="POOR", **said),
        reply(200, state="HELD"),
        reply(200, state="the secret-key of 4111111111111111"),
    )
    async with opened(*answers, auth="bearer", auth_secret="secret-key", **settings) as api:
        reasons = [(await api.network.submit(fakes.request())).reason for _ in answers]

    assert reasons == [
        "HTTP 400, too little money",
        "HTTP 200, HELD",
        "HTTP 200, the *** of 411111******1111",
    ]


FIELDS: dict[str, Any] = {
    "status__fields": {
        "outcome": "data.0.state",
        "reference": "data.0.id",
        "amount_minor": "data.0.sum",
        "currency": "data.0.cur",
        "network_id": "data.0.ours",
    }
}


@pytest.mark.parametrize(
    ("members", "echo"),
    [
        ({"id": "R1", "sum": 1050, "cur": "GHS"}, Echo("R1", Decimal("10.50"), "GHS")),
        ({"sum": "1050"}, Echo(None, Decimal("10.50"), None)),
        ({"sum": 500, "cur": "XOF"}, Echo(None, Decimal(500), "XOF")),
        ({"sum": 10.5, "cur": "GHS"}, Echo(None, Decimal("0.105"), "GHS")),
        ({"sum": "ten", "cur": 7, "id": None}, Echo(None, None, "7")),
        ({"id": REFERENCE.replace("-", "")}, Echo(REFERENCE)),
        ({"id": REFERENCE.upper()}, Echo(REFERENCE)),
        ({"id": REFERENCE.replace("-", "").upper()}, Echo(REFERENCE)),
        ({"id": "R1", "sum": "1050", "cur": "ghs"}, Echo("R1", Decimal("10.50"), "GHS")),
    ],
)
async def test_the_repeated_fields_are_read_exactly(members: dict[str, object], echo: Echo) -> None:
    answer = reply(200, data=[{"state": "PAID", "ours": 59214, **members}])
    async with opened(answer, **FIELDS) as api:
        found = await api.network.status(fakes.query())

        assert (found.outcome, found.echo) == (Outcome.SUCCEEDED, echo)
        assert found.network_id == "59214"


async def test_the_first_field_with_a_word_decides() -> None:
    places = {"outcome": ["data.state", "message"]}
    words = {"PAID": "succeeded", "no such payment": "not_found"}
    asked = {"status__fields": places, "status__outcomes": words}
    answers = (
        reply(200, data={"state": "PAID"}, message="ok"),
        reply(400, message="no such payment"),
        reply(200, data={"state": "HELD"}, message="PAID"),
        reply(500, message="no such payment"),
    )
    async with opened(*answers, **asked) as api:
        found = [await api.network.status(fakes.query()) for _ in answers]

    assert [(each.outcome, each.found) for each in found] == [
        (Outcome.SUCCEEDED, True),
        (Outcome.UNKNOWN, False),
        (Outcome.UNKNOWN, True),
        (Outcome.UNKNOWN, True),
    ]


async def test_a_status_query_without_tables_uses_those_of_submit() -> None:
    words = {**SUBMIT["submit__outcomes"], "NEW": "pending"}
    answers = [reply(200, state=word) for word in ("NEW", "PAID", "NO", "POOR", "BUSY")]
    async with opened(*answers, submit__outcomes=words) as api:
        found = [(await api.network.status(fakes.query())).outcome for _ in answers]

    # A refusal of the query says nothing about the payment.
    assert found == ["pending", "succeeded", "failed", "unknown", "unknown"]


@pytest.mark.parametrize(
    ("age_s", "outcome"), [(299, Outcome.PENDING), (300, Outcome.FAILED), (None, Outcome.PENDING)]
)
async def test_a_failure_counts_only_once_the_payment_is_old_enough(
    age_s: int | None, outcome: Outcome
) -> None:
    waiting: dict[str, Any] = {"status__failed_after_s": 300}
    async with opened(reply(200, state="NO"), reply(200, state="PAID"), **waiting) as api:
        now = fakes.environment().clock.now()
        since = None if age_s is None else now - timedelta(seconds=age_s)
        asked: StatusQuery = replace(fakes.query(), submitted_at=since)
        found = await api.network.status(asked)
        paid = await api.network.status(asked)

    assert (found.outcome, paid.outcome) == (outcome, Outcome.SUCCEEDED)


async def test_the_retry_after_of_the_network_is_passed_on() -> None:
    late = HttpReply(429, b"{}", (("Retry-After", "60"),))
    async with opened(late) as api:
        found = await api.network.status(fakes.query())

    assert (found.outcome, found.retry_after) == (Outcome.UNKNOWN, timedelta(seconds=60))
