"""The address of a Postgres store is shown without its password."""

import pytest

from sandbox_sim.values.hosts import is_postgres, masked


def test_a_password_is_masked_wherever_it_stands() -> None:
    rows = [
        ("postgresql://h/db", "postgresql://h/db"),
        ("postgresql://me@h:5432/db", "postgresql://me@h:5432/db"),
        ("postgresql://me:s3same@h/db", "postgresql://me:***@h/db"),
        ("postgres://me:@h/db", "postgres://me:***@h/db"),
        ("postgresql://me:s3@me@h/db", "postgresql://me:***@h/db"),
        ("postgresql://me:s3/me@h/db", "postgresql://me:***@h/db"),
        ("postgresql://me:s3?me#@h/db", "postgresql://me:***@h/db"),
        ("postgresql://me:s3same@h1:1,h2:2/db?a=b", "postgresql://me:***@h1:1,h2:2/db?a=b"),
        ("postgresql:///db?host=/run&password=s3same", "postgresql:///db?host=/run&password=***"),
        ("postgresql:///db?sslPassword=s3same&user=me", "postgresql:///db?sslPassword=***&user=me"),
        ("sqlite:/tmp/state.sqlite3", "sqlite:/tmp/state.sqlite3"),
        ("memory:", "memory:"),
    ]
    for store, shown in rows:
        assert masked(store) == shown


@pytest.mark.parametrize(
    ("store", "it_is"),
    [
        ("postgresql://h/db", True),
        ("postgres://h/db", True),
        ("postgresql:h", False),
        ("sqlite:postgresql://", False),
        ("memory:", False),
    ],
)
def test_what_is_postgres(store: str, it_is: bool) -> None:
    assert is_postgres(store) is it_is
