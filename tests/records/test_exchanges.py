"""Exchanges are kept without secrets; the parts of messages; notifications (D39)."""

import base64
import json
from datetime import timedelta
from itertools import permutations
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.records.exchanges import (
    KEPT_BYTES,
    KEPT_UNMATCHED,
    MessagePart,
    NotificationEffect,
    NotificationTrust,
    Scrubber,
    message_outcome,
    next_match_at,
    notification_effect,
)
from sandbox_sim.records.reports import Outcome
from tests.production.samples import NOON

SECRET = 'ca"na ry/ö-7f3a'

FORMS = {
    "plain": SECRET,
    "in an address": quote(SECRET, safe=""),
    "in JSON": json.dumps(SECRET),
    "in Base64": base64.b64encode(SECRET.encode()).decode(),
}


@pytest.mark.decision("D38", "D39")
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_secret_is_scrubbed_in_every_encoding(form: str) -> None:
    scrubbed = Scrubber([SECRET]).text(f"before {form} after")

    assert scrubbed.startswith("before ")
    assert scrubbed.endswith(" after")
    assert form.strip('"') not in scrubbed


@pytest.mark.decision("D38", "D39")
@given(st.text(min_size=4), st.text(), st.text())
def test_a_scrubbed_text_does_not_contain_the_secret(secret: str, before: str, after: str) -> None:
    assert secret not in Scrubber([secret]).text(f"{before}{secret}{after}").replace("***", "")


@pytest.mark.decision("D38")
def test_credentials_and_cards_are_scrubbed_without_a_list_of_secrets() -> None:
    headers = [("Authorization", "Bearer t0ken"), ("X-Reference-Id", "R1"), ("Set-Cookie", "a=b")]
    body = b'{"access_token": "ey\\"J0", "expires_in": 3600}'
    card = b'{"customer_number": "4111111111111111"}'

    assert Scrubber().headers(headers) == {
        "authorization": "***",
        "x-reference-id": "R1",
        "set-cookie": "***",
    }
    assert Scrubber().body(body) == '{"access_token": "***", "expires_in": 3600}'
    assert "4111111111111111" not in Scrubber().body(card)


@pytest.mark.decision("D38", "D39")
def test_a_secret_at_the_cut_of_a_long_body_is_scrubbed() -> None:
    body = b"x" * (KEPT_BYTES - 5) + b"secret-value"

    assert "secr" not in Scrubber(["secret-value"]).body(body)


@pytest.mark.decision("D38", "D39")
def test_a_token_can_be_added_and_forgotten_and_is_not_shown() -> None:
    scrubber = Scrubber(["key-one"])
    scrubber.add("token-two")
    assert scrubber.text("key-one token-two") == "*** ***"
    assert "token-two" not in repr(scrubber)

    scrubber.forget("token-two")
    assert scrubber.text("key-one token-two") == "*** token-two"


ARRIVED, FAILED, WAITING = Outcome.SUCCEEDED, Outcome.FAILED, Outcome.PENDING


def parts(*outcomes: Outcome, total: int = 1) -> list[MessagePart]:
    return [
        MessagePart("sms", "A1", number, total, f"id-{number}", outcome)
        for number, outcome in enumerate(outcomes, 1)
    ]


@pytest.mark.parametrize(
    ("outcomes", "total", "expected"),
    [
        ([ARRIVED], 1, ARRIVED),
        ([ARRIVED, ARRIVED, ARRIVED], 3, ARRIVED),
        ([ARRIVED, ARRIVED], 3, WAITING),  # a part that the network may not have
        ([ARRIVED, WAITING, ARRIVED], 3, WAITING),
        ([ARRIVED, FAILED, ARRIVED], 3, FAILED),
        ([FAILED, WAITING], 2, FAILED),
        ([WAITING], 1, WAITING),
        ([], 0, WAITING),
    ],
)
def test_a_message_arrived_when_all_its_parts_did_and_failed_when_one_did(
    outcomes: list[Outcome], total: int, expected: Outcome
) -> None:
    for order in permutations(parts(*outcomes, total=total)):
        assert message_outcome(order) is expected
        assert message_outcome([*order[:1], *order]) is expected, (
            "a part that is known twice counts once"
        )


@pytest.mark.parametrize("first", [ARRIVED, FAILED])
def test_a_part_keeps_its_first_final_outcome(first: Outcome) -> None:
    (part,) = parts(WAITING)

    assert part.reported(Outcome.UNKNOWN) == part
    for later in Outcome:
        assert part.reported(first).reported(later).outcome is first


@pytest.mark.parametrize(
    ("trust", "verified", "has_status", "expected"),
    [
        (NotificationTrust.SIGNED, True, True, NotificationEffect.COUNTS),
        (NotificationTrust.SIGNED, True, False, NotificationEffect.COUNTS),
        (NotificationTrust.SIGNED, False, True, NotificationEffect.HINT),
        (NotificationTrust.SIGNED, False, False, NotificationEffect.REFUSED),
        (NotificationTrust.HINT, True, True, NotificationEffect.HINT),
        (NotificationTrust.HINT, True, False, NotificationEffect.REFUSED),
        (NotificationTrust.HINT, False, True, NotificationEffect.HINT),
        (NotificationTrust.NONE, True, True, NotificationEffect.HINT),
        (NotificationTrust.NONE, True, False, NotificationEffect.REFUSED),
    ],
)
def test_only_a_proven_notification_counts(
    trust: NotificationTrust, verified: bool, has_status: bool, expected: NotificationEffect
) -> None:
    assert notification_effect(trust, verified=verified, has_status=has_status) is expected


def test_a_notification_that_matches_no_attempt_is_tried_again_for_a_day() -> None:
    waits = []
    for tries in range(12):
        due = next_match_at(NOON, tries, NOON)
        assert due is not None
        waits.append((due - NOON).total_seconds())

    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert next_match_at(NOON, 300, NOON + KEPT_UNMATCHED - timedelta(seconds=1)) is not None
    assert next_match_at(NOON, 300, NOON + KEPT_UNMATCHED) is None
