"""The signature of a callback: how the gateway makes it, and how a receiver checks it.

Source: delivery.1, D29.
"""

import hashlib
import hmac
from collections.abc import Iterable
from typing import Final, Literal

SIGNATURE_HEADER: Final = "X-Service-Signature"

Signature = Literal["valid", "invalid", "missing"]


def sign(body: bytes, secret_key: str) -> str:
    """Hex HMAC with SHA-256 of the exact bytes, keyed with the client's secret key (D29)."""
    return hmac.new(secret_key.encode(), body, hashlib.sha256).hexdigest()


def check_signature(body: bytes, given: str | None, secret_keys: Iterable[str]) -> Signature:
    """Whether the signature is that of the exact bytes under one of the keys."""
    if not given:
        return "missing"
    claimed = given.lower().encode("utf-8", "surrogateescape")
    candidates = [hmac.compare_digest(sign(body, key).encode(), claimed) for key in secret_keys]
    return "valid" if any(candidates) else "invalid"
