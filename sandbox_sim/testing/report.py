"""The report that a failed test prints: every request, callback, attempt and message."""

from collections.abc import Iterator
from datetime import datetime

from sandbox_sim.testing.expectations import Records
from sandbox_sim.testing.record_views import Callback, Request, Sms


def lines(
    requests: Records[Request], callbacks: Records[Callback], messages: Records[Sms]
) -> Iterator[str]:
    """The lines of the report, oldest first; times are gateway time."""
    yield "requests:" if requests else "no requests"
    for request in requests:
        yield from _request(request)
    if requests.outlook:
        yield requests.outlook
    yield "callbacks:" if callbacks else "no callbacks"
    for callback in callbacks:
        yield from _callback(callback)
    if messages:
        yield "messages:"
        yield from messages.table()
    if callbacks.outlook:
        yield callbacks.outlook


def _request(request: Request) -> Iterator[str]:
    what = " ".join(filter(None, (request.operation or request.path, request.transaction_id)))
    yield f"  {_time(request.at)}  {what}: {request.response_code}, {request.why} [{request.rule}]"
    for warning in request.warnings:
        yield f"                warning: {warning}"


def _callback(callback: Callback) -> Iterator[str]:
    status = f"{callback.transaction_id} status {callback.status}"
    yield f"  {_time(callback.created_at)}  {status} to {callback.url}: {callback.state}"
    for attempt in callback.attempts:
        again = attempt.next_attempt_at
        following = f"; next attempt at {_time(again)}" if again else ""
        yield f"  {_time(attempt.at)}    attempt {attempt.number}: {attempt.verdict}{following}"
        if attempt.response_body and not attempt.verdict.startswith("acknowledged"):
            yield f"                  it said: {attempt.response_body[:200]}"


def _time(moment: datetime) -> str:
    return moment.strftime("%H:%M:%S.%f")[:-3]
