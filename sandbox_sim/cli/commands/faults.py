"""`sandbox-sim faults add | list | clear`: requests that fail on purpose."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from sandbox_sim.cli.session import Session, asks
from sandbox_sim.cli.user_rules import UserRule, add_clear, add_list, added, rule_options

C = TypeVar("C", bound=Callable[..., Any])

_LOST_ANSWERS: Final = {
    "connection_reset": "Reset the connection instead of answering.",
    "empty_response": "Close the connection without a byte.",
    "malformed_json": "Cut off the body of the answer.",
    "timeout": "Do not answer, for five minutes.",
}


def _latency(
    _context: click.Context, _param: click.Parameter, text: str | None
) -> dict[str, object] | None:
    """`200`, or `50-300`."""
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split("-")]
    except ValueError:
        numbers = []
    match numbers:
        case [fixed]:
            return {"fixed_ms": fixed}
        case [low, high]:
            return {"uniform_ms": [low, high]}
    raise click.BadParameter(f"{text} is no latency such as 200 or 50-300")


def _lognormal(
    _context: click.Context, _param: click.Parameter, text: str | None
) -> dict[str, object] | None:
    """`90,0.4`."""
    if text is None:
        return None
    try:
        median, sigma = map(float, text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text} is no median and sigma such as 90,0.4") from None
    return {"lognormal_ms": {"median": median, "sigma": sigma}}


@click.group()
def faults() -> None:
    """Requests that fail on purpose. They are late, refused, or without an answer."""


def _lost_answer_options(command: C) -> C:
    """Add a flag for each way to lose an answer."""
    for name, says in reversed(_LOST_ANSWERS.items()):
        command = click.option(f"--{name.replace('_', '-')}", name, is_flag=True, help=says)(
            command
        )
    return command


@faults.command()
@click.option("--status", type=int, help="Refuse the request with 429, 500, 502 or 503.")
@click.option(
    "--retry-after", type=int, metavar="SECONDS", help="The Retry-After of a 429; by default 1."
)
@click.option(
    "--latency",
    metavar="MS",
    callback=_latency,
    help="Answer this much later, such as 200, or between 50-300.",
)
@click.option(
    "--latency-lognormal",
    metavar="MEDIAN,SIGMA",
    callback=_lognormal,
    help="Answer later by a random time with this median, such as 90,0.4.",
)
@_lost_answer_options
@click.option(
    "--not-processed",
    is_flag=True,
    help="Where the answer is lost, do not process the request either.",
)
@click.option("--probability", type=float, help="Apply by chance, such as 0.1.")
@click.option("--every", type=int, metavar="N", help="Apply to each N-th of these requests only.")
@asks
@rule_options
def add(session: Session, /, rule: Mapping[str, object], **given: Any) -> None:
    """Add a fault.

    Latencies add up. Of the other faults that fit, one with --times decides, the oldest first; then
    the newest of those without a limit.
    """
    answer = session.gateway.control("POST", "faults", body={**rule, **_body(given)})
    session.show(answer, added("fault", _does))


def _body(given: Mapping[str, Any]) -> dict[str, object]:
    """Return the body of the control API. Raises `UsageError` unless there is exactly one fault."""
    named = [
        ("status", given["status"]),
        ("latency", given["latency"]),
        ("latency", given["latency_lognormal"]),
        *((name, given[name] or None) for name in _LOST_ANSWERS),
    ]
    chosen = [(name, value) for name, value in named if value is not None]
    if len(chosen) != 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in _LOST_ANSWERS)
        raise click.UsageError(f"give one of --status, --latency, --latency-lognormal, {names}")
    further = {
        "retry_after_s": given["retry_after"],
        "processed": False if given["not_processed"] else None,
        "probability": given["probability"],
        "every": given["every"],
    }
    said = {name: value for name, value in further.items() if value is not None}
    return {"fault": dict(chosen), **said}


def _does(rule: UserRule) -> str:
    ((name, value),) = rule["fault"].items()
    words = [name if value is True else f"{name} {_value(value)}"]
    words += [f"Retry-After {rule['retry_after_s']}"] if "retry_after_s" in rule else []
    words += [] if rule.get("processed", True) else ["not processed"]
    words += [f"every {rule['every']}"] if rule["every"] > 1 else []
    words += [f"probability {rule['probability']:g}"] if rule["probability"] < 1 else []
    return ", ".join(words)


def _value(value: Any) -> str:
    match value:
        case {"fixed_ms": fixed}:
            return f"{fixed:g} ms"
        case {"uniform_ms": [low, high]}:
            return f"{low:g} to {high:g} ms"
        case {"lognormal_ms": {"median": median, "sigma": sigma}}:
            return f"lognormal, median {median:g} ms, sigma {sigma:g}"
    return str(value)


add_list(faults, "faults", _does)
add_clear(faults, "faults")
