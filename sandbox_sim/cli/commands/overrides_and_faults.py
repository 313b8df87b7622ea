"""`sandbox-sim overrides | faults add | list | clear`: forced outcomes and faults."""

import functools
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final

import click

from sandbox_sim.cli import tables
from sandbox_sim.cli.client import Session, with_session
from sandbox_sim.cli.options import (
    Command,
    Query,
    list_options,
    parse_pairs,
    parse_value,
    with_options,
)
from sandbox_sim.cli.record_commands import RecordView
from sandbox_sim.web.pages.rule_words import fault_words, match_words, override_words

UserRule = Mapping[str, Any]

_LOST_ANSWERS: Final = {
    "connection_reset": "Reset the connection instead of answering.",
    "empty_response": "Close the connection without sending a byte.",
    "malformed_json": "Cut off the body of the answer.",
    "timeout": "Do not answer; close the connection after five minutes.",
}
_LOST_ANSWER_OPTIONS: Final = [
    click.option(f"--{name.replace('_', '-')}", name, is_flag=True, help=says)
    for name, says in _LOST_ANSWERS.items()
]
_MATCH: Final = {
    "service_id": click.option("--service-id", type=int, help="Only for this service."),
    "operation": click.option("--operation", help="Only for this operation, such as collect."),
    "transaction_id": click.option("--transaction-id", help="Only for this transaction_id."),
    "customer_number": click.option(
        "--customer-number",
        help="Only for this number, in local or 233 form, or this bill account.",
    ),
    "nw": click.option("--nw", help="Only for this network, bank or bill product."),
    "amount": click.option("--amount", type=float, help="Only for this amount."),
    "min_amount": click.option("--min-amount", type=float, help="Only for this amount or more."),
    "max_amount": click.option("--max-amount", type=float, help="Only for this amount or less."),
}
_RULE_OPTIONS: Final = (
    *_MATCH.values(),
    click.option(
        "--once", is_flag=True, help="Only for the next matching request; the same as --times 1."
    ),
    click.option("--times", type=int, help="Only for this many matching requests; by default all."),
)


def _rule_options(command: Command) -> Command:
    """Add the options of a match and `--times`; the command gets them as `rule`, a request body."""

    @functools.wraps(command)
    def run(session: Session, /, times: int | None, once: bool, **given: Any) -> None:
        if once and times is not None:
            raise click.UsageError("--once is the same as --times 1: give one of them")
        match = {name: given.pop(name) for name in _MATCH}
        body = {"match": _match_body(match), "times": 1 if once else times}
        command(session, rule=body, **given)

    return with_options(run, _RULE_OPTIONS)


