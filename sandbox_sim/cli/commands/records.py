"""`sandbox-sim requests | transactions | callbacks | sms | inbox`: the records of the gateway.

`transactions refund` pays a collection back to its payer. Source: D45.
"""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final

import click

from sandbox_sim.cli import tables
from sandbox_sim.cli.client import CommandFailed, ControlApiError, Session, with_session
from sandbox_sim.cli.options import (
    Query,
    by_option,
    check_address,
    check_ids,
    list_options,
    match_options,
    wait_options,
)
from sandbox_sim.cli.record_commands import (
    CALLBACKS,
    DELIVERIES,
    MESSAGES,
    REQUESTS,
    TRANSACTIONS,
    add_searches,
    add_show,
    every_record,
    wait,
)
from sandbox_sim.cli.tables import transaction_lines
from sandbox_sim.records.transactions import STATUS_WORDS, status_words
from sandbox_sim.values.redaction import printable_document

_mode = click.option(
    "--mode",
    type=click.Choice(["S", "P"]),
    help="The service mode, if both modes have a transaction with this id.",
)


def _parse_amount(_context: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    """An amount as a text for the control API, so that no digit is lost."""
    if text is None:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount <= 0:
        raise click.BadParameter(f"{text!r} is not an amount above 0, such as 10.50")
    return format(amount, "f")


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="[SERVICE_ID] ID", callback=check_ids)
@click.option(
    "--amount", callback=_parse_amount, help="The amount to refund; by default all that is left."
)
@by_option("Who refunds.")
@click.option("--reason", required=True, help="Why; it is saved with your name.")
@click.option("--id", "transaction_id", help="The id of the refund; a repeated one is refused.")
@_mode
@with_session
def refund(session: Session, /, ids: tuple[str, ...], **body: str | None) -> None:
    """Refund a successful collection, or a part of it, to its payer.

    The refund is a payout from the collection wallet; in mode P it goes through the network that
    collected. All refunds of a collection together cannot exceed its amount. A refund has no
    callback.

    ID is the transaction_id of the collection, its network transaction id or the id of one of its
    callbacks.
    """
    session.request("POST", "transactions", *ids, "refund", body=body, lines=_refund_line)


def _refund_line(document: dict[str, Any]) -> Iterator[str]:
    money = f"{document['amount']} {document['currency_code']}"
    status = status_words(document["status"])
    yield (
        f"{document['transaction_id']} pays back {money} to {document['party']} and is {status}: "
        f"{document['said']}"
    )


@click.group()
def requests() -> None:
    """Requests, each with its answer, rule and reason."""


add_searches(requests, REQUESTS)
add_show(requests, REQUESTS, "ID")


@requests.command()
@click.option("--service-id", type=int, help="Only the requests of this service.")
@with_session
def clear(session: Session, service_id: int | None) -> None:
    """Delete the requests in the journal; those of mode P are kept."""
    query = [("service_id", service_id)]
    session.request("DELETE", "requests", query=query, lines=tables.deleted_line)


@click.group()
def transactions() -> None:
    """Payments with their timeline; decide or refund one by hand."""


add_searches(transactions, TRANSACTIONS)
transactions.add_command(refund)


@transactions.command("show")
@click.argument("ids", nargs=-1, required=True, metavar="[SERVICE_ID] ID", callback=check_ids)
@_mode
@click.option(
    "--exchanges", is_flag=True, help="Mode P: also print the exchanges with the network."
)
@with_session
def show_transaction(
    session: Session, ids: tuple[str, ...], mode: str | None, *, exchanges: bool
) -> None:
    """Show a transaction, its attempts at a network, who decided it and what to do next.

    ID is its transaction_id, its network transaction id or the id of one of its callbacks. The
    global option --json shows every field.
    """
    lines = partial(transaction_lines, exchanges=exchanges)
    session.request("GET", "transactions", *ids, query=[("mode", mode)], lines=lines)


