"""What the commands `overrides` and `faults` share: the options of the match, list and clear."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import click

from sandbox_sim.cli.commands.records import deleted
from sandbox_sim.cli.search_commands import more, page_options, page_query, service_query
from sandbox_sim.cli.session import Session, asks
from sandbox_sim.cli.tables import printable, table

UserRule = Mapping[str, Any]

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
    "min_amount": click.option("--min-amount", type=float, help="Only from this amount."),
    "max_amount": click.option("--max-amount", type=float, help="Only up to this amount."),
}


def rule_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the match and `--times`; the command gets them as the body `rule`."""

    @functools.wraps(command)
    def run(session: Session, /, times: int | None, once: bool, **given: Any) -> None:
        if once and times is not None:
            raise click.UsageError("--once is --times 1: give one of them")
        match = {name: given.pop(name) for name in _MATCH}
        rule: dict[str, object] = {"match": _match(match)}
        if once or times is not None:
            rule["times"] = 1 if once else times
        command(session, rule=rule, **given)

    once = click.option(
        "--once", is_flag=True, help="Apply to the next such request only; the same as --times 1."
    )
    times = click.option(
        "--times", type=int, help="How many requests it applies to; without it, all."
    )
    decorated = once(times(run))
    for option in reversed(_MATCH.values()):
        decorated = option(decorated)
    return decorated


def _match(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `match` of the control API."""
    match = {name: value for name, value in given.items() if value is not None}
    bounds = {end: match.pop(f"{end}_amount") for end in ("min", "max") if f"{end}_amount" in match}
    if bounds and "amount" in match:
        raise click.UsageError("--amount is one amount: leave --min-amount and --max-amount out")
    return {**match, "amount": bounds} if bounds else match


def add_list(group: click.Group, plural: str, does: Callable[[UserRule], str]) -> None:
    """Add `list`, newest first. does: returns the effect of a rule in words."""

    @group.command("list", help=f"List {plural}, newest first, with those that are used up.")
    @click.option("--service-id", type=int, help="Only those for this service.")
    @page_options
    @asks
    def _list(session: Session, /, service_id: int | None, limit: int, after: str | None) -> None:
        query = page_query(limit, after, *service_query(service_id))
        answer = session.gateway.control("GET", plural, query=query)
        session.show(answer, lambda document: _lines(document, plural, does))


def _lines(
    document: Mapping[str, Any], plural: str, does: Callable[[UserRule], str]
) -> Iterator[str]:
    rules = document[plural]
    if not rules:
        yield f"no {plural}"
        return
    rows = [
        (rule["id"], match_in_words(rule["match"]), does(rule), used_in_words(rule))
        for rule in rules
    ]
    yield from table(("id", "for", "does", "used"), rows, shorten=False)
    yield from more(document)


def add_clear(group: click.Group, plural: str) -> None:
    """Add `clear`, which removes one, those of a service, or all."""

    @group.command("clear", help=f"Remove one of the {plural}, those of a service, or all.")
    @click.argument("rule_id", metavar="[ID]", required=False)
    @click.option("--service-id", type=int, help="Only those for this service.")
    @asks
    def _clear(session: Session, /, rule_id: str | None, service_id: int | None) -> None:
        if rule_id is not None and service_id is not None:
            raise click.UsageError("give the ID of one, or --service-id, or neither for all")
        path = (plural,) if rule_id is None else (plural, rule_id)
        session.show(
            session.gateway.control("DELETE", *path, query=service_query(service_id)), deleted
        )


def match_in_words(match: Mapping[str, Any]) -> str:
    """`collect, service_id 55, amount from 5 to 10`; `any request`."""
    words = [match["operation"]] if "operation" in match else []
    plain = ("service_id", "transaction_id", "customer_number", "nw")
    words += [f"{name} {match[name]}" for name in plain if name in match]
    bounds = match.get("amount", {})
    if bounds and bounds.get("min") == bounds.get("max"):
        words.append(f"amount {bounds['min']:.15g}")
    elif bounds:
        ends = (("from", "min"), ("to", "max"))
        said = [f"{word} {bounds[end]:.15g}" for word, end in ends if end in bounds]
        words.append(" ".join(("amount", *said)))
    return ", ".join(words) or "any request"


def used_in_words(rule: UserRule) -> str:
    """`2 of 3`, or `2` if it applies without limit."""
    return f"{rule['used']}" if rule["times"] is None else f"{rule['used']} of {rule['times']}"


def added(noun: str, does: Callable[[UserRule], str]) -> Callable[[UserRule], Iterator[str]]:
    """Return the function that makes the line about a rule that was added."""

    def lines(rule: UserRule) -> Iterator[str]:
        times = rule["times"]
        often = "" if times is None else ", once" if times == 1 else f", {times} times"
        words = f"{match_in_words(rule['match'])}: {does(rule)}{often}"
        yield printable(f"{noun} {rule['id']} for {words}")

    return lines
