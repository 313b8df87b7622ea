"""The errors of a Postgres store that cannot be opened. They show no password."""

from urllib.parse import urlsplit

import pytest

from sandbox_sim.ports import StoreError
from sandbox_sim.stores.sql.schema import MIGRATIONS
from sandbox_sim.testing.network_contract.http_peer import closed_address
from tests import postgres
from tests.stores.conftest import OpenPostgres
from tests.units import unit_of


async def error_of(open_postgres: OpenPostgres, url: str) -> str:
    with pytest.raises(StoreError) as caught:
        await open_postgres(url=url)
    return str(caught.value)


def with_password(url: str, user: str | None = None, **parts: str) -> str:
    split = urlsplit(url)
    host = split.netloc.rpartition("@")[2]
    user = user or split.username or "postgres"
    return split._replace(**{"netloc": f"{user}:s3same@{host}", **parts}).geturl()


async def test_a_database_of_a_newer_version_is_refused_and_every_connection_closed(
    open_postgres: OpenPostgres, url: str
) -> None:
    await (await open_postgres()).close()
    await postgres.execute(url, "UPDATE sandbox_sim.gateway SET version = version + 7")
    try:
        error = await error_of(open_postgres, url)
        ((sessions,),) = await postgres.execute(
            url,
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'sandbox_sim%' "
            "AND datname = current_database()",
        )
    finally:
        await postgres.execute(url, "UPDATE sandbox_sim.gateway SET version = version - 7")

    known = len(MIGRATIONS)
    assert f"it has version {known + 7} and this sandbox_sim knows up to {known}; install" in error
    assert sessions == 0


async def test_a_schema_of_another_program_is_refused_and_not_changed(
    open_postgres: OpenPostgres, url: str
) -> None:
    await postgres.execute(
        url,
        "DROP SCHEMA IF EXISTS sandbox_sim CASCADE",
        "CREATE SCHEMA sandbox_sim",
        "CREATE TABLE sandbox_sim.jobs (theirs TEXT)",
    )
    try:
        error = await error_of(open_postgres, url)
        assert error.endswith("its schema sandbox_sim belongs to another program")
        assert await postgres.execute(url, "SELECT theirs FROM sandbox_sim.jobs") == []
    finally:
        await postgres.execute(url, "DROP SCHEMA sandbox_sim CASCADE")


async def test_a_store_uses_an_empty_schema_and_no_other_schema(
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


async def test_the_error_names_an_unreachable_server_without_its_password(
    open_postgres: OpenPostgres,
) -> None:
    place = urlsplit(closed_address()).netloc

    error = await error_of(open_postgres, f"postgresql://me:s3same@{place}/gateway")

    assert error.startswith(f"postgresql://me:***@{place}/gateway: it cannot be reached: ")
    assert "s3same" not in error


async def test_the_error_names_a_missing_database(open_postgres: OpenPostgres, url: str) -> None:
    error = await error_of(open_postgres, with_password(url, path="/no_such_database"))

    assert error.endswith('database "no_such_database" does not exist')
    assert "s3same" not in error


async def test_a_user_without_permission_is_refused(open_postgres: OpenPostgres, url: str) -> None:
    await (await open_postgres()).close()
    stranger = f"{urlsplit(url).path[1:]}_stranger"
    await postgres.execute(
        url,
        f'DROP ROLE IF EXISTS "{stranger}"',
        f"CREATE ROLE \"{stranger}\" LOGIN PASSWORD 's3same'",
    )
    try:
        error = await error_of(open_postgres, with_password(url, user=stranger))
    finally:
        await postgres.execute(url, f'DROP ROLE "{stranger}"')

    assert error.endswith("permission denied for schema sandbox_sim")


@pytest.mark.parametrize(
    "invalid",
    [
        "postgresql://me:s3same/with@slash@127.0.0.1/db",
        "postgresql://me:s3same@127.0.0.1:port/db",
        "postgresql://me:s3same@127.0.0.1:99999/db",
        "postgresql://me:s3same@127.0.0.1/db?sslmode=sometimes",
        "postgresql://me:s3same@[::1/db",
        "postgresql://me:s3same@no-such-host.invalid/db",
    ],
)
async def test_an_invalid_address_is_refused_without_its_password(
    open_postgres: OpenPostgres, url: str, invalid: str
) -> None:
    error = await error_of(open_postgres, invalid)

    assert error.startswith("postgresql://me:***@")
    assert "s3same" not in error


async def test_a_database_with_an_encoding_other_than_utf8_is_refused(
    open_postgres: OpenPostgres, url: str
) -> None:
    made = f"{urlsplit(url).path[1:]}_latin"
    latin = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    await postgres.execute(url, f'CREATE DATABASE "{made}" {latin}')
    try:
        error = await error_of(open_postgres, urlsplit(url)._replace(path=f"/{made}").geturl())
    finally:
        await postgres.execute(url, f'DROP DATABASE "{made}"')

    assert "its encoding is not UTF8" in error
