"""`sandbox-sim certify`: runs the bad days of a payment against the user's own application."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from sandbox_sim.certify import reports
from sandbox_sim.certify.application import ConfiguredApplication
from sandbox_sim.certify.bench import open_bench
from sandbox_sim.certify.cases import CertifyCase, check_names, chosen, load
from sandbox_sim.certify.configuration import TEMPLATE, Configuration, load as load_configuration
from sandbox_sim.certify.files import Duration, FileError, Table, parse
from sandbox_sim.certify.runner import run as run_cases
from sandbox_sim.certify.verdicts import Result
from sandbox_sim.cli.client import CommandFailed, WrongUsage
from sandbox_sim.settings.loading import ConfigError
from sandbox_sim.values.redaction import printable

DEFAULT_FILE = "certify.toml"


class _RunByDefault(click.Group):
    """`certify FILE` is `certify run FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add `run` where no command is named."""
        if not args or args[0] not in {*self.commands, "--help", "-h"}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_RunByDefault)
def certify() -> None:
    """Run the bad days of a payment against your application.

    `certify init` writes certify.toml, which says how your application is reached. `certify
    certify.toml` runs all cases.
    """


@certify.command()
@click.argument("file", type=click.Path(path_type=Path), default=DEFAULT_FILE)
def init(file: Path) -> None:
    """Write certify.toml, to be filled in."""
    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(TEMPLATE.read_text("utf-8"))
    except FileExistsError:
        raise CommandFailed(f"{file} exists; it stays as it is") from None
    except OSError as error:
        raise CommandFailed(f"{file} cannot be written: {error.strerror}") from None
    click.echo(f"{file} written; fill in how your application is reached, then: certify {file}")


class _Limit(Table):
    limit: Duration


def _duration(_context: click.Context, _param: click.Parameter, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return parse({"limit": text}, _Limit, "--limit").limit
    except FileError:
        raise click.BadParameter("must be a duration such as 90s or 10m") from None


@certify.command()
@click.argument("file", type=click.Path(path_type=Path), default=DEFAULT_FILE)
@click.option("--case", "names", multiple=True, help="Run this case only; may be repeated.")
@click.option(
    "--cases",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder with cases of your own, beside ours.",
)
@click.option("--seed", type=int, help="Run the cases in the order of this seed, not by name.")
@click.option("--limit", callback=_duration, help="Real time of the run, in place of the file's.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write JUnit XML to this file.")
@click.option("--html", type=click.Path(path_type=Path), help="Write one HTML page to this file.")
@click.pass_obj
def run(
    obj: Mapping[str, Any],
    /,
    file: Path,
    names: tuple[str, ...],
    folders: tuple[Path, ...],
    seed: int | None,
    limit: Any,
    junit: Path | None,
    html: Path | None,
) -> None:
    """Run the cases. Exit 1 unless each one passes or is not applicable."""
    try:
        configuration, cases = load_configuration(file), load(folders)
        check_names(configuration.not_applicable, cases)
        if limit is not None:
            configuration = configuration.model_copy(update={"limit": limit})
        picked = chosen(cases, names)
        remedies = bool(names)
        document = _run(configuration, picked, seed, remedies=remedies, quiet=obj["as_json"])
    except (FileError, ConfigError) as error:
        raise WrongUsage(str(error)) from None
    if obj["as_json"]:
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(reports.summary(document))
        if document["counts"]["failed"] and not names:
            click.echo("--case NAME shows how to mend a case")
    for target, write in ((junit, reports.junit), (html, reports.html)):
        if target is not None:
            _write(target, write(document))
    if not document["succeeded"]:
        raise SystemExit(1)


def _run(
    configuration: Configuration,
    cases: Sequence[CertifyCase],
    seed: int | None,
    *,
    remedies: bool,
    quiet: bool,
) -> dict[str, Any]:
    def done(result: Result) -> None:
        if not quiet:
            shown = reports.shown_result(result, configuration.secrets)
            for line in reports.lines(shown, remedies=remedies):
                click.echo(printable(line))

    with open_bench(configuration) as bench:
        if not quiet:
            own = configuration.application
            click.echo(f"gateway at {bench.gateway_url}, service {own.service_id}")
        found = run_cases(
            bench,
            ConfiguredApplication(configuration, bench.gateway_url),
            cases,
            seed=seed,
            done=done,
        )
    return reports.shown(found, configuration.secrets)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise CommandFailed(f"{file} cannot be written: {error.strerror}") from None
