"""`sandbox-sim doctor`: examines a receiver of callbacks; exit code 1 if anything is wrong."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import click

from sandbox_sim.bootstrap import open_doctor
from sandbox_sim.cli import doctor_report as report
from sandbox_sim.cli.commands.configuration import load_or_exit
from sandbox_sim.cli.doctor_profiles import (
    ConfiguredProfile,
    advice_lines,
    configured_profile,
    recommended,
    tested_lines,
    working,
)
from sandbox_sim.cli.lazy_commands import INTERRUPTED
from sandbox_sim.cli.order_commands import OrderCommands
from sandbox_sim.config import Settings
from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.callbacks.receiver_checks import Finding
from sandbox_sim.domain.callbacks.receiver_verdicts import Verdict
from sandbox_sim.gateway.callbacks import receiver_report
from sandbox_sim.gateway.callbacks.doctor import Receiver


class _Key(NamedTuple):
    """The key that signs callbacks, and the name of its owner; both None if they are not signed."""

    secret: str | None
    owner: str | None


def run(
    url: str,
    config_file: Path | None,
    *,
    secret_key: str | None,
    profiles: tuple[Profile, ...],
    timeout: float | None,
    paid: str | None = None,
    order: str | None = None,
    as_json: bool,
) -> int:
    """Print the report on stdout and a line of what is wrong on stderr. Returns the exit code."""
    settings = load_or_exit(config_file, {}).settings
    key = _key(settings, secret_key)
    seconds = settings.callback_timeout_s if timeout is None else timeout
    configured = configured_profile(settings, url)
    limit = timedelta(seconds=seconds)
    receiver = Receiver.configured_for(url, key.secret, configured.profile, limit, profiles)
    orders = None if paid is None else OrderCommands(paid, order)
    try:
        if as_json:
            findings = asyncio.run(_all(receiver, orders))
            document = receiver_report.shown(receiver, key.owner, findings)
            tested = _tested(findings, configured, orders)
            click.echo(json.dumps({**document, **tested}, indent=2))
        else:
            click.echo(report.introduction(receiver, key.owner))
            findings = asyncio.run(_examine_and_print(receiver, orders))
            click.echo()
            for line in _about_profiles(findings, configured, orders):
                click.echo(line)
    except KeyboardInterrupt:
        return INTERRUPTED
    return _print_conclusion(findings, as_json=as_json)


def _key(settings: Settings, given: str | None) -> _Key:
    """The key from the command line, else the key that a gateway with these settings uses."""
    if given is not None:
        return _Key(given, "--secret-key")
    if not settings.sign_callbacks:
        return _Key(None, None)
    first = settings.credentials[0]
    return _Key(first.secret_key.get_secret_value(), first.client_key)


def _about_profiles(
    findings: Sequence[Finding], configured: ConfiguredProfile, orders: OrderCommands | None
) -> Iterator[str]:
    if orders is None:
        yield from advice_lines(configured)
    else:
        yield from tested_lines(working(findings), configured)


def _tested(
    findings: Sequence[Finding], configured: ConfiguredProfile, orders: OrderCommands | None
) -> dict[str, object]:
    """What `--paid` found out, as JSON: `set` is null where nothing is to be set."""
    if orders is None:
        return {"works_with": None, "set": None}
    works = working(findings)
    found = recommended(works, configured.profile)
    return {
        "works_with": list(works),
        "set": None if found is None else {configured.setting: found},
    }


async def _all(receiver: Receiver, orders: OrderCommands | None) -> Sequence[Finding]:
    async with open_doctor(orders) as doctor:
        return [finding async for finding in doctor.examine(receiver)]


async def _examine_and_print(receiver: Receiver, orders: OrderCommands | None) -> Sequence[Finding]:
    """Examine the receiver and print each check as soon as it is done, as it may be slow."""
    findings: list[Finding] = []
    of_check: list[Finding] = []
    async with open_doctor(orders) as doctor:
        async for finding in doctor.examine(receiver):
            if of_check and of_check[0].check != finding.check:
                _print(of_check, receiver)
                of_check = []
            of_check.append(finding)
            findings.append(finding)
    _print(of_check, receiver)
    return findings


def _print(of_check: Sequence[Finding], receiver: Receiver) -> None:
    for line in report.lines(of_check, receiver.profiles):
        click.echo(line)


def _print_conclusion(findings: Sequence[Finding], *, as_json: bool) -> int:
    """Print what is wrong, or that nothing is. Returns the exit code."""
    wrong = report.titles(findings, Verdict.WRONG)
    if wrong:
        click.echo(f"wrong: {', '.join(wrong)}", err=True)
        return 1
    if not as_json:
        warnings = report.titles(findings, Verdict.WARNING)
        but = f", but see the warnings: {', '.join(warnings)}" if warnings else ""
        click.echo(f"nothing is wrong{but}")
    return 0
