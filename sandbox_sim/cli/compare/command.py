"""`sandbox-sim compare`: compares another implementation of the interface with ours."""

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import groupby
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import click
from pydantic import SecretStr

from sandbox_sim.adapters.clock_and_ids import RandomIds, SystemClock
from sandbox_sim.cli.client import WrongUsage
from sandbox_sim.cli.commands.configuration import settings_options
from sandbox_sim.cli.compare.cases import Difference, Plan, fill, plan
from sandbox_sim.cli.compare.settings_search import (
    REMARKS,
    Findings,
    Observations,
    decision_on,
    find,
)
from sandbox_sim.cli.compare.sides import (
    NoHttpAnswer,
    Side,
    client_session,
    observe_other,
    own_gateway,
    without_unfinished,
)
from sandbox_sim.cli.options import Integer, check_address, credential_options, timeout_option
from sandbox_sim.cli.tables import shorten_cell, table
from sandbox_sim.settings.loading import LoadedSettings, as_toml
from sandbox_sim.settings.schema import Settings
from sandbox_sim.settings.values import Credentials
from sandbox_sim.values.hosts import is_loopback
from sandbox_sim.values.redaction import printable

# Settings about the server or the networks of production, not the sandbox, keep their defaults.
_SERVER_SETTINGS: Final = frozenset(
    {
        *("base_path", "public_url", "workers", "control_token", "allowed_hosts", "log_level"),
        *("rate_limit", "rate_limit_per_minute", "callback_hosts", "callback_rewrites"),
        *("callback_headers", "production", "networks", "routes"),
    }
)


# The last line names this many cases.
_MAX_NAMED_CASES: Final = 3
_PARTS: Final = {"answer": "answer", "later": "second answer", "callback": "callback"}
_SHOWN_FIELDS: Final = ("case", "part", "field", "ours", "theirs")
# The fields of a request that are shown before it is sent.
_LISTED: Final = ("trans_type", "amount", "nw", "customer_number", "account_number", "service_id")


class _Other(NamedTuple):
    """The other side. receive_at: the address of a tunnel to our inbox, or None."""

    url: str
    client_key: str
    secret_key: str
    receive_at: str | None
    port: int
    timeout: float

    @property
    def is_local(self) -> bool:
        return is_loopback(urlsplit(self.url).hostname or "")


@click.command()
@click.argument("url", callback=check_address)
@credential_options
@click.option(
    "--service-id",
    "service_ids",
    type=Integer(1),
    multiple=True,
    help="Use this service; may be repeated. By default each case has a new one.",
)
@click.option("--yes", is_flag=True, help="Allow requests to another machine.")
@click.option(
    "--receive-at",
    callback=check_address,
    help="The address of a tunnel to --port of this machine, for callbacks from other machines.",
)
@click.option(
    "--port", type=Integer(0, 65535), default=0, help="Port for callbacks; 0 is a free one."
)
@timeout_option("The longest time to wait for callbacks, and for final statuses.")
@settings_options(exit_code=2)
@click.pass_obj
def compare(
    obj: Mapping[str, object],
    /,
    *,
    service_ids: tuple[int, ...],
    yes: bool,
    loaded: LoadedSettings,
    **options: Any,
) -> None:
    """Compare another implementation with sandbox_sim.

    Sends samples of every operation to both, compares the answers and callbacks field by field,
    and names the settings that would remove differences. --config and --set change our side.

    Exit codes: 0 no difference, 1 differences, 2 the comparison was not possible.
    """
    other = _Other(**options)
    other = other._replace(url=other.url.rstrip("/"))
    run = 100_000 + int(RandomIds().record_id()[-8:], 16) % 900_000
    chosen = plan(run, service_ids)
    if not other.is_local and not yes:
        click.echo("\n".join(_request_lines(other.url, chosen)))
        raise WrongUsage("nothing was sent; use --yes to send these requests")
    try:
        own = _own_settings(loaded.settings, other)
        findings, remarks = asyncio.run(_compare(other, own, chosen))
    except NoHttpAnswer as error:
        raise WrongUsage(str(error)) from None
    if obj["as_json"]:
        click.echo(json.dumps(_document(other.url, chosen, findings, remarks), indent=2))
    else:
        click.echo("\n".join(_report(other.url, chosen, findings, remarks)))
    raise SystemExit(1 if findings.differences else 0)


def _own_settings(settings: Settings, other: _Other) -> Settings:
    """Our settings with the credentials of the other side, so that its signatures are checked."""
    defaults = Settings()
    credentials = Credentials(client_key=other.client_key, secret_key=SecretStr(other.secret_key))
    update: dict[str, Any] = {name: getattr(defaults, name) for name in _SERVER_SETTINGS}
    return settings.model_copy(update={**update, "credentials": [credentials]})


async def _compare(other: _Other, settings: Settings, chosen: Plan) -> tuple[Findings, list[str]]:
    # The report has what our gateways log. Without a handler, Python writes warnings to stderr.
    logging.getLogger("sandbox_sim").addHandler(logging.NullHandler())
    receives = other.is_local or other.receive_at is not None
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(client_session())
        own = await stack.enter_async_context(own_gateway(settings, session, port=other.port))
        inbox = own.inbox("theirs", other.receive_at or "") if receives else None
        auth = (other.client_key, other.secret_key)
        side = Side(session, other.url, auth, SystemClock(), inbox)
        await _check_access(side, chosen)
        theirs = await observe_other(chosen, side, own, receives=receives, timeout_s=other.timeout)
        unfinished: Sequence[str] = ()
        if other.timeout < own.longest_s:
            theirs, unfinished = without_unfinished(chosen, theirs)
        ours = await own.observe(chosen)

        async def run(changed: Mapping[str, Any], partial_plan: Plan) -> Observations:
            async with own_gateway(settings.model_copy(update=changed), session) as own_again:
                return await own_again.observe(partial_plan)

        findings = await find(chosen, settings, ours, theirs, run)
    remarks = [_unfinished_remark(unfinished, other.timeout, own.longest_s)] if unfinished else []
    if not receives:
        text = "callbacks: the other side cannot send them to this machine; use --receive-at"
        remarks.append(text)
    return findings, remarks


