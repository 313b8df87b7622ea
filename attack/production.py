"""A production server and the networks that it pays through, which are one server of ours.

`signed` is described in the configuration and signs what it notifies; `mtn` signs nothing; `far` is
another gateway of the interface.
"""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from attack.servers import Server, serving
from attack.wire import request_bytes
from sandbox_sim.testing.network_contract import HttpReply, HttpRequest
from sandbox_sim.testing.network_contract.http_peer import FaultServer
from tests.kit.requests import KEY, SECRET, basic, collection

Answer = Callable[[HttpRequest], HttpReply]

LIVE_KEY, LIVE_SECRET = "live_key", "live_secret"
LIVE: Final = b"Authorization: " + basic(LIVE_KEY, LIVE_SECRET).encode()
SIGNATURE: Final = "X-Signature"
_SIGNING_KEY: Final = "key-of-the-network"
# The nw of a payment chooses its network.
NETWORKS: Final = {"AIR": "signed", "VOD": "far", "MTN": "mtn"}
SIGNED: Final = {
    "adapter": "http_json",
    "operations": ["collect", "payout"],
    "auth": "bearer",
    "auth_secret": _SIGNING_KEY,
    "submit": {
        "path": "/payments",
        "json": {"id": "{reference}", "amount": "{amount}", "callback": "{callback_url}"},
        "fields": {
            "outcome": "state",
            "reference": "id",
            "amount": "amount",
            "network_id": "number",
            "reason": "reason",
        },
        "outcomes": {"NEW": "pending", "PAID": "succeeded", "FAILED": "failed"},
    },
    "status": {"path": "/payments/{reference}"},
    "notification": {"trust": "signed", "signature_header": SIGNATURE},
}
MTN: Final = {
    "adapter": "mtn_momo",
    "target_environment": "mtnghana",
    "currency": "GHS",
    "collection_api_user": "0b8a2f4e-7a3d-4c1e-9d53-6f1f2b7c8d90",
    "collection_api_key": "key-of-collection",
    "collection_subscription_key": "subscription-of-collection",
}
FAR: Final = {"adapter": "upstream", "client_key": KEY, "secret_key": SECRET}
# So that whatever a network says is asked for again within an attack.
_SOON: Final = {"poll_after_s": 0.2, "poll_at_most_s": 1}
_CREDENTIALS: Final = (
    {"client_key": KEY, "secret_key": SECRET},
    {"client_key": LIVE_KEY, "secret_key": LIVE_SECRET, "mode": "P"},
)


def settings(base_url: str, **far: object) -> list[str]:
    """The settings of production, as in `--set`. far: further settings of the network `far`."""
    tables = {
        "signed": {**SIGNED, "base_url": base_url, **_SOON},
        "mtn": {**MTN, "base_url": base_url, **_SOON},
        "far": {**FAR, "base_url": base_url, **_SOON, **far},
    }
    routes = [{"nw": [nw], "network": network} for nw, network in NETWORKS.items()]
    return [
        "production=true",
        f"credentials={json.dumps(_CREDENTIALS)}",
        f"networks={json.dumps(tables)}",
        f"routes={json.dumps(routes)}",
        # Callbacks stay on this machine, and no name is resolved.
        'callback_hosts={"allow": ["127.0.0.0/8"]}',
        # A line for each payment would hide those that say that something is wrong.
        "log_level=warning",
    ]


@asynccontextmanager
async def networks(answer: Answer) -> AsyncIterator[tuple[str, list[HttpRequest]]]:
    """The address of a server that answers for all networks, and what comes there."""
    came: list[HttpRequest] = []
    server = FaultServer(came.append, answer, answer)
    async with server.running():
        yield server.url, came


@asynccontextmanager
async def producing(
    log: Path, store: str, answer: Answer, *more: str
) -> AsyncIterator[tuple[Server, list[HttpRequest]]]:
    """A production server at these networks, and what comes at the networks. more: settings."""
    async with (
        networks(answer) as (url, came),
        serving(log, *settings(url), *more, store=store) as server,
    ):
        yield server, came


def payment(transaction_id: str, **fields: object) -> bytes:
    """The request of a payment of mode P; over the network `signed` unless `nw` says otherwise."""
    body = collection(transaction_id, **{"nw": "AIR", **fields})
    return request_bytes("/make_payment", body, LIVE, credentials=False)


def notification(path: str, body: bytes, *headers: bytes) -> bytes:
    """The request of a notification, without credentials. path: a network, `/`, and an attempt."""
    return request_bytes(f"/_networks/{path}", body, *headers, credentials=False)


def signature_of(body: bytes) -> bytes:
    """The header by which a notification of the network `signed` is proven."""
    digest = hmac.new(_SIGNING_KEY.encode(), body, hashlib.sha256).hexdigest()
    return f"{SIGNATURE}: {digest}".encode()


def pending(request: HttpRequest) -> HttpReply:
    """The network `signed` takes every payment and decides none."""
    sent: dict[str, Any] = json.loads(request.body) if request.body else {}
    return HttpReply(200, json.dumps({"state": "NEW", "id": sent.get("id")}).encode())
