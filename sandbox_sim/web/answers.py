"""The one place where an answer of the gateway is written, and the words of the log about it."""

import json
import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from aiohttp import web

from sandbox_sim.domain.codes import CATALOGUE, Reply

log = logging.getLogger("sandbox_sim.requests")

_JSON: Final = "application/json"


def render(reply: Reply, request_id: str, reject_status: int = 200) -> web.Response:
    """The answer as HTTP.

    reject_status: the HTTP status of the sandbox codes, a setting (D7).
    """
    row = CATALOGUE[reply.code]
    status = reply.http_status or (reject_status if row.sandbox else row.http_status)
    message = row.message if reply.message is None else reply.message
    if reply.fields is None:
        body = _plain_body(reply.code, message)
    else:
        body = _encode({**reply.fields, "response_message": message, "response_code": reply.code})
    headers = {
        "Content-Type": _JSON,
        "X-Sandbox-Rule": reply.rule,
        "X-Sandbox-Request-Id": request_id,
    }
    if reply.headers is not None:
        headers.update(reply.headers)
    return web.Response(body=body, status=status, headers=headers)


@lru_cache(maxsize=256)
def _plain_body(code: str, message: str) -> bytes:
    return _encode({"response_message": message, "response_code": code})


def _encode(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def explain(
    reply: Reply,
    request_id: str,
    operation: str,
    service_id: int | None,
    transaction_id: str | None,
) -> None:
    """One line about a rejection at info, about what was accepted at debug; warnings at info."""
    level = logging.DEBUG if reply.accepted and not reply.warnings else logging.INFO
    if not log.isEnabledFor(level):
        return
    why = "; ".join((reply.why, *reply.warnings))
    words = [operation]
    words += [f"service {service_id}"] if service_id is not None else []
    words += [f"transaction {transaction_id}"] if transaction_id is not None else []
    log.log(
        level,
        "%s: %s %s, by rule %s: %s",
        " ".join(words),
        reply.code,
        reply.message or CATALOGUE[reply.code].message,
        reply.rule,
        why,
        extra={
            "facts": {
                "request_id": request_id,
                "operation": operation,
                "service_id": service_id,
                "transaction_id": transaction_id,
                "code": reply.code,
                "rule": reply.rule,
                "why": why,
            }
        },
    )
