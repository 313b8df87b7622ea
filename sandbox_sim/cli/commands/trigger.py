"""`sandbox-sim trigger`: sends a request to a running gateway and shows its outcome."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import click

from sandbox_sim.adapters import machine_time
from sandbox_sim.cli import tables
from sandbox_sim.cli.client import (
    CommandFailed,
    ControlApiError,
    ReceivedAnswer,
    RunningGateway,
    Session,
    with_session,
)
from sandbox_sim.cli.options import (
    Integer,
    Pairs,
    check_address,
    credential_options,
    fields_option,
    parse_value,
    timeout_option,
)
from sandbox_sim.cli.record_commands import MESSAGES, last_verdict
from sandbox_sim.cli.tables import Json
from sandbox_sim.operations import ACTIONS, PAYMENTS, Operation
from sandbox_sim.values.redaction import printable, printable_document
from sandbox_sim.values.vocabulary import HOSTED_CARD

# 202 in general, 000 for cards, 370 for SMS. Every other code is a rejection.
_ACCEPTED: Final = frozenset({"202", "000", "370"})
_DECLINED: Final = "015"  # the only rejection with a transaction
# The headers of an answer that are printed.
_SHOWN_HEADERS: Final = ("X-Sandbox-Rule", "Retry-After")
# The control API waits for success only; after this time the records are read, to see a failure.
_POLL_INTERVAL_S: Final = 0.5


class _Exchange(NamedTuple):
    """A request, its answer, and the credentials that it was sent with."""

    operation: Operation
    body: Mapping[str, Any]
    answer: ReceivedAnswer
    credentials: tuple[str, str]

    @property
    def document(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.answer.document)

    @property
    def accepted(self) -> bool:
        return self.answer.status < 300 and self.document["response_code"] in _ACCEPTED


class _Outcome(NamedTuple):
    """The known outcome of a request; `problem` says why a part of it is unknown."""

    callback: Json | None = None
    messages: Sequence[Json] | None = None
    status: Json | None = None
    problem: str | None = None


@click.command()
@click.argument("operation", type=click.Choice([each.value for each in ACTIONS]))
@fields_option("--set", "fields", help_text="Set a field of the request")
@click.option(
    "--fail",
    is_flag=True,
    help="Send a value that fails: a last digit 9, or a card that is not a test card.",
)
@click.option(
    "--callback-url",
    callback=check_address,
    help="Address of your receiver; by default the built-in inbox, …/_sandbox/inbox/trigger.",
)
@click.option(
    "--mode",
    type=click.Choice(["S", "P"]),
    default="S",
    help="The service mode of the credentials; in P the payment page asks for the card.",
)
@click.option("--service-id", type=Integer(1), default=55, help="The service of the request.")
@credential_options
@click.option("--wait/--no-wait", default=True, help="Wait for the outcome; the default.")
@timeout_option("The longest time to wait.")
@with_session
def trigger(
    session: Session,
    /,
    *,
    operation: str,
    fields: Pairs,
    fail: bool,
    callback_url: str | None,
    mode: str,
    service_id: int,
    client_key: str,
    secret_key: str,
    wait: bool,
    timeout: float,
) -> None:
    """Send a valid request and show its outcome.

    Prints the answer, the callback and the final status. Exit 1 if the gateway refuses the request.

    In --set, null, true, false and values in quotes, brackets or braces are JSON. Digits are a
    number, unless the field is text in the request, such as transaction_id. With --fail, SMS are
    accepted and refunded, cards get code 019 and all other operations get 015.
    """
    chosen, inbox = Operation(operation), f"{session.gateway.address}/_sandbox/inbox"
    body = chosen.sample(
        service_id,
        inbox,
        transaction_id=f"TRIGGER-{machine_time.random_name()}",
        callback_url=callback_url or f"{inbox}/trigger",
        request_time=machine_time.now().strftime("%Y-%m-%d %H:%M:%S"),
        fail=fail,
    )
    if chosen is Operation.CARD and mode == "P":
        if fail:
            raise click.UsageError("--fail is for --mode S: in mode P the payment page decides")
        del body["customer_number"]
        body["nw"] = HOSTED_CARD
    for name, text in fields:
        body[name] = parse_value(text, number=not isinstance(body.get(name), str))
    url = session.gateway.address + chosen.row.path
    if not session.as_json:
        _print_section(f"POST {url}", body)
    credentials = (client_key, secret_key)
    answer = session.gateway.call(chosen.row.path, body, credentials)
    exchange = _Exchange(chosen, body, answer, credentials)
    if not session.as_json:
        _show_answer(exchange)
    outcome = _wait_for_outcome(session.gateway, exchange, timeout) if wait else _Outcome()
    if session.as_json:
        click.echo(json.dumps(_document(url, exchange, outcome)))
    else:
        _show_outcome(_Outcome._make(map(printable_document, outcome)))
    if outcome.problem:
        click.echo(printable(outcome.problem), err=True)
    if not exchange.accepted:
        answered = exchange.document
        raise CommandFailed(f"rejected: {answered['response_code']} {answered['response_message']}")


def _wait_for_outcome(gateway: RunningGateway, exchange: _Exchange, timeout_s: float) -> _Outcome:
    """Wait for the outcome. If it cannot be read, return the reason as its `problem`."""
    is_payment = exchange.operation in PAYMENTS
    outcome = _Outcome()
    try:
        if exchange.accepted and not is_payment:
            outcome = _Outcome(messages=_messages_of(gateway, exchange, timeout_s))
            if any(each["status"] == "ACKNOWLEDGED" for each in outcome.messages or ()):
                outcome = outcome._replace(
                    problem=_timeout_text(gateway, "message sent", timeout_s)
                )
        elif exchange.accepted:
            outcome = _Outcome(_callback_of(gateway, exchange, timeout_s))
            if outcome.callback is None:
                outcome = _Outcome(problem=_timeout_text(gateway, "callback", timeout_s))
        if is_payment and (exchange.accepted or exchange.document["response_code"] == _DECLINED):
            outcome = outcome._replace(status=_query_status(gateway, exchange))
    except CommandFailed as failure:
        problem = f"the outcome cannot be read: {failure.message}"
        return _Outcome(outcome.callback, problem=problem)
    return outcome


def _callback_of(gateway: RunningGateway, exchange: _Exchange, timeout_s: float) -> Json | None:
    """Return the callback of the payment when it was tried or dropped; None after `timeout_s`."""
    ids = exchange.body["service_id"], exchange.body["transaction_id"]
    # An older payment may have the same transaction_id.
    network_id = gateway.control("GET", "transactions", *ids).document["network_transaction_id"]
    found = _poll_records(
        *(gateway, "callbacks", 1, timeout_s),
        match={"service_id": exchange.body["service_id"], "network_transaction_id": network_id},
        success={"state": "delivered"},
        is_done=lambda found: any(each["attempts"] or each["state"] == "dropped" for each in found),
    )
    return found[0] if found else None


def _messages_of(gateway: RunningGateway, exchange: _Exchange, timeout_s: float) -> Sequence[Json]:
    """Return the messages of a send when each is sent or refunded, or after `timeout_s`."""
    sent = exchange.document["response_data"]
    name = "batch_id" if sent["batch_id"] else "processing_id"
    return _poll_records(
        *(gateway, "sms", sent.get("total_recipients", 1), timeout_s),
        match={"service_id": exchange.body["service_id"], name: sent[name]},
        success={"status": "SENT"},
        is_done=lambda found: all(each["status"] != "ACKNOWLEDGED" for each in found),
    )


def _poll_records(
    gateway: RunningGateway,
    plural: str,
    count: int,
    timeout_s: float,
    *,
    match: Json,
    success: Json,
    is_done: Callable[[Sequence[Json]], bool],
) -> Sequence[Json]:
    """Return the matching records when `is_done` is true for them, or after `timeout_s`.

    success: the fields of a successful record; the control API waits for these.
    """
    deadline = machine_time.monotonic() + timeout_s
    while True:
        remaining_s = max(0.0, deadline - machine_time.monotonic())
        wait_s = min(remaining_s, _POLL_INTERVAL_S)
        body = {"match": {**match, **success}, "count": count, "timeout_s": wait_s}
        try:
            gateway.control("POST", plural, "wait", body=body)
        except ControlApiError as refused:
            if refused.status != 408:
                raise
        body = {"match": match, "limit": count}
        found = gateway.control("POST", plural, "find", body=body).document[plural]
        if (found and is_done(found)) or remaining_s == 0:
            return list(found)


def _timeout_text(gateway: RunningGateway, what: str, timeout_s: float) -> str:
    """The message about a timeout, with what to do if the clock is frozen."""
    text = f"no {what} within {timeout_s:g} s"
    if not gateway.control("GET", "clock").document["frozen"]:
        return text
    return f"{text}: the clock is frozen; move it, for example with `sandbox-sim clock advance 5`"


def _query_status(gateway: RunningGateway, exchange: _Exchange) -> Json | None:
    """Return the answer to a status query; None if the transaction is not found."""
    body = {name: exchange.body.get(name) for name in ("service_id", "transaction_id")}
    answer = gateway.call("/get_transaction_status", body, exchange.credentials)
    return cast("Json | None", answer.document.get("response_data"))


def _print_section(head: str, fields: Json, colour: str | None = None, *between: str) -> None:
    click.echo(click.style(head, fg=colour, bold=True))
    for line in (*between, *tables.outline(fields, "  ")):
        click.echo(line)


def _show_answer(exchange: _Exchange) -> None:
    answer = exchange.answer
    headers = (
        f"{name}: {printable(answer.headers[name.lower()])}"
        for name in _SHOWN_HEADERS
        if name.lower() in answer.headers
    )
    why = answer.headers.get("x-sandbox-why")
    _print_section(
        ", ".join((f"HTTP {answer.status}", *headers)),
        exchange.document,
        "green" if exchange.accepted else "red",
        *([f"X-Sandbox-Why: {printable(why)}"] if why else ()),
    )


def _show_outcome(outcome: _Outcome) -> None:
    callback, status = outcome.callback, outcome.status
    if callback is not None:
        verdict = last_verdict(callback) or callback["state"]
        _print_section(f"callback to {callback['url']}: {verdict}", callback["body"])
    if outcome.messages:
        click.echo("\n".join(MESSAGES.lines(outcome.messages)))
    if status is not None:
        _print_section(f"final status {status['status']}: {status['status_desc']}", {})


def _document(url: str, exchange: _Exchange, outcome: _Outcome) -> dict[str, Any]:
    """Return the whole exchange as JSON; parts that are unknown are null."""
    answer = exchange.answer
    return {
        "accepted": exchange.accepted,
        "request": {"url": url, "body": exchange.body},
        "answer": {
            "http_status": answer.status,
            "rule": answer.headers.get("x-sandbox-rule"),
            "why": answer.headers.get("x-sandbox-why"),
            "request_id": answer.headers.get("x-sandbox-request-id"),
            "body": exchange.document,
        },
        "callback": outcome.callback,
        "messages": outcome.messages,
        "status": outcome.status,
    }
