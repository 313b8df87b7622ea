"""`transactions show | settle` and `callbacks show | resend | retry` take any id of a record."""

import pytest

from tests.cli.asking import as_json, on, printed
from tests.conftest import Sandbox


@pytest.fixture
async def paid(sandbox: Sandbox) -> Sandbox:
    """A gateway with a payment T1 of each of the services 55 and 56, and a pending one, T2."""
    await sandbox.collect()
    await sandbox.collect(service_id=56)
    await sandbox.advance(seconds=1)
    await sandbox.collect(transaction_id="T2")
    return sandbox


async def test_a_transaction_by_its_id_alone(paid: Sandbox) -> None:
    shown = await as_json(paid, "transactions", "show", "T2")

    assert shown["transaction_id"] == "T2"
    assert await as_json(paid, "transactions", "show", shown["network_transaction_id"]) == shown
    assert await as_json(paid, "transactions", "show", 55, "T2") == shown


async def test_settle_by_its_id_alone(paid: Sandbox) -> None:
    assert await printed(paid, "transactions", "settle", "T2", "cancelled") == [
        "T2 is 003 cancelled"
    ]


@pytest.mark.parametrize("words", [("transactions", "show", "T1"), ("callbacks", "show", "T1")])
async def test_what_is_ambiguous_is_listed(paid: Sandbox, words: tuple[str, ...]) -> None:
    result = await on(paid, *words)

    assert (result.exit_code, result.stdout) == (1, "")
    head, *listed = result.stderr.splitlines()
    assert head.startswith(f"'T1' fits 2 {words[0]}")
    assert sorted("service 55" in line for line in listed) == [False, True]


async def test_a_callback_by_the_id_of_its_transaction(paid: Sandbox) -> None:
    await paid.advance(seconds=1)

    shown = await as_json(paid, "callbacks", "show", "T2")
    resent = await printed(paid, "callbacks", "resend", "T2")

    assert shown["transaction_id"] == "T2"
    assert resent == [f"{shown['id']} goes to {shown['url']} again"]
