"""`sandbox-sim requests | transactions | callbacks | sms`: the records of the gateway."""

import getpass
import json
from collections.abc import Iterator
from typing import Any, Final

import click

from sandbox_sim.cli import tables
from sandbox_sim.cli.address_option import address
from sandbox_sim.cli.client import Failure, Refused
from sandbox_sim.cli.matching import Pairs, filtered, given, where_option
from sandbox_sim.cli.record_views import (
    CALLBACKS,
    MESSAGES,
    REQUESTS,
    TRANSACTIONS,
    status_in_words,
)
from sandbox_sim.cli.search_commands import (
    LIMIT_OF_LISTS,
    add_find,
    add_list,
    add_show,
    add_wait,
    page_query,
    service_query,
)
from sandbox_sim.cli.session import Session, asks
from sandbox_sim.domain.payments.transactions import STATUS_WORDS


@click.group()
def requests() -> None:
    """Requests with their answer, rule and reason."""


add_list(requests, REQUESTS)
add_show(requests, REQUESTS, "ID")
add_find(requests, REQUESTS)
add_wait(requests, REQUESTS)


@requests.command()
@click.option("--service-id", type=int, help="Only the requests of this service.")
@asks
def clear(session: Session, service_id: int | None) -> None:
    """Empty the journal of requests; those of mode P stay."""
    query = service_query(service_id)
    session.show(session.gateway.control("DELETE", "requests", query=query), deleted)


def deleted(document: dict[str, Any]) -> Iterator[str]:
    """The line that says how many were deleted."""
    yield f"{document['deleted']} deleted"


def _ids(_context: click.Context, param: click.Parameter, ids: tuple[str, ...]) -> tuple[str, ...]:
    """An id, and before it the service where it is given."""
    if len(ids) > 2:
        raise click.BadParameter(f"give {param.metavar}, and no more than that")
    return ids


@click.group()
def transactions() -> None:
    """Payments with their timeline; decide one by hand."""


add_list(transactions, TRANSACTIONS)
add_find(transactions, TRANSACTIONS)
add_wait(transactions, TRANSACTIONS)


@transactions.command("show")
@click.argument("ids", nargs=-1, required=True, metavar="[SERVICE_ID] ID", callback=_ids)
@click.option("--mode", type=click.Choice(["S", "P"]), help="Of two, the one of this mode.")
@asks
def show_transaction(session: Session, ids: tuple[str, ...], mode: str | None) -> None:
    """Show one of the transactions with all its fields and its timeline.

    ID is its transaction_id, its network transaction id or the id of one of its callbacks.
    """
    query = [] if mode is None else [("mode", mode)]
    answer = session.gateway.control("GET", "transactions", *ids, query=query)
    session.show(answer, tables.outline)


def _decided(_context: click.Context, _param: click.Parameter, text: str) -> str:
    words = {word: code for word, code in STATUS_WORDS.items() if word != "pending"}
    code = words.get(text, text)
    if code not in words.values():
        raise click.BadParameter(f"{text} is none of {', '.join((*words.values(), *words))}")
    return code


def _ids_before_status(
    context: click.Context, param: click.Parameter, ids: tuple[str, ...]
) -> tuple[str, ...]:
    """The ids; click takes the only argument for the STATUS, so without ids that one is missing."""
    if not ids:
        raise click.UsageError("STATUS is missing: give it after the ID, as in `T1 failed`")
    return _ids(context, param, ids)


@transactions.command()
@click.argument("ids", nargs=-1, metavar="[SERVICE_ID] ID", callback=_ids_before_status)
@click.argument("status", callback=_decided)
@click.option("--reason", help="Mode P: why; it is kept with your name.")
@click.option("--by", default=getpass.getuser, help="Mode P: who decides; by default your user.")
@asks
def settle(
    session: Session, ids: tuple[str, ...], status: str, reason: str | None, by: str
) -> None:
    """Decide a pending transaction now; one of mode P only with --reason.

    ID is its transaction_id, its network transaction id or the id of one of its callbacks. STATUS
    is 000, 001 or 003, or in words successful, failed or cancelled.
    """
    path = ("transactions", *ids, "settle")
    body = {"status": status} if reason is None else {"status": status, "reason": reason, "by": by}
    session.show(session.gateway.control("POST", *path, body=body), _settled)


def _settled(document: dict[str, Any]) -> Iterator[str]:
    yield f"{document['transaction_id']} is {status_in_words(document['status'])}"


@click.group()
def callbacks() -> None:
    """Callbacks with every attempt; try one now, or send one again."""


_NOT_OF_STATE: Final = [
    each for each in CALLBACKS.filters if each.field not in {"state", "unacknowledged", "mode"}
]

