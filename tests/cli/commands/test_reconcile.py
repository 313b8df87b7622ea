"""`sandbox-sim reconcile`: the network that it names (D39)."""

import json
from operator import methodcaller
from pathlib import Path

import pytest

from sandbox_sim.records.attempts import Attempt
from sandbox_sim.records.reports import Outcome
from tests.cli.asking import on
from tests.conftest import Sandbox, StartSandbox
from tests.live_records import attempt
from tests.production.client import live, settled
from tests.production.settings import STAGING, UNREACHABLE
from tests.sample_records import NOW

ASK = "sandbox-sim transactions ask 55"
WHY = '--reason "line 4 of the statement"'
SETTLE = "sandbox-sim transactions settle 55 T2 000"

pytestmark = pytest.mark.decision("D39")


@pytest.fixture
def statement(tmp_path: Path) -> Path:
    file = tmp_path / "statement.csv"
    file.write_text("reference,amount\n")
    return file


def write(statement: Path, text: str) -> None:
    statement.write_text(text)


async def keep(sandbox: Sandbox, *attempts: Attempt) -> None:
    """Save attempts at networks."""
    for each in attempts:
        await sandbox.gateway.store.run(methodcaller("add_attempt", each, "{}"))


@pytest.fixture
async def production(start_sandbox: StartSandbox) -> Sandbox:
    return await live(start_sandbox, {**STAGING, "account": UNREACHABLE})


async def test_an_unknown_network_is_wrong_usage_that_names_the_others(
    production: Sandbox, sandbox: Sandbox, statement: Path
) -> None:
    wrong = await on(production, "reconcile", "stagging", statement)
    without_production = await on(sandbox, "reconcile", "mtn", statement)

    assert (wrong.exit_code, wrong.stdout, without_production.exit_code) == (2, "", 2)
    assert "stagging is not a network of this gateway" in wrong.stderr
    assert "its networks are staging, account" in wrong.stderr
    assert "it runs without production" in without_production.stderr


async def test_a_former_network_with_attempts_can_be_reconciled(
    production: Sandbox, statement: Path
) -> None:
    await keep(production, attempt(network="closed", outcome=Outcome.SUCCEEDED))

    result = await on(production, "reconcile", "closed", statement)

    assert result.exit_code == 1
    assert "1 missing there" in result.stdout


async def test_the_report_ends_with_what_to_do(production: Sandbox, statement: Path) -> None:
    await keep(
        production,
        attempt("A1", network="closed", outcome=Outcome.SUCCEEDED, transaction_id="T1"),
        attempt("A2", network="closed", outcome=Outcome.UNKNOWN, transaction_id="T2"),
    )
    write(
        statement,
        "reference,amount,status\n"
        "reference of A1,10.50,success\n"
        "reference of A1,10.50,reversed\n"
        "reference of A2,10.50,success\n"
        "reference of A3,10.50,failed\n",
    )

    result = await on(production, "reconcile", "closed", statement)

    assert result.exit_code == 1
    _, *lines = result.stdout.splitlines()
    assert lines[2:] == [
        "closed: 1 matched, 0 different in amount, 1 missing here, 0 missing there",
        "taken back: 0 here too, 1 not here",
        "1 rows were left out: their payments were not carried out",
        "what to do:",
        f"1. settle: {ASK} T2; if it stays undecided, {SETTLE} {WHY}",
        f"2. ask: {ASK} T1: the reversal is recorded once the network confirms it",
    ]


async def test_json_has_both_sides_of_each_difference(production: Sandbox, statement: Path) -> None:
    for number in (1, 2):
        sent = attempt(f"A{number}", network="closed", transaction_id=f"T{number}")
        await keep(production, sent._replace(outcome=Outcome.SUCCEEDED))
    write(statement, "reference,amount\nreference of A1,10.51\nR9,5\n")

    result = await on(
        production, "--json", "reconcile", "closed", statement, "--since", "2020-01-01"
    )

    found = json.loads(result.stdout)
    assert (result.exit_code, found["agrees"], found["matched"]) == (1, False, 0)
    (different,), (here,), (there,) = (
        found[each] for each in ("different", "missing_here", "missing_there")
    )
    assert (different["row"]["amount"], different["attempt"]["transaction_id"]) == ("10.51", "T1")
    assert (here["row"]["reference"], there["transaction_id"]) == ("R9", "T2")


async def test_a_statement_may_name_transactions_of_the_client(
    production: Sandbox, statement: Path
) -> None:
    await production.collect()
    await settled(production, seconds=2)
    write(statement, "External Id,Amount\nT1,10.50\n")

    result = await on(production, "reconcile", "staging", statement, "--until", "2020-01-01")

    assert (result.exit_code, result.stderr) == (0, "")
    assert "staging: 1 matched" in result.stdout


async def test_an_invalid_statement_and_an_unknown_field_are_wrong_usage(
    production: Sandbox, statement: Path
) -> None:
    write(statement, "reference,amount\nR1,five\n")
    for column, says in (
        ("amount=amount", "line 2: 'five' is not an amount"),
        ("sum=Paid", "the fields are reference, network_id, transaction_id, amount"),
    ):
        result = await on(production, "reconcile", "staging", statement, "--column", column)

        assert result.exit_code == 2
        assert says in result.stderr


@pytest.mark.parametrize(
    ("period", "missing"),
    [
        (("--since", "2026-01-01T09:00:00Z"), 1),
        (("--since", "2026-01-01T09:00:01Z"), 0),
        (("--until", "2026-01-01T09:00:00Z"), 0),
        (("--until", "2026-01-01T09:00:01+00:00"), 1),
        (("--since", "2026-01-01T10:00:00+01:00"), 1),
        (("--since", "2026-01-01T09:00:00.001Z"), 0),
        (("--since", "2026-01-01", "--until", "2026-01-01"), 1),
    ],
)
async def test_the_period_may_begin_and_end_at_a_time(
    production: Sandbox, statement: Path, period: tuple[str, ...], missing: int
) -> None:
    await keep(production, attempt(network="closed", outcome=Outcome.SUCCEEDED, created_at=NOW))

    result = await on(production, "reconcile", "closed", statement, *period)

    assert (result.exit_code, result.stderr) == (missing, "")
    assert f"{missing} missing there" in result.stdout
