"""`sandbox-sim certify`: runs the cases, bad days of a payment, against the user's application."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any, Final

import click

from sandbox_sim.certify import reports
from sandbox_sim.certify.application import ConfiguredApplication
from sandbox_sim.certify.bench import CertifyBench, open_bench
from sandbox_sim.certify.cases import check_names, load, select
from sandbox_sim.certify.configuration import (
    ISOLATION_NEEDED,
    TEMPLATE,
    Configuration,
    load as load_configuration,
)
from sandbox_sim.certify.files import FileError, parse_duration
from sandbox_sim.certify.runner import plan_parallel_runs, run as run_cases
from sandbox_sim.certify.verdicts import CaseVerdict, Result, Run
from sandbox_sim.cli.client import CommandFailed, WrongUsage
from sandbox_sim.cli.commands.configuration import write
from sandbox_sim.cli.options import Integer
from sandbox_sim.settings.loading import ConfigError
from sandbox_sim.settings.schema import certify_report
from sandbox_sim.testing import SandboxGateway
from sandbox_sim.values.redaction import printable

DEFAULT_FILE = "certify.toml"
# The exit code of a run without a failed case that could not judge them all.
INCONCLUSIVE: Final = 3

# Files that an application changes by itself, such as its database and its log, start no run.
_SOURCE_SUFFIXES: Final = frozenset(
    {
        *(".py", ".js", ".mjs", ".ts", ".php", ".rb", ".go", ".rs", ".java", ".kt", ".cs", ".ex"),
        *(".html", ".sql", ".toml", ".yaml", ".yml", ".env"),
    }
)
_SKIPPED_FOLDERS: Final = frozenset({"node_modules", "vendor", "venv", "target", "build", "dist"})
_POLL_INTERVAL_S: Final = 0.5


class _RunByDefault(click.Group):
    """`certify FILE` is `certify run FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add `run` if the first argument is not a subcommand."""
        if not args or args[0] not in {*self.commands, "--help", "-h"}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_RunByDefault)
def certify() -> None:
    """Run the bad days of a payment against your application.

    `certify init` writes certify.toml; in it you describe how to reach your application. `certify
    certify.toml` runs all cases.
    """


@certify.command()
@click.argument("file", type=click.Path(path_type=Path), default=DEFAULT_FILE)
def init(file: Path) -> None:
    """Write certify.toml for you to fill in."""
    write(file, TEMPLATE.read_text("utf-8"))
    click.echo(f"wrote {file}; fill it in, then run: sandbox-sim certify {file}")


def _duration(
    _context: click.Context, _param: click.Parameter, text: str | None
) -> timedelta | None:
    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@certify.command()
@click.argument("file", type=click.Path(path_type=Path), default=DEFAULT_FILE)
@click.option("--case", "names", multiple=True, help="Run this case only; may be repeated.")
@click.option(
    "--cases",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder with cases of your own, in addition to the built-in ones.",
)
@click.option(
    "--seed", type=int, help="Shuffle the cases with this seed; by default they run by name."
)
@click.option(
    "--limit",
    callback=_duration,
    help="Longest real time of the run; overrides the value in the file.",
)
@click.option(
    "--at-once",
    type=Integer(1, 64),
    help="How many cases run at once; overrides the file. See Cases at once in the docs.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Keep running: repeat the failed cases whenever a source file in this folder changes.",
)
@click.option("--junit", type=click.Path(path_type=Path), help="Write JUnit XML to this file.")
@click.option("--html", type=click.Path(path_type=Path), help="Write one HTML page to this file.")
@click.pass_obj
def run(
    obj: Mapping[str, Any],
    /,
    *,
    file: Path,
    names: tuple[str, ...],
    folders: tuple[Path, ...],
    seed: int | None,
    limit: timedelta | None,
    at_once: int | None,
    watch: bool,
    junit: Path | None,
    html: Path | None,
) -> None:
    """Run the cases. Exit 1 if one failed, 3 if one is inconclusive and none failed."""
    try:
        configuration, cases = load_configuration(file), load(folders)
        check_names(configuration.not_applicable, cases, f"{file}: not_applicable: ")
        configuration = _with_options(configuration, limit=limit, at_once=at_once)
        selected = select(cases, names)
        output = _Output(configuration, obj["as_json"], bool(names), junit, html)
        output.check()
        restarts = any(case.restarts("gateway") for case in selected)
        with open_bench(
            configuration, SandboxGateway, restarts=restarts, cases=len(selected)
        ) as bench:
            output.print_start(bench.gateway_url, len(selected))
            application = _reach(configuration, bench)
            parallel = plan_parallel_runs(configuration, bench, selected, SandboxGateway, _reach)
            remaining = selected
            while True:
                before = snapshot(Path(), html) if watch else {}
                found = run_cases(
                    bench, application, remaining,
                    seed=seed, on_result=output.print_case, parallel=parallel,
                )  # fmt: skip
                output.print_end(found)
                if not watch or (found.succeeded and remaining is selected):
                    break
                if not found.succeeded:
                    output.print_waiting(bench.gateway_url)
                    wait_for_change(Path(), before, html)
                failed = [each.case.name for each in found.results if not each.is_good]
                remaining = select(cases, failed) if failed else selected
    except (FileError, ConfigError) as error:
        raise WrongUsage(str(error)) from None
    if not found.succeeded:
        raise SystemExit(1 if found.count(CaseVerdict.FAILED) else INCONCLUSIVE)


def _reach(configuration: Configuration, bench: CertifyBench) -> ConfiguredApplication:
    return ConfiguredApplication(configuration, bench.gateway_url)


def _with_options(configuration: Configuration, **options: Any) -> Configuration:
    """The configuration, changed by the options that are given. Raises `FileError`."""
    given = {name: value for name, value in options.items() if value is not None}
    if given.get("at_once", 1) > 1 and configuration.isolated_by is None:
        raise FileError(f"--at-once: {ISOLATION_NEEDED}")
    return configuration.model_copy(update=given)


@dataclass(eq=False, repr=False)
class _Output:
    """Prints each result when its case ends, and writes the reports of each run.

    remedies: whether to print how to fix each failure.
    """

    configuration: Configuration
    as_json: bool
    remedies: bool
    junit: Path | None
    html: Path | None

    def check(self) -> None:
        """Open the report files, so that a run of minutes is not lost at its end.

        Raises `CommandFailed` if one cannot be written. What an earlier run wrote stays for now.
        """
        for file in filter(None, (self.html, self.junit)):
            write(file, "", "a")

    def print_start(self, gateway_url: str, cases: int) -> None:
        """Print the address and the services of the gateway."""
        first, *others = self.configuration.services(cases)
        services = f"services {first} to {others[-1]}" if others else f"service {first}"
        self._print(f"gateway at {gateway_url}, {services}")

    def print_case(self, result: Result) -> None:
        """Print the result of a case that ran; `print_end` prints those that did not, together."""
        if result.reason and not result.events:
            return
        shown = reports.result_document(result, self.configuration.secrets)
        for line in reports.lines(shown, remedies=self.remedies):
            self._print(printable(line))

    def print_end(self, found: Run) -> None:
        """Print the counts, or with --json the whole report, and write the report files."""
        document = reports.run_document(found, self.configuration.secrets)
        if self.as_json:
            click.echo(json.dumps(document, indent=2))
        for line in reports.lines_about_several(document):
            self._print(printable(line))
        self._print(reports.summary(document))
        if document["counts"]["failed"] and not self.remedies:
            self._print("--case NAME shows how to fix a failure")
        page = reports.html(document)
        with suppress(CommandFailed, OSError):  # only the dashboard shows this file
            certify_report().parent.mkdir(parents=True, exist_ok=True)
            write(certify_report(), page, "w")
        if self.html is not None:
            write(self.html, page, "w")
        if self.junit is not None:
            write(self.junit, reports.junit(document), "w")

    def print_waiting(self, gateway_url: str) -> None:
        """Print that the command waits for a file to change."""
        self._print(f"report: {gateway_url}/_sandbox/certify")
        self._print("waiting for a source file to change in this folder; Ctrl-C ends")

    def _print(self, line: str) -> None:
        if not self.as_json:
            click.echo(line)


Snapshot = Mapping[Path, int]


def snapshot(folder: Path, report: Path | None = None) -> Snapshot:
    """The modification time of each source file in the folder, in nanoseconds.

    report: the page that each run writes, which is not a source.
    """
    written = None if report is None else report.resolve()
    return {file: at for file, at in _modification_times(folder) if file.resolve() != written}


def wait_for_change(folder: Path, before: Snapshot, report: Path | None = None) -> None:
    """Wait until a source file differs from `before`, and then until the changes have ended."""
    previous = before
    while True:
        now = snapshot(folder, report)
        if now == previous != before:
            return
        previous = now
        Event().wait(_POLL_INTERVAL_S)


def _modification_times(folder: Path) -> Iterator[tuple[Path, int]]:
    for parent, folders, names in os.walk(folder, followlinks=True):  # skips what it may not read
        folders[:] = [name for name in folders if name[0] != "." and name not in _SKIPPED_FOLDERS]
        for file in (Path(parent, name) for name in names):
            if file.suffix in _SOURCE_SUFFIXES or file.name == ".env":
                try:
                    yield file, file.stat().st_mtime_ns
                except OSError:  # an editor has just replaced it
                    yield file, 0
