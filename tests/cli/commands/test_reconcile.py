"""`sandbox-sim reconcile`: the network that it names (D39)."""

from operator import methodcaller
from pathlib import Path

import pytest

from sandbox_sim.records.reports import Outcome
from tests.cli.asking import on
from tests.conftest import Sandbox, StartSandbox
from tests.live_records import attempt
from tests.production.client import live
from tests.production.settings import STAGING, UNREACHABLE

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
def statement(tmp_path: Path) -> Path:
    file = tmp_path / "statement.csv"
    file.write_text("reference,amount\n")
    return file


@pytest.fixture
async def production(start_sandbox: StartSandbox) -> Sandbox:
    return await live(start_sandbox, {**STAGING, "account": UNREACHABLE})


async def test_a_network_that_is_unknown_is_a_wrong_usage_that_names_the_others(
    production: Sandbox, statement: Path
) -> None:
    result = await on(production, "reconcile", "stagging", statement)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "stagging is not a network of this gateway" in result.stderr
    assert "its networks are staging, account" in result.stderr


async def test_without_production_every_network_is_unknown(
    sandbox: Sandbox, statement: Path
) -> None:
    result = await on(sandbox, "reconcile", "mtn", statement)

    assert result.exit_code == 2
    assert "it runs without production" in result.stderr


async def test_a_network_of_before_whose_attempts_are_kept_can_be_reconciled(
    production: Sandbox, statement: Path
) -> None:
    old = attempt(network="closed", outcome=Outcome.SUCCEEDED)
    await production.gateway.store.run(methodcaller("add_attempt", old, "{}"))

    result = await on(production, "reconcile", "closed", statement)

    assert result.exit_code == 1
    assert "1 missing there" in result.stdout
