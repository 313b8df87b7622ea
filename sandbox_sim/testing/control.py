"""Asks the control API of a running gateway."""

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


def post(
    url: str, body: Mapping[str, object], token: str | None, trusted: Path | None = None
) -> dict[str, Any]:
    """POST a body and return the answer. Raises `ValueError` with the message of an error.

    trusted: the certificate of a gateway that speaks HTTPS; None where it speaks plain HTTP.
    """
    __tracebackhide__ = True
    parts = urlsplit(url)
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    host = parts.hostname or ""
    connection = http.client.HTTPConnection(host, parts.port)
    if trusted is not None:
        # Imported only here, as most gateways of tests speak plain HTTP.
        from sandbox_sim.adapters.tls import client_context  # noqa: PLC0415

        context = client_context(trusted)
        connection = http.client.HTTPSConnection(host, parts.port, context=context)
    try:
        connection.request("POST", parts.path, json.dumps(body), headers)
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    finally:
        connection.close()
    if response.status >= 400:
        raise ValueError(answer["error"]["message"])
    return answer
