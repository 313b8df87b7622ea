"""The bodies of the requests that `trigger` sends."""

from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.domain.sample_requests import Sample


def body_of(
    sample: Sample, service_id: int, gateway_url: str, callback_url: str | None, *, fail: bool
) -> dict[str, object]:
    """The body of a request; each payment has a new `transaction_id`.

    gateway_url: without a slash at the end. Its inboxes are the landing page of a card, and the
    receiver of the callback unless `callback_url` names another.
    """
    inbox = f"{gateway_url}/_sandbox/inbox"
    own = {**sample.fields, **(sample.declined if fail else {})}
    if sample.is_card:
        own["landing_page"] = f"{inbox}/thanks"
    if not sample.is_payment:
        return {"service_id": service_id, **own}
    return {
        "service_id": service_id,
        "reference": "Order 1001",
        "transaction_id": f"TRIGGER-{RandomIds().record_id()[:8]}",
        "amount": 10.5,
        **own,
        "nickname": "Ama Mensah",
        "callback_url": callback_url or f"{inbox}/trigger",
        "request_time": SystemClock().now().strftime("%Y-%m-%d %H:%M:%S"),
    }
