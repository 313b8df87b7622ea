"""The errors of a Postgres store that cannot be opened. None of them shows a password."""

from urllib.parse import urlsplit

import pytest

from sandbox_sim.ports import StoreError
from sandbox_sim.stores.sql.schema import MIGRATIONS
from sandbox_sim.testing.network_contract.http_peer import closed_address
from tests import postgres
from tests.stores.conftest import OpenPostgres
from tests.units import unit_of


async def complaint(open_postgres: OpenPostgres, url: str) -> str:
    with pytest.raises(StoreError) as caught:
        await open_postgres(url=url)
    return str(caught.value)


def with_password(url: str, user: str | None = None, **parts: str) -> str:
    split = urlsplit(url)
    host = split.netloc.rpartition("@")[2]
    user = user or split.username or "postgres"
    return split._replace(**{"netloc": f"{user}:s3same@{host}", **parts}).geturl()


async def test_a_newer_sandbox_sim_made_it(open_postgres: OpenPostgres, url: str) -> None:
    """After the failure nothing is left open."""
    await (await open_postgres()).close()
    await postgres.execute(url, "UPDATE sandbox_sim.gateway SET version = version + 7")
    try:
        words = await complaint(open_postgres, url)
        ((sessions,),) = await postgres.execute(
            url,
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'sandbox_sim%' "
            "AND datname = current_database()",
        )
    finally:
        await postgres.execute(url, "UPDATE sandbox_sim.gateway SET version = version - 7")

    known = len(MIGRATIONS)
    assert f"it has version {known + 7} and this sandbox_sim knows up to {known}; install" in words
    assert sessions == 0


async def test_the_schema_is_somebody_elses_and_stays_as_it_is(
    open_postgres: OpenPostgres, url: str
) -> None:
    await postgres.execute(
        url,
        "DROP SCHEMA IF EXISTS sandbox_sim CASCADE",
        "CREATE SCHEMA sandbox_sim",
        "CREATE TABLE sandbox_sim.jobs (theirs TEXT)",
    )
    try:
        words = await complaint(open_postgres, url)
        assert words.endswith("its schema sandbox_sim belongs to another program")
        assert await postgres.execute(url, "SELECT theirs FROM sandbox_sim.jobs") == []
    finally:
        await postgres.execute(url, "DROP SCHEMA sandbox_sim CASCADE")


async def test_an_empty_schema_that_somebody_made_for_us_is_taken_and_no_other_is_touched(
    open_postgres: OpenPostgres, url: str
) -> None:
    await postgres.execute(
        url,
        "DROP SCHEMA IF EXISTS sandbox_sim CASCADE",
        "CREATE SCHEMA sandbox_sim",
        "CREATE TABLE public.transactions (theirs TEXT)",
    )
    try:
        store = await open_postgres()
        assert await unit_of(store).transaction(55, "T1") is None
    finally:
        await postgres.execute(url, "DROP TABLE public.transactions")


async def test_nobody_listens_there(open_postgres: OpenPostgres) -> None:
    place = urlsplit(closed_address()).netloc

    words = await complaint(open_postgres, f"postgresql://me:s3same@{place}/gateway")

    assert words.startswith(f"postgresql://me:***@{place}/gateway: it cannot be reached: ")
    assert "s3same" not in words


async def test_there_is_no_such_database(open_postgres: OpenPostgres, url: str) -> None:
    words = await complaint(open_postgres, with_password(url, path="/no_such_database"))

    assert words.endswith('database "no_such_database" does not exist')
    assert "s3same" not in words


async def test_its_user_may_not_see_the_tables(open_postgres: OpenPostgres, url: str) -> None:
    await (await open_postgres()).close()
    stranger = f"{urlsplit(url).path[1:]}_stranger"
    await postgres.execute(
        url,
        f'DROP ROLE IF EXISTS "{stranger}"',
        f"CREATE ROLE \"{stranger}\" LOGIN PASSWORD 's3same'",
    )
    try:
        words = await complaint(open_postgres, with_password(url, user=stranger))
    finally:
        await postgres.execute(url, f'DROP ROLE "{stranger}"')

    assert words.endswith("permission denied for schema sandbox_sim")


@pytest.mark.parametrize(
    "nonsense",
    [
        "postgresql://me:s3same/with@slash@127.0.0.1/db",
        "postgresql://me:s3same@127.0.0.1:port/db",
        "postgresql://me:s3same@127.0.0.1:99999/db",
        "postgresql://me:s3same@127.0.0.1/db?sslmode=sometimes",
        "postgresql://me:s3same@[::1/db",
        "postgresql://me:s3same@no-such-host.invalid/db",
    ],
)
async def test_an_address_that_is_none(
    open_postgres: OpenPostgres, url: str, nonsense: str
) -> None:
    words = await complaint(open_postgres, nonsense)

    assert words.startswith("postgresql://me:***@")
    assert "s3same" not in words


async def test_an_encoding_that_holds_not_every_text(open_postgres: OpenPostgres, url: str) -> None:
    made = f"{urlsplit(url).path[1:]}_latin"
    latin = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    await postgres.execute(url, f'CREATE DATABASE "{made}" {latin}')
    try:
        words = await complaint(open_postgres, urlsplit(url)._replace(path=f"/{made}").geturl())
    finally:
        await postgres.execute(url, f'DROP DATABASE "{made}"')

    assert "its encoding is not UTF8" in words
