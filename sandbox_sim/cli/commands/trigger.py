"""`sandbox-sim trigger`: sends a request through the gateway's interface and shows its outcome."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import click

from sandbox_sim.cli import tables
from sandbox_sim.cli.address_option import address
from sandbox_sim.cli.await_outcome import callback_of, messages_of
from sandbox_sim.cli.client import Answer, Failure
from sandbox_sim.cli.credential_options import credential_options
from sandbox_sim.cli.matching import Pairs, pairs, value_of
from sandbox_sim.cli.record_views import MESSAGES, last_verdict
from sandbox_sim.cli.sample_requests import body_of
from sandbox_sim.cli.session import Session, asks
from sandbox_sim.domain.sample_requests import SAMPLES, Sample

# 202 in general, 000 for a card, 370 for SMS. Every other code is a rejection.
_ACCEPTED: Final = frozenset({"202", "000", "370"})
# The headers of an answer that are printed.
_SHOWN_HEADERS: Final = ("X-Sandbox-Rule", "Retry-After")


class _Exchange(NamedTuple):
    """A request, its answer, and the credentials that it was sent with."""

    sample: Sample
    body: Mapping[str, Any]
    answer: Answer
    credentials: tuple[str, str]

    @property
    def says(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.answer.text)
        return document

    @property
    def accepted(self) -> bool:
        return self.answer.status < 300 and self.says["response_code"] in _ACCEPTED


class _Outcome(NamedTuple):
    """The outcome of a request, as far as it is known; `problem` says why some of it is not."""

    callback: Mapping[str, Any] | None = None
    messages: Any = None
    status: Mapping[str, Any] | None = None
    problem: str | None = None


@click.command()
@click.argument("operation", type=click.Choice(list(SAMPLES)))
@click.option(
    "--set",
    "fields",
    multiple=True,
    metavar="FIELD=VALUE",
    callback=pairs,
    help="Put a field into the request; may be repeated.",
)
@click.option(
    "--fail",
    is_flag=True,
    help="Send the value that fails: a last digit 9, or a card that is no test card.",
)
@click.option(
    "--callback-url",
    callback=address,
    help="Your receiver; by default the built-in inbox, …/_sandbox/inbox/trigger.",
)
@click.option("--service-id", type=click.IntRange(1), default=55, show_default=True)
@credential_options
@click.option("--wait/--no-wait", default=True, help="Wait for the outcome; the default.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, 600),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait at most.",
)
@asks
def trigger(
    session: Session,
    /,
    *,
    operation: str,
    fields: Pairs,
    fail: bool,
    callback_url: str | None,
    service_id: int,
    client_key: str,
    secret_key: str,
    wait: bool,
    timeout: float,
) -> None:
    """Send a valid request and show its outcome.

    Prints the answer, the callback and the final status.

    The exit code is 0 if the gateway accepted the request, and 1 if it did not.

    In --set, a value is JSON if it is null, true, false, or in quotes, brackets or braces. Digits
    are a number, unless the field is text in the request, as transaction_id is. With --fail, SMS
    are accepted and refunded, a card gets code 019 and all other operations get 015.
    """
    sample = SAMPLES[operation]
    body = body_of(sample, service_id, session.gateway.address, callback_url, fail=fail)
    for name, text in fields:
        body[name] = value_of(text, number=not isinstance(body.get(name), str))
    if not session.as_json:
        _show_request(session, sample, body)
    credentials = (client_key, secret_key)
    answer = session.gateway.call(sample.path, body, credentials)
    exchange = _Exchange(sample, body, answer, credentials)
    if not session.as_json:
        _show_answer(exchange)
    outcome = _wait_for_outcome(session, exchange, timeout) if wait else _Outcome()
    _show_outcome(session, exchange, outcome)


def _wait_for_outcome(session: Session, exchange: _Exchange, timeout_s: float) -> _Outcome:
    """Wait for the outcome. If it cannot be read, say so; the request itself did not fail."""
    sample, body = exchange.sample, exchange.body
    callback = None
    try:
        if not sample.is_payment:
            if not exchange.accepted:
                return _Outcome()
            sent = exchange.says["response_data"]
            messages = messages_of(session.gateway, body["service_id"], sent, timeout_s)
            late = any(each["status"] == "ACKNOWLEDGED" for each in messages)
            problem = _too_late(session, "message sent", timeout_s) if late else None
            return _Outcome(messages=messages, problem=problem)
        if not exchange.accepted:
            return _Outcome(status=_status(session, exchange))
        callback = callback_of(
            session.gateway, body["service_id"], body["transaction_id"], timeout_s
        )
        problem = None if callback else _too_late(session, "callback", timeout_s)
        return _Outcome(callback, status=_status(session, exchange), problem=problem)
    except Failure as failure:
        problem = f"the outcome cannot be read: {failure.message}"
        return _Outcome(callback, problem=problem)


def _too_late(session: Session, what: str, timeout_s: float) -> str:
    """The sentence that something did not come in time, and what to do if the clock is frozen."""
    text = f"no {what} within {timeout_s:g} s"
    if not json.loads(session.gateway.control("GET", "clock").text)["frozen"]:
        return text
    return f"{text}: the clock is frozen; move it on, as by `sandbox-sim clock advance 5`"


def _status(session: Session, exchange: _Exchange) -> Mapping[str, Any] | None:
    """Return the answer to a status query; None if the transaction is not found."""
    asked = {name: exchange.body.get(name) for name in ("service_id", "transaction_id")}
    answer = session.gateway.call("/get_transaction_status", asked, exchange.credentials)
    record: Mapping[str, Any] | None = json.loads(answer.text).get("response_data")
    return record


def _show_outcome(session: Session, exchange: _Exchange, outcome: _Outcome) -> None:
    """Print the outcome. Raises `Failure` if the gateway did not accept the request."""
    if session.as_json:
        click.echo(json.dumps(_document(session, exchange, outcome)))
    else:
        for line in _lines(outcome):
            click.echo(line)
    if outcome.problem:
        click.echo(outcome.problem, err=True)
    if not exchange.accepted:
        says = exchange.says
        raise Failure(f"rejected: {says['response_code']} {says['response_message']}")


def _show_request(session: Session, sample: Sample, body: Mapping[str, Any]) -> None:
    click.echo(click.style(f"POST {session.gateway.address}{sample.path}", bold=True))
    for line in tables.outline(body, "  "):
        click.echo(line)


def _show_answer(exchange: _Exchange) -> None:
    answer = exchange.answer
    headers = (
        f"{name}: {answer.headers[name.lower()]}"
        for name in _SHOWN_HEADERS
        if name.lower() in answer.headers
    )
    head = ", ".join((f"HTTP {answer.status}", *headers))
    click.echo(click.style(head, fg="green" if exchange.accepted else "red", bold=True))
    if why := answer.headers.get("x-sandbox-why"):
        click.echo(f"X-Sandbox-Why: {tables.printable(why)}")
    for line in tables.outline(exchange.says, "  "):
        click.echo(line)


def _lines(outcome: _Outcome) -> Iterator[str]:
    callback, status = outcome.callback, outcome.status
    if callback is not None:
        verdict = tables.shown(last_verdict(callback) or callback["state"])
        yield click.style(f"callback to {tables.printable(callback['url'])}: {verdict}", bold=True)
        yield from tables.outline(callback["body"], "  ")
    if outcome.messages:
        yield from MESSAGES.lines(outcome.messages)
    if status is not None:
        words = f"final status {status['status']}: {status['status_desc']}"
        yield click.style(words, bold=True)


def _document(session: Session, exchange: _Exchange, outcome: _Outcome) -> dict[str, Any]:
    """Return the whole exchange as JSON; what did not come, or was not waited for, is null."""
    answer = exchange.answer
    return {
        "accepted": exchange.accepted,
        "request": {
            "url": session.gateway.address + exchange.sample.path,
            "body": exchange.body,
        },
        "answer": {
            "http_status": answer.status,
            "rule": answer.headers.get("x-sandbox-rule"),
            "why": answer.headers.get("x-sandbox-why"),
            "request_id": answer.headers.get("x-sandbox-request-id"),
            "body": exchange.says,
        },
        "callback": outcome.callback,
        "messages": outcome.messages,
        "status": outcome.status,
    }