def _unfinished_remark(cases: Sequence[str], timeout_s: float, longest_s: float) -> str:
    """Why what the other side did not end in these cases is not compared."""
    return (
        f"{_count_cases(cases)}: the other side did not end them within {timeout_s:g} s, and ours "
        f"takes up to {longest_s:g} s; use a longer --timeout"
    )


async def _check_access(side: Side, chosen: Plan) -> None:
    """Raise `NoHttpAnswer` if the other side refuses the credentials."""
    for each in chosen.cases:
        if each.case.name == "08-balance-success":
            reply = await side.first(each)
            if reply.status in {401, 403}:
                raise NoHttpAnswer(
                    f"the other side refuses the credentials or the service: HTTP {reply.status}"
                )


def _request_lines(url: str, plan: Plan) -> Iterator[str]:
    """The requests for the other side, one on each line."""
    sent = sum(2 if each.then else 1 for each in plan.cases)
    yield f"{sent} requests would go to {printable(url)}:"
    rows = []
    for each in plan.cases:
        request = fill(each.request, {})
        words = [str(request[n]) for n in _LISTED if request.get(n) not in (None, "")]
        recipients = request.get("recipients")
        words += [f"{len(recipients)} recipients"] if isinstance(recipients, list) else []
        rows.append((each.case.name, each.case.path, " ".join(words)))
        if each.case.afterwards is not None:
            rows.append(("", each.case.afterwards.path, "afterwards"))
    yield from table(("case", "path", "request"), rows)
    yield "With production credentials (mode P), these are real payments and messages."


def _report(url: str, plan: Plan, findings: Findings, remarks: Sequence[str]) -> Iterator[str]:
    """The report."""
    yield f"{printable(url)}: {len(plan.cases)} cases compared"
    titles = {each.case.name: each.case.title for each in plan.cases}
    for name, of_case in groupby(findings.differences, lambda each: each.case):
        yield ""
        yield click.style(f"{name}: {titles[name]}", bold=True)
        rows = [_row(each, findings) for each in of_case]
        for line in table(("where", "field", "here", "there", "rule", "setting"), rows):
            yield f"  {line}"
    yield from _settings_lines(findings)
    if plan.left_out or remarks:
        yield ""
        yield click.style("not compared", bold=True)
        yield from (f"  {each.name}: {each.why}" for each in plan.left_out)
        yield from (f"  {each}" for each in remarks)
    yield ""
    yield _last_line(findings)


def _last_line(findings: Findings) -> str:
    """How much differs, and the settings of ours that would change it."""
    found = len(findings.differences)
    if not found:
        return "no difference"
    cases = list(dict.fromkeys(each.case for each in findings.differences))
    fields = "1 field differs" if found == 1 else f"{found} fields differ"
    summary = f"{fields} in {_count_cases(cases)}"
    if not findings.settings:
        return f"{summary}; no setting of sandbox_sim changes this"
    values = ", ".join(f"{name} = {as_toml(value)}" for name, value in findings.settings.items())
    unexplained = found - len(findings.causes)
    exception = f", except for {unexplained} of the fields" if unexplained else ""
    return f"{summary}; these settings would remove the differences{exception}: {values}"


def _count_cases(cases: Sequence[str]) -> str:
    """How many cases there are, and the names of the first ones."""
    named = ", ".join(cases[:_MAX_NAMED_CASES])
    more = len(cases) - _MAX_NAMED_CASES
    named += f" and {more} more" if more > 0 else ""
    return f"{len(cases)} {'case' if len(cases) == 1 else 'cases'} ({named})"


def _settings_lines(findings: Findings) -> Iterator[str]:
    if not findings.settings:
        return
    yield ""
    yield click.style("settings that would remove the differences", bold=True)
    for name, value in findings.settings.items():
        words = "; ".join(filter(None, (decision_on(name), REMARKS.get(name))))
        yield f"  {name} = {as_toml(value)}  # {words}"


def _row(each: Difference, findings: Findings) -> Sequence[str]:
    cause = findings.causes.get(each)
    return (
        _PARTS[each.part],
        each.field,
        shorten_cell(each.ours),
        shorten_cell(each.theirs),
        ", ".join(_rules(each, findings)) or "-",
        "-" if cause is None else cause.name,
    )


def _rules(each: Difference, findings: Findings) -> Sequence[str]:
    """The rule that decided our answer, and the decision of the setting that would change it."""
    cause = findings.causes.get(each)
    named = (each.rule, decision_on(cause.name) if cause else "")
    return [*dict.fromkeys(filter(None, named))]


def _document(
    url: str, plan: Plan, findings: Findings, remarks: Sequence[str]
) -> Mapping[str, object]:
    """The whole report as JSON."""
    return {
        "url": url,
        "agrees": not findings.differences,
        "cases": len(plan.cases),
        "settings": dict(findings.settings),
        "differences": [
            {
                **{name: getattr(each, name) for name in _SHOWN_FIELDS},
                "rules": list(_rules(each, findings)),
                "setting": findings.causes[each].name if each in findings.causes else None,
            }
            for each in findings.differences
        ],
        "not_compared": [
            *({"case": each.name, "why": each.why} for each in plan.left_out),
            *({"case": None, "why": each} for each in remarks),
        ],
    }
