"""Asks the control API of a running gateway."""

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit


def post(url: str, body: Mapping[str, object], token: str | None) -> dict[str, Any]:
    """POST a body and return the answer. Raises `ValueError` with the message of an error."""
    __tracebackhide__ = True
    parts = urlsplit(url)
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    try:
        connection.request("POST", parts.path, json.dumps(body), headers)
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    finally:
        connection.close()
    if response.status >= 400:
        raise ValueError(answer["error"]["message"])
    return answer
