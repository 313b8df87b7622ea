"""Every reason of MTN is FAILED, and never a cancellation; the table says it in words."""

import pytest

from sandbox_sim.networks.mtn_momo.messages import FAILURE_REASONS, MOST_CHARACTERS, failure_reason
from sandbox_sim.records.reports import Outcome
from tests.networks.fakes import query
from tests.networks.momo import REFERENCE, Momo, request

pytestmark = pytest.mark.decision("D39")


@pytest.mark.parametrize("code", FAILURE_REASONS)
async def test_each_listed_reason_fails_the_payment_in_both_forms(momo: Momo, code: str) -> None:
    await momo.network.submit(request())
    for reason in (code, {"code": code, "message": "said by MTN"}):
        momo.fake.decide(REFERENCE, "FAILED", reason)

        found = await momo.network.status(query(request()))

        assert found.outcome is Outcome.FAILED
        assert not found.cancelled
        assert found.reason == f"{code}: {FAILURE_REASONS[code]}"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("TARGET_AUTHORIZATION_ERROR", "TARGET_AUTHORIZATION_ERROR"),
        ({"code": "NEW_WORD", "message": "Not today."}, "NEW_WORD: Not today."),
        ({"code": "NEW_WORD"}, "NEW_WORD"),
        ({"message": "Not today."}, "Not today."),
        (None, "MTN gave no reason"),
        (["x"], "MTN gave no reason"),
        ({"code": 7, "message": 8}, "MTN gave no reason"),
        ("NO {token} 4111111111111111", "NO *** 411111******1111"),
    ],
)
async def test_another_reason_is_shown_as_it_came_without_secrets_and_not_too_long(
    momo: Momo, reason: object, said: str
) -> None:
    await momo.network.submit(request())
    if isinstance(reason, str):
        reason = reason.format(token=momo.fake.tokens[0])
    momo.fake.decide(REFERENCE, "FAILED", reason)

    found = await momo.network.status(query(request()))

    assert (found.outcome, found.reason) == (Outcome.FAILED, said)
    assert len(failure_reason({"code": "C", "message": "x" * 9999})) == MOST_CHARACTERS
