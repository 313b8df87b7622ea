"""The HMAC of a notification, over its exact bytes."""

import base64
import hmac
from collections.abc import Mapping

from sandbox_sim.adapters.networks.http_json.settings import NotificationTable


def is_signed(table: NotificationTable, key: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the header has the signature of these bytes. headers: names in lower case."""
    given = headers.get(table.signature_header.lower(), "")
    if table.trust != "signed" or not given.startswith(table.prefix):
        return False
    claimed = given.removeprefix(table.prefix)
    digest = hmac.digest(key.encode(), body, table.algorithm)
    if table.encoding == "hex":
        return hmac.compare_digest(digest.hex().encode(), claimed.lower().encode())
    return hmac.compare_digest(base64.b64encode(digest), claimed.encode())
