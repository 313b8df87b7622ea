"""The shape that every answer of the gateway must have, also to a bad request."""

import json
from typing import Final

from attack.wire import Response

# The response codes of the interface, and 219 (D14). 500 counts as a problem.
_CODES: Final = frozenset(
    {
        *("000", "202", "370", "388", "393", "100", "400", "401", "402", "403", "404", "429"),
        *("216", "219", "237", "371", "389", "390", "015", "016", "019", "027", "S002"),
    }
)


def problem_with(answer: Response, path: str) -> str | None:
    """What is wrong with an answer, in words; None if it is valid."""
    if not 200 <= answer.status < 500:
        return f"HTTP status {answer.status}"
    try:
        body = json.loads(answer.body.decode(), parse_constant=_refuse)
    except ValueError as error:
        return f"the body is no JSON: {error}"
    if not isinstance(body, dict):
        return "the body is no object"
    code, message = body.get("response_code"), body.get("response_message")
    if code not in _CODES:
        return f"response_code is {code!r}"
    if not isinstance(message, str) or not message.strip():
        return f"response_message is {message!r}"
    if (answer.status == 202) != (code == "202"):
        return f"HTTP status {answer.status} with response_code {code}"
    if path.startswith("/sms/") and answer.status != 200:
        return f"HTTP status {answer.status} on an SMS path"
    if not answer.headers.get("x-sandbox-rule"):
        return "no X-Sandbox-Rule"
    return None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")
