"""What a notification may do."""

from datetime import timedelta

import pytest

from sandbox_sim.records.exchanges import (
    KEPT_UNMATCHED,
    NotificationTrust,
    Standing,
    next_match,
    standing,
)
from tests.production.samples import NOON

pytestmark = pytest.mark.decision("D39")


@pytest.mark.parametrize(
    ("trust", "verified", "has_status", "expected"),
    [
        (NotificationTrust.SIGNED, True, True, Standing.COUNTS),
        (NotificationTrust.SIGNED, True, False, Standing.COUNTS),
        (NotificationTrust.SIGNED, False, True, Standing.HINT),
        (NotificationTrust.SIGNED, False, False, Standing.REFUSED),
        (NotificationTrust.HINT, True, True, Standing.HINT),
        (NotificationTrust.HINT, True, False, Standing.REFUSED),
        (NotificationTrust.HINT, False, True, Standing.HINT),
        (NotificationTrust.NONE, True, True, Standing.HINT),
        (NotificationTrust.NONE, True, False, Standing.REFUSED),
    ],
)
def test_only_a_proven_notification_counts(
    trust: NotificationTrust, verified: bool, has_status: bool, expected: Standing
) -> None:
    assert standing(trust, verified=verified, has_status=has_status) is expected


def test_one_that_fits_no_attempt_yet_is_tried_again_for_a_day() -> None:
    waits = []
    for tries in range(12):
        due = next_match(NOON, tries, NOON)
        assert due is not None
        waits.append((due - NOON).total_seconds())

    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert next_match(NOON, 300, NOON + KEPT_UNMATCHED - timedelta(seconds=1)) is not None
    assert next_match(NOON, 300, NOON + KEPT_UNMATCHED) is None
