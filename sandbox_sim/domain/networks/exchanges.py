"""What went over the wire to a network and back, with the secrets scrubbed. Source: D38, D39.

An exchange is scrubbed where it is made, before anything keeps, logs or shows it. Scrubbing finds
the secrets of the adapter by their value, in plain text, in Base64, in percent-escapes and behind
the escapes of JSON, headers that carry credentials by their name, and card numbers by their shape.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

from sandbox_sim.domain.redaction import redact_json, redact_text

SCRUBBED: Final = "***"
# The headers that carry credentials: their whole values are scrubbed.
SECRET_HEADERS: Final = frozenset(
    {
        *("authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key"),
        *("ocp-apim-subscription-key", "x-auth-token", "x-access-token"),
    }
)
# The members of a JSON body that hold a token, for those that an adapter does not know beforehand.
_TOKEN_MEMBER: Final = re.compile(
    r'("(?:access_token|refresh_token|id_token|token|apiKey|api_key|password|secret|pin)"\s*:\s*)'
    r'"(?:[^"\\]|\\.)*"',
    re.IGNORECASE,
)
# So much of a body is kept.
KEPT_BYTES: Final = 8192
# A shorter secret would be found inside of words that have nothing to do with it.
_SHORTEST_SECRET: Final = 4


class Exchange(NamedTuple):
    """One request to a network and its answer, or why there is none; scrubbed.

    purpose: `submit`, `status`, `token`, `health` or `notification`.
    attempt_id: empty where the request is of no attempt, such as one for a token.
    status: HTTP status; None where no answer came.
    problem: what went wrong, in words; empty where nothing did.
    tries: how many times it was sent; above 1 only for what may be repeated.
    """

    network: str
    purpose: str
    attempt_id: str
    at: datetime
    duration_ms: int
    method: str
    url: str
    request_headers: Mapping[str, str]
    request_body: str
    status: int | None = None
    answer_headers: Mapping[str, str] = MappingProxyType({})
    answer_body: str = ""
    problem: str = ""
    tries: int = 1


class Scrubber:
    """Replaces the secrets of one adapter in any text.

    Secrets that come later, such as a token, are added when they are known.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None
        self.add(*secrets)

    def __repr__(self) -> str:
        return f"<Scrubber of {len(self._forms)} forms>"

    def add(self, *secrets: str) -> None:
        """Scrub these too from now on; those of fewer than four characters are left out."""
        for secret in secrets:
            if len(secret) >= _SHORTEST_SECRET:
                self._forms.update(dict.fromkeys(_forms(secret)))
        # The longest first: a secret may contain another one.
        forms = sorted(self._forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, forms))) if forms else None

    def forget(self, secret: str) -> None:
        """A token that is replaced by another one is no secret any more."""
        for form in _forms(secret):
            self._forms.pop(form, None)
        self.add()

    def text(self, text: str) -> str:
        """The text without secrets and card numbers."""
        return redact_text(self._without_secrets(text))

    def body(self, raw: bytes) -> str:
        """A body as it may be kept: scrubbed, then cut to `KEPT_BYTES`."""
        text = self._without_secrets(raw.decode("utf-8", "replace"))
        text = _TOKEN_MEMBER.sub(rf'\1"{SCRUBBED}"', text)
        return redact_json(text)[:KEPT_BYTES]

    def headers(self, headers: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Headers as they may be kept, names in lower case."""
        return {
            name.lower(): SCRUBBED if name.lower() in SECRET_HEADERS else self.text(value)
            for name, value in headers
        }

    def _without_secrets(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(SCRUBBED, text)


def _forms(secret: str) -> Iterable[str]:
    """The ways in which a secret may be written on the wire."""
    yield secret
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    yield base64.b64encode(secret.encode()).decode()
    yield base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=")
