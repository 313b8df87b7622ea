"""`sandbox-sim doctor`: examines a receiver of callbacks; exit code 1 if a check fails.

The user writes the commands of `--paid` and `--order`, which look up and create orders of the
receiver. They run in the shell. The doctor fills in its ids, each quoted as one argument.
"""

import asyncio
import json
import os
import shlex
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.bootstrap import open_doctor
from sandbox_sim.callbacks import receiver_checks
from sandbox_sim.callbacks.doctor import Receiver
from sandbox_sim.callbacks.receiver_checks import (
    NOT_PAID,
    PAID,
    PROFILE_ADVICE,
    Assessment,
    Finding,
    Verdict,
    reference_of,
)
from sandbox_sim.cli.client import CommandFailed, RunningGateway
from sandbox_sim.cli.commands.configuration import load_or_exit
from sandbox_sim.cli.options import Integer, check_address, config_option, number_of_seconds
from sandbox_sim.cli.sample_payments import GatewayPayments
from sandbox_sim.records.callbacks import CallbackRecord, Profile
from sandbox_sim.settings.schema import A_DAY_S, Settings
from sandbox_sim.values.redaction import printable, redact_text

_COLOURS: Final = {
    Verdict.OK: "green",
    Verdict.WARNING: "yellow",
    Verdict.WRONG: "red",
    Verdict.NOTE: "cyan",
    Verdict.SKIPPED: "bright_black",
}

# Answers of a receiver are cut to this length.
_MAX_SHOWN_CHARACTERS: Final = 200


def check_titles(findings: Sequence[Finding], verdict: Verdict) -> Sequence[str]:
    """The titles of the checks that have this verdict at least once, in order."""
    found = (_title(f.check) for f in findings if f.assessment.verdict is verdict)
    return list(dict.fromkeys(found))


def introduction_line(receiver: Receiver, owner: str | None) -> str:
    """The first line: the receiver, the profiles, the key and the timeout."""
    profiles = ", ".join(receiver.profiles)
    notes = [profile for profile in receiver.profiles if not receiver.must_accept(profile)]
    if notes:
        judged = ", ".join(each for each in receiver.profiles if receiver.must_accept(each))
        profiles = f"judged as {judged}, notes on {', '.join(notes)}"
    match owner:
        case None:
            signed = "not signed (setting sign_callbacks)"
        case "--secret-key":
            signed = "signed with the key given"
        case _:
            signed = f"signed with the secret key of {owner}"
    seconds = f"{receiver.timeout.total_seconds():g} s to answer"
    return f"{printable(redact_text(receiver.url))}: {profiles}; {signed}; {seconds}\n"


def finding_lines(findings: Sequence[Finding], profiles: Sequence[Profile]) -> Iterator[str]:
    """The findings of one check: a line for each assessment, and what to do about it.

    profiles: all profiles of the run; an assessment that is the same for all is printed once.
    """
    by_assessment: dict[Assessment, list[Finding]] = {}
    for finding in findings:
        by_assessment.setdefault(finding.assessment, []).append(finding)
    for assessment, same in by_assessment.items():
        verdict = click.style(f"{assessment.verdict:<8}", fg=_COLOURS[assessment.verdict])
        aside = ", ".join(filter(None, (_profiles_of(same, profiles), _duration_of(same))))
        says = _first_part(assessment.says) + (f" ({aside})" if aside else "")
        yield f"{verdict} {_title(same[0].check):<16} {says}"
        if assessment.verdict in {Verdict.WARNING, Verdict.WRONG}:
            yield from (f"{'':10}{line}" for line in _details(same[0]))


def _profiles_of(same: Sequence[Finding], profiles: Sequence[Profile]) -> str:
    """The profiles of these findings; empty if the run has only one."""
    named_profiles = [finding.profile for finding in same if finding.profile is not None]
    if not named_profiles or len(profiles) == 1:
        return ""
    return "every profile" if len(named_profiles) == len(profiles) else ", ".join(named_profiles)


def _duration_of(same: Sequence[Finding]) -> str:
    """The durations of the answers, such as `3 to 9 ms`; empty without answers."""
    durations = [f.exchange.response.duration_ms for f in same if f.exchange is not None]
    if not durations:
        return ""
    least, most = min(durations), max(durations)
    return f"{most} ms" if least == most else f"{least} to {most} ms"


