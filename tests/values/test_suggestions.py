"""What an error suggests instead of an unknown name."""

import pytest

from sandbox_sim.values.redaction import nearest, suggestion

FIELDS = ("status", "response_code", "transaction_id")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("statuss", "status"),
        ("stat", "status"),
        ("responsecode", "response_code"),
        ("transactionid", "transaction_id"),
        ("amount", None),
        ("", None),
    ],
)
def test_a_name_like_a_known_one_is_suggested(name: str, meant: str | None) -> None:
    assert nearest(name, FIELDS) == meant


def test_an_error_ends_with_the_suggestion_or_with_all_names() -> None:
    assert suggestion("statuss", FIELDS) == "did you mean status?"
    assert suggestion("zzz", FIELDS) == "there are status, response_code, transaction_id"
    assert suggestion("zzz", ()) == "there are none"
