"""`sandbox-sim networks prove NAME`: runs the contract suite on tables of the user. D39."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click
from pydantic import ValidationError

from sandbox_sim.cli.commands.configuration import load_or_exit
from sandbox_sim.networks.settings import problems_of
from sandbox_sim.settings.networks import NetworkTable
from sandbox_sim.testing.network_contract.contract import DISPROVED, PROOFS, VERDICTS, ProofVerdict
from sandbox_sim.testing.network_contract.http_json_dialect import verdict_on
from sandbox_sim.values.redaction import printable

# The adapter for which a simulated network can be built from the settings alone.
_PROVABLE: Final = "http_json"


def run(name: str, config_file: Path | None, settings: Mapping[str, str], *, as_json: bool) -> int:
    """Run and print every proof; return 1 if one is disproved, else 0.

    Exits with 2 if the network has no tables to prove.
    """
    table = _table_of(name, load_or_exit(config_file, settings).settings.networks)
    try:
        proofs = dict(_verdicts(table.adapter_settings(), as_json=as_json))
    except ValueError as error:  # a ValidationError, or a file of a secret that cannot be read
        problem = problems_of(error) if isinstance(error, ValidationError) else error
        raise click.ClickException(f"networks.{name}: {problem}") from None
    counts = Counter(each.word for each in proofs.values())
    if as_json:
        rows = [
            {"name": proof, "verdict": each.word, "reason": each.reason}
            for proof, each in proofs.items()
        ]
        click.echo(json.dumps({"network": name, "proofs": rows}))
    else:
        counted = ", ".join(f"{counts[word]} {word}" for word in VERDICTS)
        click.echo(f"{name}: {counted}; nothing was sent to its base_url")
    return 1 if counts[DISPROVED] else 0


def _table_of(name: str, tables: Mapping[str, NetworkTable]) -> NetworkTable:
    """The settings of a network; exits with 2 unless its adapter is `http_json`."""
    table = tables.get(name)
    if table is None:
        listed = ", ".join(sorted(tables)) or "none"
        raise click.UsageError(f"there is no network {name}; the configuration has: {listed}")
    if table.adapter != _PROVABLE:
        raise click.UsageError(
            f"{name} has the adapter {table.adapter}, but prove needs {_PROVABLE}; the package of "
            f"{table.adapter} runs the contract suite in its own tests"
        )
    return table


def _verdicts(
    settings: Mapping[str, object], *, as_json: bool
) -> Iterator[tuple[str, ProofVerdict]]:
    """Each proof with its verdict; without `as_json`, printed when it ends."""
    for proof in PROOFS:
        found = asyncio.run(verdict_on(settings, proof))
        if not as_json:
            reason = f": {found.reason}" if found.reason else ""
            click.echo(printable(f"{found.word} {proof.name}{reason}"))
        yield proof.name, found
