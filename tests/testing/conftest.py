"""A client of the gateway that blocks, as in most test suites."""

import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox_sim import SandboxGateway
from sandbox_sim.testing.remote import RemoteGateway
from sandbox_sim.testing.service_gateway import ServiceGateway
from tests.kit import requests

UNREACHABLE = "http://127.0.0.1:9/callback"


def posted(gateway: ServiceGateway, path: str, **body: Any) -> dict[str, Any]:
    """The answer to a request, sent with the standard library."""
    sent = json.dumps({"service_id": gateway.service_id, **body}).encode()
    request = urllib.request.Request(gateway.url + path, sent, gateway.headers)  # noqa: S310
    try:
        response = urllib.request.urlopen(request)  # noqa: S310
    except urllib.error.HTTPError as refusal:
        response = refusal
    with response:
        answer: dict[str, Any] = json.load(response)
        return answer


def collected(gateway: ServiceGateway, **fields: Any) -> dict[str, Any]:
    """The answer to a mobile money collection; its callback goes to the inbox `callbacks`."""
    return posted(gateway, "/make_payment", **collection(gateway, **fields))


def collection(gateway: ServiceGateway, **fields: Any) -> dict[str, Any]:
    own = {"service_id": gateway.service_id, "callback_url": gateway.inbox_url()}
    return requests.collection(**{**own, **fields})


def texted(
    gateway: ServiceGateway, to: str = "0244000001", text: str = "Your code is 1234"
) -> None:
    posted(gateway, "/sms/send", customer_number=to, msg_body=text, sender_id="Shop")


def status(gateway: ServiceGateway, transaction_id: str = "T1") -> dict[str, Any]:
    return posted(gateway, "/get_transaction_status", transaction_id=transaction_id)


@pytest.fixture
def gateway(sandbox_gateway: SandboxGateway) -> SandboxGateway:
    return sandbox_gateway


@pytest.fixture
def hanging() -> Iterator[str]:
    """The address of a receiver that takes a callback and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/callbacks"


def compact(text: str) -> list[str]:
    """The lines of a text, with two blanks between columns of any width."""
    return [re.sub(r"(?<=\S) {2,}", "  ", line) for line in text.splitlines()]


async def assert_wrong_timeouts_are_refused(gateway: SandboxGateway | RemoteGateway) -> None:
    """Assert that a wait for a callback refuses a value that is not a timeout."""
    wrong: tuple[Any, ...] = (float("nan"), float("inf"), -1, 600.5, True, "5", None)
    for timeout_s in wrong:
        refusal = f"timeout_s must be a number of seconds from 0 to 600, not {timeout_s!r}"

        with pytest.raises(ValueError, match=f"^{refusal}$"):
            gateway.wait_callback(timeout_s=timeout_s)
        with pytest.raises(ValueError, match=f"^{refusal}$"):
            await gateway.aio.wait_callback(timeout_s=timeout_s)
