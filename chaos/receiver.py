"""The receiver of callbacks: runs through every kill, logs each delivery, and refuses some."""

import asyncio
import hashlib
import hmac
import json
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

from chaos.facts import Delivery, Facts
from tests.kit.http_servers import listening
from tests.kit.requests import SECRET

_SLOW_S: Final = 0.2


class Receiver:
    """Answers 500 to the first one or two deliveries of some payments, and answers others slowly.

    The id of the payment alone decides this, so a repeated delivery is treated in the same way.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._arrived: Counter[str] = Counter()
        self.taken: set[str] = set()

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one delivery and log it."""
        at = time.monotonic()
        raw = await request.read()
        body = _parsed(raw)
        ref = str(body.get("trans_ref"))
        lot = zlib.crc32(ref.encode()) % 32
        self._arrived[ref] += 1
        answer = 500 if self._arrived[ref] <= _refusals(lot) else 200
        signature = hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()
        self._facts.deliveries.append(
            Delivery(
                at,
                ref,
                str(body.get("trans_id")),
                str(body.get("trans_status")),
                genuine=request.headers.get("X-Service-Signature") == signature,
                answered=answer,
            )
        )
        if lot == 7:
            await asyncio.sleep(_SLOW_S)
        if answer == 200:
            self.taken.add(ref)
        return web.Response(status=answer)


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _refusals(lot: int) -> int:
    """How often it answers 500 before it acknowledges; the server tries three times."""
    return {0: 1, 1: 1, 2: 1, 3: 2}.get(lot, 0)


@asynccontextmanager
async def receiving(facts: Facts) -> AsyncIterator[tuple[Receiver, str]]:
    """A receiver on a free port, and its address."""
    receiver = Receiver(facts)
    async with listening(web.post("/callback", receiver.handle)) as url:
        yield receiver, f"{url}/callback"