def _match_body(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field `match` of the control API."""
    match = {name: value for name, value in given.items() if value is not None}
    bounds = {end: match.pop(f"{end}_amount") for end in ("min", "max") if f"{end}_amount" in match}
    if bounds and "amount" in match:
        raise click.UsageError("--amount cannot be combined with --min-amount and --max-amount")
    return {**match, "amount": bounds} if bounds else match


def _describe_use(rule: UserRule) -> str:
    """How often a rule applied: `2 of 3`, or `2` if it has no limit."""
    return f"{rule['used']}" if rule["times"] is None else f"{rule['used']} of {rule['times']}"


@click.group()
def overrides() -> None:
    """Forced outcomes of requests."""


def _parse_callback(
    context: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, object]:
    """Return the field `callback` of the control API for texts such as `drop`, `duplicate=2`."""
    parsed = parse_pairs(context, param, [t if "=" in t else f"{t}=true" for t in texts])
    return {name: parse_value(text, number=True) for name, text in parsed}


@overrides.command("add")
@click.option(
    "--status",
    help="The status that payments get: 000, 001, 003, or 002 to stay pending; or successful, "
    "failed, cancelled, pending.",
)
@click.option(
    "--response-code",
    "--code",
    "response_code",
    metavar="CODE",
    help="The response_code of the answer, such as 402 or 500.",
)
@click.option("--delay-ms", type=int, help="Settle the payment this much later, in gateway time.")
@click.option(
    "--callback",
    multiple=True,
    metavar="NAME[=VALUE]",
    callback=_parse_callback,
    help="drop, duplicate=2, delay_ms=500, reorder, bad_signature, profile=flat or "
    "before_response; may be repeated.",
)
@with_session
@_rule_options
def add_override(
    session: Session,
    /,
    status: str | None,
    response_code: str | None,
    delay_ms: int | None,
    callback: Mapping[str, object],
    rule: Mapping[str, object],
) -> None:
    """Add an override.

    If several match a request, the oldest with --times applies; without such, the newest.
    """
    outcome = {"status": status, "response_code": response_code}
    effects: dict[str, object] = {
        "outcome": {name: value for name, value in outcome.items() if value is not None},
        "callback": callback,
    }
    if not any((*effects.values(), delay_ms)):
        raise click.UsageError("give --status, --response-code, --delay-ms or --callback")
    session.request(
        "POST",
        "overrides",
        body={**rule, **effects, "delay_ms": delay_ms},
        lines=functools.partial(_added_line, "override", override_words),
    )


def _parse_latency(
    _context: click.Context, _param: click.Parameter, text: str | None
) -> dict[str, object] | None:
    """The latency of a fault, from a text such as `200` or `50-300`."""
    match text and _parse_numbers(text, "-"):
        case None:
            return None
        case [fixed]:
            return {"fixed_ms": fixed}
        case [low, high]:
            return {"uniform_ms": [low, high]}
    raise click.BadParameter(f"{text} is not a latency in milliseconds, such as 200 or 50-300")


def _parse_lognormal(
    _context: click.Context, _param: click.Parameter, text: str | None
) -> dict[str, object] | None:
    """The random latency of a fault, from a text such as `90,0.4`."""
    match text and _parse_numbers(text, ","):
        case None:
            return None
        case [median, sigma]:
            return {"lognormal_ms": {"median": median, "sigma": sigma}}
    raise click.BadParameter(f"{text} is not a median and a sigma, such as 90,0.4")


def _parse_numbers(text: str, separator: str) -> list[float]:
    """The numbers in a text; an empty list if a part is not a number."""
    try:
        return [float(part) for part in text.split(separator)]
    except ValueError:
        return []


@click.group()
def faults() -> None:
    """Delayed, refused or unanswered requests."""


@faults.command("add")
@click.option("--status", type=int, help="Refuse the request with 429, 500, 502 or 503.")
@click.option(
    "--retry-after", type=int, metavar="SECONDS", help="Retry-After of a 429; by default 1."
)
@click.option(
    "--latency",
    metavar="MS",
    callback=_parse_latency,
    help="Delay the answer by this time, such as 200, or a random one, such as 50-300.",
)
@click.option(
    "--latency-lognormal",
    metavar="MEDIAN,SIGMA",
    callback=_parse_lognormal,
    help="Delay the answer by a random time with this median, such as 90,0.4.",
)
@functools.partial(with_options, options=_LOST_ANSWER_OPTIONS)
@click.option(
    "--not-processed", is_flag=True, help="With a lost answer: also do not process the request."
)
@click.option("--probability", type=float, help="The probability that it applies, such as 0.1.")
@click.option("--every", type=int, metavar="N", help="Only for every N-th matching request.")
@with_session
@_rule_options
def add_fault(session: Session, /, rule: Mapping[str, object], **given: Any) -> None:
    """Add a fault.

    Latencies add up. If several other faults match a request, the oldest with --times applies;
    without such, the newest.
    """
    body = {**rule, **_fault_body(given)}
    lines = functools.partial(_added_line, "fault", fault_words)
    session.request("POST", "faults", body=body, lines=lines)


def _fault_body(given: Mapping[str, Any]) -> dict[str, object]:
    """Return the request body. Raises `UsageError` unless exactly one fault is given."""
    faults = [
        ("status", given["status"]),
        ("latency", given["latency"]),
        ("latency", given["latency_lognormal"]),
        *((name, given[name] or None) for name in _LOST_ANSWERS),
    ]
    chosen = [(name, value) for name, value in faults if value is not None]
    if len(chosen) != 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in _LOST_ANSWERS)
        raise click.UsageError(f"give one of --status, --latency, --latency-lognormal, {names}")
    return {
        "fault": dict(chosen),
        "retry_after_s": given["retry_after"],
        "processed": False if given["not_processed"] else None,
        "probability": given["probability"],
        "every": given["every"],
    }


def _added_line(noun: str, describe: Callable[[UserRule], str], rule: UserRule) -> Iterator[str]:
    """The output line for an added rule."""
    times = rule["times"]
    repetition = "" if times is None else ", once" if times == 1 else f", {times} times"
    words = f"{match_words(rule['match'])}: {describe(rule)}{repetition}"
    yield f"{noun} {rule['id']} for {words}"


def _add_commands(group: click.Group, plural: str, describe: Callable[[UserRule], str]) -> None:
    """Add the commands `list` and `clear` to a group."""
    columns: tables.Columns = {
        "id": itemgetter("id"),
        "for": lambda rule: match_words(rule["match"]),
        "does": describe,
        "used": _describe_use,
    }
    kind = RecordView(plural, plural, (), columns, full_cells=True)

    @group.command("list", help=f"List {plural}, newest first, also those that are used up.")
    @list_options(where=False)
    @click.option("--service-id", type=int, help="Only those for this service.")
    @with_session
    def _list(session: Session, query: Query, service_id: int | None) -> None:
        query = [*query, ("service_id", service_id)]
        session.request("GET", plural, query=query, lines=kind.page)

    @group.command("clear", help=f"Delete one of the {plural}, those of a service, or all.")
    @click.argument("rule_id", metavar="[ID]", required=False)
    @click.option("--service-id", type=int, help="Only those for this service.")
    @with_session
    def _clear(session: Session, rule_id: str | None, service_id: int | None) -> None:
        if rule_id is not None and service_id is not None:
            raise click.UsageError("give an ID or --service-id; without both, all are deleted")
        path = (plural,) if rule_id is None else (plural, rule_id)
        query = [("service_id", service_id)]
        session.request("DELETE", *path, query=query, lines=tables.deleted_line)


_add_commands(overrides, "overrides", override_words)
_add_commands(faults, "faults", fault_words)