@transactions.command("ask")
@click.argument("ids", nargs=-1, required=True, metavar="[SERVICE_ID] ID", callback=check_ids)
@with_session
def ask_network(session: Session, ids: tuple[str, ...]) -> None:
    """Ask the network for the status of a transaction of mode P now, and save the answer.

    The payment is not sent again. ID is as for `show`; for an SMS it is the processing_id.
    """
    session.request("POST", "transactions", *ids, "ask", body={}, lines=_status_lines)


def _status_lines(document: dict[str, Any]) -> Iterator[str]:
    yield f"{document['transaction_id']} is {status_words(document['status'])}"
    yield from document["open_because"] or (document["network_said"],)
    yield from document["waiting"]


def _parse_status(_context: click.Context, _param: click.Parameter, text: str) -> str:
    words = {word: code for word, code in STATUS_WORDS.items() if word != "pending"}
    code = words.get(text, text)
    if code not in words.values():
        raise click.BadParameter(f"{text} is not one of {', '.join((*words.values(), *words))}")
    return code


def _check_ids_and_status(
    context: click.Context, param: click.Parameter, ids: tuple[str, ...]
) -> tuple[str, ...]:
    """The ids. click takes a single argument as the ID, so report that STATUS is missing."""
    if not ids:
        raise click.UsageError("STATUS is missing: give it after the ID, as in `T1 failed`")
    return check_ids(context, param, ids)


@transactions.command()
@click.argument("ids", nargs=-1, metavar="[SERVICE_ID] ID", callback=_check_ids_and_status)
@click.argument("status", callback=_parse_status)
@click.option("--reason", help="Mode P: why; it is saved with your name.")
@by_option("Mode P: who decides.")
@click.option("--force", is_flag=True, help="Mode P: decide even if the network says otherwise.")
@click.option("--amount", help="Mode P: the amount that the network confirmed, if it differs.")
@click.option("--network-id", help="Mode P: the network's own identifier of the payment.")
@with_session
def settle(
    session: Session,
    /,
    ids: tuple[str, ...],
    status: str,
    reason: str | None,
    by: str,
    *,
    force: bool,
    **confirmed: str | None,
) -> None:
    """Decide a pending transaction now. Mode P needs --reason.

    In mode P the network is asked first. --force is needed if the network says that the payment is
    pending, and if money would be given back before the gateway gives up. If the network confirmed
    another amount, give it with --amount; the rest of a payout goes back to the service.

    ID is its transaction_id, its network transaction id or the id of one of its callbacks. STATUS
    is 000, 001 or 003, or as a word successful, failed or cancelled.
    """
    if force and reason is None:
        raise click.UsageError("--force needs --reason: both are for mode P")
    body: dict[str, object] = {"status": status, **confirmed}
    if reason is not None:
        body |= {"reason": reason, "by": by, "force": force}
    try:
        session.request("POST", "transactions", *ids, "settle", body=body, lines=_settled_line)
    except ControlApiError as refused:
        # The message names fields of the control API; replace them by the options.
        fields = "set reason, and by to your name"
        options = "give --reason and --by"
        raise ControlApiError(refused.status, refused.message.replace(fields, options)) from None


def _settled_line(document: dict[str, Any]) -> Iterator[str]:
    line = f"{document['transaction_id']} is {status_words(document['status'])}"
    said = document.get("network_said")
    yield line if said is None else f"{line}; the network was asked first: {said}"


@click.group()
def callbacks() -> None:
    """Callbacks, each with all its attempts; retry or resend one."""


_RESEND_FILTERS: Final = [
    each for each in CALLBACKS.filters if each.field not in {"state", "unacknowledged", "mode"}
]

add_searches(callbacks, CALLBACKS)
add_show(
    callbacks, CALLBACKS, "ID", "ID is its id, its network transaction id or its transaction_id."
)