add_list(callbacks, CALLBACKS)
add_show(
    callbacks, CALLBACKS, "ID", "ID is its id, its network transaction id or its transaction_id."
)
add_find(callbacks, CALLBACKS)
add_wait(callbacks, CALLBACKS)


@callbacks.command()
@click.argument("callback_id", metavar="[ID]", required=False)
@click.option("--all", "every", is_flag=True, help="All that are retrying, not one.")
@click.option("--service-id", type=int, help="With --all: only those of this service.")
@asks
def retry(
    session: Session, /, callback_id: str | None, service_id: int | None, *, every: bool
) -> None:
    """Make the next attempt at a callback now. The clock stays where it is.

    ID is its id, its network transaction id or its transaction_id. It is for callbacks that wait
    for an attempt; `resend` sends one that was delivered or given up.
    """
    if every is (callback_id is not None):
        raise click.UsageError("give the ID of a callback, or --all for all that are retrying")
    if callback_id is not None and service_id is not None:
        raise click.UsageError("--service-id goes with --all, not with an ID")
    if callback_id is not None:
        answer = session.gateway.control("POST", "callbacks", callback_id, "retry")
        session.show(answer, lambda document: [_retried(document)])
    else:
        body = {} if service_id is None else {"service_id": service_id}
        answer = session.gateway.control("POST", "callbacks", "retry", body=body)
        session.show(answer, _all_retried)


def _retried(callback: dict[str, Any]) -> str:
    return tables.printable(f"{callback['id']} goes to {callback['url']} now")


def _all_retried(document: dict[str, Any]) -> Iterator[str]:
    yield from map(_retried, document["callbacks"])
    if not document["callbacks"]:
        yield "no callbacks are retrying"


@callbacks.command()
@click.argument("callback_id", metavar="[ID]", required=False)
@click.option("--failed", is_flag=True, help="All callbacks whose attempts have all failed.")
@filtered(_NOT_OF_STATE)
@where_option
@click.option("--url", callback=address, help="Send it to this address instead of the one before.")
@asks
def resend(
    session: Session,
    /,
    callback_id: str | None,
    failed: bool,
    url: str | None,
    where: Pairs,
    **filters: str | None,
) -> None:
    """Send a callback once more, now. With --failed, all whose attempts have all failed.

    ID is its id, its network transaction id or its transaction_id. The filters choose among those
    whose attempts have all failed.
    """
    chosen = [*given(filters), *where]
    if failed is (callback_id is not None):
        raise click.UsageError("give the ID of a callback, or --failed for all that failed")
    if callback_id is None:
        _resend_failed(session, chosen, url)
    elif chosen:
        raise click.UsageError("filters go with --failed, not with an ID")
    else:
        path = ("callbacks", callback_id, "resend")
        answer = session.gateway.control("POST", *path, body=_to(url))
        session.show(answer, lambda document: [_resent(document)])


def _to(url: str | None) -> dict[str, object]:
    return {} if url is None else {"url": url}


def _resent(callback: dict[str, Any]) -> str:
    return tables.printable(f"{callback['id']} goes to {callback['url']} once more")


def _resend_failed(session: Session, chosen: Pairs, url: str | None) -> None:
    """Send every failed callback again. If one no longer exists, go on, and raise at the end."""
    resent: list[dict[str, Any]] = []
    problems: list[str] = []
    # A callback that is sent again leaves the list of failed ones, so read the whole list first.
    for name in _failed_ids(session, chosen):
        try:
            answer = session.gateway.control("POST", "callbacks", name, "resend", body=_to(url))
        except Refused as error:
            problems.append(error.message)
        else:
            resent.append(json.loads(answer.text))
            if not session.as_json:
                click.echo(_resent(resent[-1]))
    if session.as_json:
        click.echo(json.dumps({"callbacks": resent}))
    elif not resent and not problems:
        click.echo("no callbacks failed")
    if problems:
        raise Failure("\n".join(problems))


def _failed_ids(session: Session, chosen: Pairs) -> list[str]:
    names: list[str] = []
    after: str | None = None
    while True:
        query = page_query(LIMIT_OF_LISTS, after, *chosen, ("state", "failed"))
        page = json.loads(session.gateway.control("GET", "callbacks", query=query).text)
        names += [callback["id"] for callback in page["callbacks"]]
        after = page["next"]
        if after is None:
            return names


@click.group()
def sms() -> None:
    """Messages as the handset sees them."""


add_list(sms, MESSAGES)
add_show(sms, MESSAGES, "PROCESSING_ID")
add_find(sms, MESSAGES)
add_wait(sms, MESSAGES)