def _details(finding: Finding) -> Iterator[str]:
    """The lines with the callback, the answer of the receiver and the remedy."""
    if finding.exchange is not None:
        callback, response = finding.exchange
        yield f"sent: {finding.sends}, {callback.transaction_id}, as {callback.profile}"
        if response.body.strip():
            yield f"got:  {_first_part(response.body)}"
    yield f"do:   {printable(finding.assessment.remedy)}"


def _title(check: str) -> str:
    return check.replace("_", " ")


def _first_part(text: str) -> str:
    """The beginning of a text from the receiver, in one line."""
    line = " ".join(text.split())
    if len(line) > _MAX_SHOWN_CHARACTERS:
        line = f"{line[:_MAX_SHOWN_CHARACTERS]}…"
    return printable(line)


class ConfiguredProfile(NamedTuple):
    """The profile that a gateway sends to a receiver, and the name of the setting for it."""

    profile: Profile
    setting: str


def configured_profile(settings: Settings, url: str) -> ConfiguredProfile:
    """The profile of the first credential set at this `callback_url`."""
    client = settings.credentials[0]
    glob = next((each for each in settings.callback_profiles if fnmatchcase(url, each)), None)
    name = "callback_profile"
    if glob is not None:
        name = f'callback_profiles."{glob}"'
    elif client.callback_profile is not None:
        name = f"callback_profile of the credentials {client.client_key}"
    profile = settings.behaviour().callbacks.profile_of(url, client.client())
    return ConfiguredProfile(profile, name)


def working_profiles(findings: Sequence[Finding]) -> Sequence[Profile]:
    """The profiles with which a successful payment counts as paid, and a failed one does not."""
    verdicts = {(each.check, each.profile): each.assessment.verdict for each in findings}
    return [
        profile
        for profile in Profile
        if verdicts.get((PAID, profile)) is Verdict.OK
        and verdicts.get((NOT_PAID, profile), Verdict.OK) is Verdict.OK
    ]


def payments_line(payments: GatewayPayments, other_service: int | None) -> str:
    """Whether status queries of the receiver found the sample payments; if not, what to do."""
    if payments.problem is not None:
        return f"status queries find no sample payment: {payments.problem}"
    if other_service is not None:
        return (
            f"the receiver queried the status with service {other_service}, but the payments are "
            f"of service {payments.service_id}: add --service-id {other_service}"
        )
    return f"the payments exist in service {payments.service_id}; status queries find them"


def paid_json(works: Sequence[Profile] | None, configured: ConfiguredProfile) -> dict[str, object]:
    """The result of `--paid` as JSON; `set` is null if no setting has to change."""
    found = _recommended(works or (), configured.profile)
    return {
        "works_with": None if works is None else list(works),
        "set": None if found is None else {configured.setting: found},
    }


def profile_lines(works: Sequence[Profile] | None, configured: ConfiguredProfile) -> Iterator[str]:
    """With `--paid`, which profiles work, and what to set; without it, how to choose one."""
    name, profile = configured.setting, configured.profile
    if works is None:
        yield f"{name} is {profile}. Other receivers may need:"
        for reads, advised in PROFILE_ADVICE:
            yield f"  {reads + ':':34}callback_profile = {advised}"
        yield "An acknowledgement does not show that the order is paid; --paid 'COMMAND' checks it."
    elif not works:
        yield "no profile works: the order of a successful payment never counts as paid"
    else:
        found = _recommended(works, profile)
        yield f"works with: {', '.join(works)}"
        yield f"{name} = {profile} is right" if found is None else f"set {name} = {found}"


def _recommended(works: Sequence[Profile], configured: Profile) -> Profile | None:
    """The profile to set; None if the configured one works, or if none does."""
    if not works or configured in works:
        return None
    return Profile.SUPERSET if Profile.SUPERSET in works else works[0]


PLACEHOLDERS: Final = ("{reference}", "{transaction_id}")

# Real time that a receiver has to mark an order as paid after it acknowledged the callback.
ORDER_TIMEOUT_S: Final = 3.0

_POLL_INTERVAL_S: Final = 0.25

