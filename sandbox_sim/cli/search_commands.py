"""The commands that every kind of record has: `list`, `show`, `find` and `wait`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

import click

from sandbox_sim.cli import tables
from sandbox_sim.cli.client import REQUEST_TIMEOUT_S
from sandbox_sim.cli.matching import Pairs, filtered, given, matched, matching, where_option
from sandbox_sim.cli.record_views import Kind
from sandbox_sim.cli.session import Session, asks
from sandbox_sim.domain.timestamps import iso

C = TypeVar("C", bound=Callable[..., Any])
Query = Sequence[tuple[str, object]]

# The control API has the same bounds.
LIMIT_OF_LISTS: Final = 100
_SEARCH: Final = click.IntRange(1, 1000)


def page_options(command: C) -> C:
    """Add the options `--limit` and `--after`."""
    after = click.option(
        "--after",
        metavar="ID",
        help="Show the records after this one, the last of the page before.",
    )
    limit = click.option(
        "--limit",
        type=click.IntRange(1, LIMIT_OF_LISTS),
        default=20,
        show_default=True,
        help="How many records at most.",
    )
    return limit(after(command))


def wait_options(command: C) -> C:
    """Add the options `--count` and `--timeout`."""
    timeout = click.option(
        "--timeout",
        type=click.FloatRange(0, 600),
        default=5,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait; the exit code is 1 when the time is over.",
    )
    count = click.option(
        "--count", type=_SEARCH, default=1, show_default=True, help="How many records to wait for."
    )
    return count(timeout(command))


def page_query(limit: int, after: str | None, *filters: tuple[str, object]) -> Query:
    """Return the query of a list."""
    start = [] if after is None else [("after", after)]
    return [*filters, ("limit", limit), *start]


def service_query(service_id: int | None) -> Query:
    """Return the filter for one service; empty for all services."""
    return [] if service_id is None else [("service_id", service_id)]


def more(document: Mapping[str, Any]) -> Iterator[str]:
    """The line below a page that is not the last one."""
    if document["next"] is not None:
        yield f"more: --after {document['next']}"


def add_list(group: click.Group, kind: Kind) -> None:
    """Add `list`, which shows a page of records, newest first."""

    @group.command("list", help=f"List {kind.words}, newest first, one a line.")
    @filtered([*kind.filters, *kind.of_lists])
    @where_option
    @page_options
    @asks
    def _list(
        session: Session, /, limit: int, after: str | None, where: Pairs, **filters: str | None
    ) -> None:
        query = page_query(limit, after, *given(filters), *where)
        answer = session.gateway.control("GET", kind.plural, query=query)

        def lines(document: Mapping[str, Any]) -> Iterator[str]:
            yield from _page(kind, document)
            if filters.get("state") == "failed" and not document[kind.plural]:
                yield from _retrying(session, matched({**filters, "state": "retrying"}, where, {}))
            yield from _both_times(session)

        session.show(answer, lines)


def _retrying(session: Session, match: Mapping[str, object]) -> Iterator[str]:
    """The line that some callbacks are retried: the user looks for them most likely."""
    answer = session.gateway.control("POST", "callbacks", "count", body={"match": match})
    count = json.loads(answer.text)["count"]
    if count:
        who = "1 callback is" if count == 1 else f"{count} callbacks are"
        yield f"{who} retrying: `sandbox-sim callbacks list --unacknowledged`"


def _both_times(session: Session) -> Iterator[str]:
    """The line below a list whose times are not the machine's: gateway time, and the machine's."""
    answer = session.gateway.control("GET", "clock")
    clock = json.loads(answer.text)
    if clock["frozen"] or clock["shift_s"]:
        machine = parsedate_to_datetime(answer.headers["date"])
        yield f"gateway time is {clock['now']}, the machine's time is {iso(machine)}"


def _page(kind: Kind, document: Mapping[str, Any]) -> Iterator[str]:
    yield from kind.lines(document[kind.plural])
    yield from more(document)
    if document.get("dropped"):
        yield f"{document['dropped']} older requests were removed to make room"


def add_show(group: click.Group, kind: Kind, metavar: str, named: str = "") -> None:
    """Add `show`, which shows every field of one record. named: a sentence about its ids."""
    text = f"Show one of the {kind.words} with all its fields.\n\n{named}".strip()

    @group.command("show", help=text)
    @click.argument("name", metavar=metavar)
    @asks
    def _show(session: Session, name: str) -> None:
        session.show(session.gateway.control("GET", kind.plural, name), tables.outline)


def add_find(group: click.Group, kind: Kind) -> None:
    """Add `find`, which shows the records that match."""

    @group.command("find", help=f"Find {kind.words} by any field; a dot reaches inside a body.")
    @filtered(kind.filters)
    @matching
    @click.option(
        "--limit",
        "--count",
        "limit",
        type=_SEARCH,
        default=100,
        show_default=True,
        help="How many records at most.",
    )
    @asks
    def _find(
        session: Session,
        /,
        match: Pairs,
        exactly: Mapping[str, object],
        limit: int,
        **filters: str | None,
    ) -> None:
        body = {"match": matched(filters, match, exactly), "limit": limit}
        answer = session.gateway.control("POST", kind.plural, "find", body=body)
        session.show(answer, lambda document: _found(kind, document))


def _found(kind: Kind, document: Mapping[str, Any]) -> Iterator[str]:
    yield from kind.lines(document[kind.plural])
    if document["next"] is not None:
        yield "more may match: --limit"


def add_wait(group: click.Group, kind: Kind) -> None:
    """Add `wait`, which waits until enough records match."""

    @group.command("wait", help=f"Wait until {kind.words} match, and show them.")
    @filtered(kind.filters)
    @matching
    @wait_options
    @asks
    def _wait(
        session: Session,
        /,
        match: Pairs,
        exactly: Mapping[str, object],
        count: int,
        timeout: float,
        **filters: str | None,
    ) -> None:
        body = wait_body(matched(filters, match, exactly), count, timeout)
        timeout_s = timeout + REQUEST_TIMEOUT_S
        answer = session.gateway.control(
            "POST", kind.plural, "wait", body=body, timeout_s=timeout_s
        )
        session.show(answer, lambda document: kind.lines(document[kind.plural]))


def wait_body(match: Mapping[str, object], count: int, timeout: float) -> dict[str, object]:
    """Return the body of a `wait`."""
    return {"match": match, "count": count, "timeout_s": timeout}
