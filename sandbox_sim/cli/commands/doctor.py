"""`sandbox-sim doctor`: examines a receiver of callbacks; exit code 1 if anything is wrong."""

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import click

from sandbox_sim.bootstrap import open_doctor
from sandbox_sim.cli import doctor_report as report
from sandbox_sim.cli.commands.configuration import load_or_exit
from sandbox_sim.cli.lazy_commands import INTERRUPTED
from sandbox_sim.config import Settings
from sandbox_sim.domain.callbacks.callbacks import Profile
from sandbox_sim.domain.callbacks.receiver_checks import Finding
from sandbox_sim.domain.callbacks.receiver_verdicts import Verdict
from sandbox_sim.gateway.callbacks.doctor import Receiver


class _Key(NamedTuple):
    """What callbacks are signed with, and whose it is; both None where none is signed."""

    secret: str | None
    owner: str | None


def run(
    url: str,
    config_file: Path | None,
    *,
    secret_key: str | None,
    profiles: tuple[Profile, ...],
    timeout: float | None,
    as_json: bool,
) -> int:
    """The report on stdout, what is wrong in one line on stderr; returns the exit code."""
    settings = load_or_exit(config_file, {}).settings
    key = _key(settings, secret_key)
    seconds = settings.callback_timeout_s if timeout is None else timeout
    receiver = Receiver(url, key.secret, profiles, timedelta(seconds=seconds))
    try:
        if as_json:
            findings = asyncio.run(_all(receiver))
            click.echo(json.dumps(report.document(receiver, key.owner, findings), indent=2))
        else:
            click.echo(report.introduction(receiver, key.owner))
            findings = asyncio.run(_told(receiver))
            click.echo()
    except KeyboardInterrupt:
        return INTERRUPTED
    return _conclude(findings, as_json=as_json)


def _key(settings: Settings, given: str | None) -> _Key:
    """The key that was asked for, else the one that a gateway of these settings signs with."""
    if given is not None:
        return _Key(given, "--secret-key")
    if not settings.sign_callbacks:
        return _Key(None, None)
    first = settings.credentials[0]
    return _Key(first.secret_key.get_secret_value(), first.client_key)


async def _all(receiver: Receiver) -> Sequence[Finding]:
    async with open_doctor() as doctor:
        return [finding async for finding in doctor.examine(receiver)]


async def _told(receiver: Receiver) -> Sequence[Finding]:
    """The same, each check told as soon as it is over: a slow receiver makes it take long."""
    findings: list[Finding] = []
    of_check: list[Finding] = []
    async with open_doctor() as doctor:
        async for finding in doctor.examine(receiver):
            if of_check and of_check[0].check != finding.check:
                _tell(of_check, receiver)
                of_check = []
            of_check.append(finding)
            findings.append(finding)
    _tell(of_check, receiver)
    return findings


def _tell(of_check: Sequence[Finding], receiver: Receiver) -> None:
    for line in report.lines(of_check, receiver.profiles):
        click.echo(line)


def _conclude(findings: Sequence[Finding], *, as_json: bool) -> int:
    """Say what is wrong, or that nothing is, and tell the exit code."""
    wrong = report.titles(findings, Verdict.WRONG)
    if wrong:
        click.echo(f"wrong: {', '.join(wrong)}", err=True)
        return 1
    if not as_json:
        warnings = report.titles(findings, Verdict.WARNING)
        but = f", but see the warnings: {', '.join(warnings)}" if warnings else ""
        click.echo(f"nothing is wrong{but}")
    return 0