# Real time limit of one command of the user.
COMMAND_TIMEOUT_S: Final = 30.0

# Exit codes of a shell that cannot run a command.
_CANNOT_RUN: Final = (126, 127)


def _secret_key(_context: click.Context, _param: click.Parameter, key: str | None) -> str | None:
    if key == "":
        raise click.BadParameter("must not be empty")
    return key


def _order_command(
    _context: click.Context, param: click.Parameter, command: str | None
) -> str | None:
    if command is not None and not any(each in command for each in PLACEHOLDERS):
        raise click.BadParameter(f"must contain {' or '.join(PLACEHOLDERS)}")
    if command is not None and param.name == "order" and not _context.params.get("paid"):
        raise click.BadParameter("needs --paid")
    return command


@click.command()
@click.argument("url", callback=check_address)
@click.option(
    "--secret-key",
    envvar="SANDBOX_SIM_SECRET_KEY",
    show_envvar=True,
    callback=_secret_key,
    help="Sign with this key; by default with the key of the first credential set.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Choice([each.value for each in Profile]),
    help="Send and judge only this profile; may be repeated.",
)
@click.option(
    "--paid",
    metavar="COMMAND",
    is_eager=True,
    callback=_order_command,
    help="A command that exits with 0 if the order of {reference} or {transaction_id} counts as "
    "paid. It shows which profiles work.",
)
@click.option(
    "--order",
    metavar="COMMAND",
    callback=_order_command,
    help="With --paid: a command that creates the order of {reference} before its callback.",
)
@click.option(
    "--timeout",
    type=number_of_seconds(
        lambda s: 0 < s <= A_DAY_S, f"a number of seconds above 0, up to {A_DAY_S}"
    ),
    help="How long the receiver has to answer; by default the setting callback_timeout_s.",
)
@click.option(
    "--service-id",
    type=Integer(1),
    help="The service that the receiver sends in status queries; by default one of the doctor.",
)
@config_option
@click.pass_obj
def doctor(
    obj: Mapping[str, Any],
    /,
    *,
    url: str,
    config_file: Path | None,
    secret_key: str | None,
    profiles: tuple[str, ...],
    timeout: float | None,
    paid: str | None,
    order: str | None,
    service_id: int | None,
) -> None:
    """Find the mistakes of a receiver of callbacks. Exit 1 if a check fails.

    The receiver gets callbacks of every profile, genuine, forged and repeated, for successful,
    failed and cancelled payments whose ids begin with DOCTOR-. The profile that this configuration
    sends is judged; for the others there are notes.

    If a gateway runs, it gets these payments in sandbox, so that a receiver can query their
    status. A receiver that queries the status cannot be examined without a gateway.

    \b
    A receiver that                    needs
      compares trans_status with 000   callback_profile = trans_bare
      reads transaction_id and status  callback_profile = flat
    If you are unsure, try             callback_profile = superset
    """  # noqa: D301 -- click reads \b as a character
    settings = load_or_exit(config_file, {}).settings
    key, owner = _signing_key(settings, secret_key)
    limit = timedelta(seconds=settings.callback_timeout_s if timeout is None else timeout)
    configured = configured_profile(settings, url)
    chosen_profiles = tuple(dict.fromkeys(map(Profile, profiles)))
    gateway = RunningGateway(obj["endpoint_url"], obj["token"] or None)
    payments = GatewayPayments(gateway, settings, service_id)
    receiver = Receiver.configured_for(
        url, key, configured.profile, limit, chosen_profiles, payments.service_id
    )
    orders = None if paid is None else OrderCommands(paid, order)
    as_json = obj["as_json"]
    if not as_json:
        click.echo(introduction_line(receiver, owner))
    on_check = (lambda _: None) if as_json else partial(_print, receiver)
    findings, other_service = asyncio.run(_examine(receiver, orders, payments, on_check))
    works = None if orders is None else working_profiles(findings)
    status_queries = payments_line(payments, other_service)
    if as_json:
        document = receiver_checks.shown(receiver, owner, findings)
        more = {"status_queries": status_queries, **paid_json(works, configured)}
        click.echo(json.dumps({**document, **more}, indent=2))
    else:
        click.echo(f"\n{printable(status_queries)}")
        for line in profile_lines(works, configured):
            click.echo(line)
    if wrong := check_titles(findings, Verdict.WRONG):
        raise CommandFailed(f"wrong: {', '.join(wrong)}")
    if not as_json:
        warnings = check_titles(findings, Verdict.WARNING)
        but = f", but see the warnings: {', '.join(warnings)}" if warnings else ""
        click.echo(f"nothing is wrong{but}")