@callbacks.command()
@click.argument("callback_id", metavar="[ID]", required=False)
@click.option("--all", "retry_all", is_flag=True, help="Retry all callbacks that are retrying.")
@click.option("--service-id", type=int, help="With --all: only callbacks of this service.")
@with_session
def retry(
    session: Session, /, callback_id: str | None, service_id: int | None, *, retry_all: bool
) -> None:
    """Make the next attempt at a callback now, without moving the clock.

    ID is its id, its network transaction id or its transaction_id. This command is for callbacks
    that wait for an attempt; `resend` sends one that was delivered or given up.
    """
    if retry_all is (callback_id is not None):
        raise click.UsageError("give the ID of a callback, or --all for all that are retrying")
    if callback_id is not None and service_id is not None:
        raise click.UsageError("--service-id needs --all; it cannot be combined with an ID")
    if callback_id is not None:
        path = ("callbacks", callback_id, "retry")
        session.request("POST", *path, lines=lambda each: [_sent_line(each)])
    else:
        body = {"service_id": service_id}
        session.request("POST", "callbacks", "retry", body=body, lines=_retried_lines)


def _sent_line(callback: dict[str, Any], when: str = "now") -> str:
    return f"{callback['id']} goes to {callback['url']} {when}"


def _retried_lines(document: dict[str, Any]) -> Iterator[str]:
    yield from map(_sent_line, document["callbacks"])
    if not document["callbacks"]:
        yield "no callbacks are retrying"


@callbacks.command()
@click.argument("callback_id", metavar="[ID]", required=False)
@click.option("--failed", is_flag=True, help="All callbacks whose attempts have all failed.")
@list_options(_RESEND_FILTERS, pages=False)
@click.option(
    "--url", callback=check_address, help="Send to this address instead of the previous one."
)
@with_session
def resend(
    session: Session, callback_id: str | None, failed: bool, url: str | None, query: Query
) -> None:
    """Send a callback again now, or with --failed every callback whose attempts all failed.

    ID is its id, its network transaction id or its transaction_id. The filters are for --failed.
    """
    if failed is (callback_id is not None):
        raise click.UsageError("give the ID of a callback, or --failed for all that failed")
    if callback_id is None:
        _resend_failed(session, query, url)
    elif query:
        raise click.UsageError("filters need --failed; they cannot be combined with an ID")
    else:
        path = ("callbacks", callback_id, "resend")
        body = {"url": url}
        session.request("POST", *path, body=body, lines=lambda each: [_sent_line(each, "again")])


def _resend_failed(session: Session, query: Query, url: str | None) -> None:
    """Send every failed callback again. After an error go on with the others; raise at the end."""
    resent: list[dict[str, Any]] = []
    problems: list[str] = []
    # Read the whole list first: a callback that is sent again is no longer in the list.
    failed = [*every_record(session, "callbacks", [*query, ("state", "failed")])]
    for name in (callback["id"] for callback in failed):
        try:
            path = ("callbacks", name, "resend")
            answer = session.gateway.control("POST", *path, body={"url": url})
        except ControlApiError as error:
            problems.append(error.message)
        else:
            resent.append(answer.document)
            if not session.as_json:
                click.echo(_sent_line(printable_document(resent[-1]), "again"))
    if session.as_json:
        click.echo(json.dumps({"callbacks": resent}))
    elif not resent and not problems:
        click.echo("no callbacks failed")
    if problems:
        raise CommandFailed("\n".join(problems))


@click.group()
def sms() -> None:
    """SMS, as the phones receive them."""


add_searches(sms, MESSAGES)
add_show(sms, MESSAGES, "PROCESSING_ID")


@click.group()
def inbox() -> None:
    """The deliveries to a built-in receiver. Its address is …/_sandbox/inbox/NAME."""


@inbox.command("show")
@click.argument("name")
@list_options()
@with_session
def show_inbox(session: Session, name: str, query: Query) -> None:
    """Show the deliveries in an inbox, newest first."""
    session.request("GET", "inbox", name, "messages", query=query, lines=DELIVERIES.page)


@inbox.command("wait")
@click.argument("name")
@match_options()
@wait_options
@with_session
def wait_inbox(
    session: Session, name: str, match: Mapping[str, object], count: int, timeout: float
) -> None:
    """Wait for matching deliveries, and show them. json.NAME matches a field inside a body."""
    wait(session, DELIVERIES, "inbox", name, match=match, count=count, timeout_s=timeout)


@inbox.command("clear")
@click.argument("name")
@with_session
def clear_inbox(session: Session, name: str) -> None:
    """Delete all deliveries in an inbox."""
    session.request("DELETE", "inbox", name, lines=tables.deleted_line)
