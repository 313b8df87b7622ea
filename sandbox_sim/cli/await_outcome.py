"""Waits for the outcome of an accepted request: its callback, or its messages."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.cli.client import Gateway, Refused

Shown = dict[str, Any]

_CLOCK: Final = SystemClock()

# `wait` waits for success only, so the records are read again after this time to see a failure.
_LOOK_AGAIN_S: Final = 0.5


def callback_of(
    gateway: Gateway, service_id: object, transaction_id: object, timeout_s: float
) -> Shown | None:
    """Return the callback of the newest payment with this id.

    Waits until it was tried or dropped, at most `timeout_s`; None if there is no callback by then.
    """
    answer = gateway.control("GET", "transactions", service_id, transaction_id)
    # An older payment may have the same transaction_id.
    network_id = json.loads(answer.text)["network_transaction_id"]
    found = _watched(
        gateway,
        "callbacks",
        {"service_id": service_id, "network_transaction_id": network_id},
        {"state": "delivered"},
        lambda callbacks: any(
            callback["attempts"] or callback["state"] == "dropped" for callback in callbacks
        ),
        count=1,
        timeout_s=timeout_s,
    )
    return found[0] if found else None


def messages_of(
    gateway: Gateway, service_id: object, sent: Mapping[str, Any], timeout_s: float
) -> Sequence[Shown]:
    """Return the messages of a send. Waits until each is sent or refunded, at most `timeout_s`."""
    name = "batch_id" if sent["batch_id"] else "processing_id"
    return _watched(
        gateway,
        "sms",
        {"service_id": service_id, name: sent[name]},
        {"status": "SENT"},
        lambda messages: all(each["status"] != "ACKNOWLEDGED" for each in messages),
        count=sent.get("total_recipients", 1),
        timeout_s=timeout_s,
    )


def _watched(
    gateway: Gateway,
    plural: str,
    match: Mapping[str, object],
    wish: Mapping[str, object],
    over: Callable[[Sequence[Shown]], bool],
    *,
    count: int,
    timeout_s: float,
) -> Sequence[Shown]:
    """Return the records that match, as soon as `over` says that nothing more will change.

    wish: the fields of a record that succeeded; the control API waits for these.
    """
    until = _CLOCK.monotonic() + timeout_s
    while True:
        left = max(0.0, until - _CLOCK.monotonic())
        wished = {"match": {**match, **wish}, "count": count}
        try:
            gateway.control(
                "POST", plural, "wait", body={**wished, "timeout_s": min(left, _LOOK_AGAIN_S)}
            )
        except Refused as refused:
            if refused.status != 408:
                raise
        body = {"match": match, "limit": count}
        found = json.loads(gateway.control("POST", plural, "find", body=body).text)[plural]
        if (found and over(found)) or left == 0:
            return list(found)