def _signing_key(settings: Settings, given: str | None) -> tuple[str | None, str | None]:
    """The key that signs callbacks, and whose it is; None if callbacks are not signed.

    It is the given key, else the key of a gateway with these settings.
    """
    if given is not None:
        return given, "--secret-key"
    if not settings.sign_callbacks:
        return None, None
    first = settings.credentials[0]
    return first.secret_key.get_secret_value(), first.client_key


async def _examine(
    receiver: Receiver,
    orders: "OrderCommands | None",
    payments: GatewayPayments,
    on_check: Callable[[Sequence[Finding]], None],
) -> tuple[Sequence[Finding], int | None]:
    """Examine the receiver; return the findings, and the wrong service that it queried, if any.

    done: called after each check with its findings.
    """
    findings: list[Finding] = []
    printed = 0
    await payments.open()
    async with open_doctor(orders, payments) as doctor:
        async for finding in doctor.examine(receiver):
            if findings and findings[-1].check != finding.check:
                on_check(findings[printed:])
                printed = len(findings)
            findings.append(finding)
    on_check(findings[printed:])
    other_service = await payments.other_service()
    await payments.close()
    return findings, other_service


def _print(receiver: Receiver, findings: Sequence[Finding]) -> None:
    for line in finding_lines(findings, receiver.profiles):
        click.echo(line)


class OrderCommands:
    """Creates orders of a receiver and looks them up, with commands of the user.

    paid: exits with 0 if an order counts as paid. order: creates an order; None if no order has to
    be created.
    """

    def __init__(self, paid: str, order: str | None) -> None:
        self._paid = paid
        self._order = order
        self._clock = SystemClock()

    async def create(self, callback: CallbackRecord) -> None:
        """Create the order of a callback. Raises `CommandFailed`."""
        if self._order is not None:
            code, stderr_text = await _run(self._order, callback)
            if code != 0:
                raise CommandFailed(f"--order exits with {code}{stderr_text}")

    async def becomes_paid(self, callback: CallbackRecord) -> bool:
        """Whether the order counts as paid within `ORDER_TIMEOUT_S`."""
        deadline = self._clock.monotonic() + ORDER_TIMEOUT_S
        while not await self.is_paid(callback):
            if self._clock.monotonic() >= deadline:
                return False
            await self._clock.pause(_POLL_INTERVAL_S)
        return True

    async def is_paid(self, callback: CallbackRecord) -> bool:
        """Whether the order counts as paid. Raises `CommandFailed` if the command cannot run."""
        code, stderr_text = await _run(self._paid, callback)
        if code in _CANNOT_RUN:
            raise CommandFailed(f"--paid cannot be run{stderr_text}")
        return code == 0


def fill(command: str, callback: CallbackRecord) -> str:
    """The command with the ids of a callback, each quoted as one shell argument."""
    ids = (reference_of(callback), callback.transaction_id)
    for placeholder, value in zip(PLACEHOLDERS, ids, strict=True):
        command = command.replace(placeholder, shlex.quote(value))
    return command


async def _run(command: str, callback: CallbackRecord) -> tuple[int, str]:
    """Run a command; return its exit code, and `: ` with its stderr, or an empty text."""
    with tempfile.TemporaryFile() as stderr:  # a child of the command may keep a pipe open
        process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", fill(command, callback)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,  # so that `killpg` also ends the children of the command
        )
        try:
            async with SystemClock().timeout(COMMAND_TIMEOUT_S):
                code = await process.wait()
        except TimeoutError:
            late = f"a command did not end within {COMMAND_TIMEOUT_S:g} s: {command}"
            raise CommandFailed(late) from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        stderr.seek(0)
        text = stderr.read().decode("utf-8", "replace").strip()
    return code, f": {text}" if text else ""
