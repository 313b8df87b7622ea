"""`sandbox-sim overrides add | list | clear`: forced outcomes of requests."""

from collections.abc import Mapping

import click

from sandbox_sim.cli.matching import Pairs, pairs, value_of
from sandbox_sim.cli.record_views import status_in_words
from sandbox_sim.cli.session import Session, asks
from sandbox_sim.cli.user_rules import UserRule, add_clear, add_list, added, rule_options


@click.group()
def overrides() -> None:
    """Forced outcomes of requests."""


def _callback_behaviour(
    context: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, object]:
    """Return the `callback` of the control API from texts such as `drop` and `duplicate=2`."""
    named: Pairs = pairs(context, param, [t if "=" in t else f"{t}=true" for t in texts])
    return {name: value_of(text, number=True) for name, text in named}


@overrides.command()
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
    help="The code of the answer, such as 402 or 500.",
)
@click.option("--delay-ms", type=int, help="Settle this much later, in gateway time.")
@click.option(
    "--callback",
    multiple=True,
    metavar="NAME[=VALUE]",
    callback=_callback_behaviour,
    help="drop, duplicate=2, delay_ms=500, reorder, bad_signature, profile=flat or "
    "before_response; may be repeated.",
)
@asks
@rule_options
def add(
    session: Session,
    /,
    status: str | None,
    response_code: str | None,
    delay_ms: int | None,
    callback: Mapping[str, object],
    rule: Mapping[str, object],
) -> None:
    """Add an override.

    If several fit a request, one with --times decides, the oldest first; then the newest of those
    without a limit.
    """
    outcome = {"status": status, "response_code": response_code}
    asked: dict[str, object] = {
        "outcome": {name: value for name, value in outcome.items() if value is not None},
        "callback": callback,
    }
    if delay_ms is not None:
        asked["delay_ms"] = delay_ms
    if not any(asked.values()):
        raise click.UsageError("give --status, --response-code, --delay-ms or --callback")
    answer = session.gateway.control("POST", "overrides", body={**rule, **asked})
    session.show(answer, added("override", _effect_in_words))


def _effect_in_words(rule: UserRule) -> str:
    outcome = rule["outcome"]
    words = [status_in_words(outcome["status"])] if "status" in outcome else []
    words += [f"code {outcome['response_code']}"] if "response_code" in outcome else []
    words += [f"settled {rule['delay_ms']} ms later"] if rule["delay_ms"] else []
    words += [
        f"callback {name}" if value is True else f"callback {name} {value}"
        for name, value in rule["callback"].items()
    ]
    return ", ".join(words)


add_list(overrides, "overrides", _effect_in_words)
add_clear(overrides, "overrides")
