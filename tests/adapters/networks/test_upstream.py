"""The adapter `upstream`, against a sandbox gateway and against single scripted answers."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.adapters.networks.upstream import UpstreamNetwork, upstream
from sandbox_sim.domain.callbacks.callback_bodies import BODIES, Profile
from sandbox_sim.domain.callbacks.callbacks import compose
from sandbox_sim.domain.callbacks.signature import SIGNATURE_HEADER
from sandbox_sim.domain.networks.notifications import RawNotification
from sandbox_sim.domain.networks.outcomes import Outcome
from sandbox_sim.domain.networks.reports import Echo
from sandbox_sim.domain.payments.transactions import Status
from sandbox_sim.domain.vocabulary import Operation
from sandbox_sim.gateway.ports.network import (
    NetworkConfigError,
    StatusResult,
    SubmitResult,
    UnreadableNotification,
)
from sandbox_sim.testing.network_contract import HttpReply, HttpRequest
from sandbox_sim.testing.network_contract.fault_server import FaultServer
from tests.adapters.networks.fakes import KeptEvents, environment, query, request
from tests.adapters.networks.upstream_dialect import reply
from tests.conftest import Sandbox, StartSandbox
from tests.domain.samples import NOON, SETTLED, transaction

pytestmark = pytest.mark.decision("D39")

SETTINGS = {"client_key": "sandbox_key", "secret_key": "sandbox_secret"}


@asynccontextmanager
async def opened(base_url: str, **settings: Any) -> AsyncIterator[UpstreamNetwork]:
    network = upstream({"base_url": base_url, **SETTINGS, **settings}, environment())
    assert isinstance(network, UpstreamNetwork)
    await network.open(KeptEvents())
    yield network
    await network.close()


def raw(body: bytes, signature: str | None = None) -> RawNotification:
    headers = {} if signature is None else {SIGNATURE_HEADER.lower(): signature}
    return RawNotification("testnet", "POST", "A1", "", headers, body, NOON)


@pytest.mark.parametrize(
    "operation", sorted({Operation.COLLECT, Operation.DEPOSIT, Operation.PAYOUT, Operation.BILL})
)
async def test_a_payment_through_a_gateway_of_ours(sandbox: Sandbox, operation: Operation) -> None:
    asked = request(operation, notification_url=sandbox.inbox_url("A1"))
    async with opened(sandbox.url) as network:
        taken = await network.submit(asked)
        pending = await network.status(query(asked))
        await sandbox.advance(seconds=1)
        decided = await network.status(query(asked))
        (message,) = await sandbox.inbox("A1")
        came = raw(message["body"].encode(), message["headers"][SIGNATURE_HEADER.lower()])
        (told,) = network.parse(came)

        assert (taken.outcome, pending.outcome) == (Outcome.PENDING, Outcome.PENDING)
        assert decided.outcome is Outcome.SUCCEEDED
        assert network.verify(came)
        assert (told.outcome, told.attempt_id, told.reference) == (Outcome.SUCCEEDED, "A1", "R1")
        assert told.echo == Echo("R1", Decimal("10.50"))
        assert told.network_id == decided.network_id


async def test_an_sms_through_a_gateway_of_ours(sandbox: Sandbox) -> None:
    sent = request(Operation.SMS, amount=Decimal(1), currency="SMS", nw="", text="Hello")
    asked = replace(sent, sender_id="Shop", party="233244000001")
    refunded = replace(asked, reference="R2", party="233244000009")
    async with opened(sandbox.url) as network:
        first, second = await network.submit(asked), await network.submit(refunded)
        assert first.outcome is second.outcome is Outcome.PENDING
        ids = [each.network_id for each in (first, second)]
        questions = [
            replace(query(each), network_id=network_id)
            for each, network_id in zip((asked, refunded), ids, strict=True)
        ]
        assert (await network.status(questions[0])).outcome is Outcome.PENDING
        await sandbox.advance(seconds=1)
        good, bad = [await network.status(each) for each in questions]
        lost = await network.status(query(asked))

    assert (good.outcome, good.echo) == (Outcome.SUCCEEDED, Echo("R1", Decimal(1)))
    assert bad.outcome is Outcome.FAILED
    assert (lost.outcome, lost.found) == (Outcome.UNKNOWN, True)


async def test_an_sms_that_the_other_gateway_refuses(sandbox: Sandbox) -> None:
    fields = {"currency": "SMS", "nw": "", "text": "Hello", "sender_id": ""}
    asked = request(Operation.SMS, amount=Decimal(1), **fields)
    async with opened(sandbox.url) as network:
        no_sender = await network.submit(asked)
        number = replace(asked, sender_id="Shop", party="233540010000", reference="R2")
        not_allowed = await network.submit(number)

    assert (no_sender.outcome, no_sender.code) == (Outcome.REFUSED, "216")
    assert (not_allowed.outcome, not_allowed.code) == (Outcome.REFUSED, "S002")


async def test_airtime_and_a_card_through_a_gateway_of_ours(start_sandbox: StartSandbox) -> None:
    there = await start_sandbox(sandbox_card_entry=True)
    async with opened(there.url) as network:
        airtime = await network.submit(request(Operation.AIRTIME))
        card = await network.submit(request(Operation.CARD, reference="R2"))

        assert airtime.outcome is card.outcome is Outcome.PENDING
        assert card.redirect_url.startswith(there.url)


async def test_what_the_other_gateway_refuses_is_refused_in_the_same_code(sandbox: Sandbox) -> None:
    async with opened(sandbox.url) as network:
        refused = await network.submit(request(party="0540010000"))
        missing = await network.status(query())

        assert (refused.outcome, refused.code) == (Outcome.REFUSED, "019")
        assert (missing.outcome, missing.found) == (Outcome.UNKNOWN, False)


async def test_health_asks_for_no_operation(sandbox: Sandbox) -> None:
    async with opened(sandbox.url) as network:
        assert (await network.health()).ok


async def answered(
    answer: HttpReply, *, status: bool = False, repeated: bool = False
) -> tuple[SubmitResult | StatusResult, Sequence[HttpRequest]]:
    """The result that the adapter makes of one answer, and the requests that it sent."""
    requests: list[HttpRequest] = []
    server = FaultServer(requests.append, lambda _: answer, lambda _: answer)
    async with server.running(), opened(server.url) as network:
        if status:
            return await network.status(query()), requests
        return await network.submit(request(repeated=repeated)), requests


@pytest.mark.parametrize(
    ("answer", "outcome", "code"),
    [
        (reply(202, "202"), Outcome.PENDING, ""),
        (reply(200, "015"), Outcome.REFUSED, "015"),
        (reply(402, "402"), Outcome.REFUSED, "402"),
        (reply(400, "400"), Outcome.REFUSED, "400"),
        (reply(429, "429"), Outcome.REFUSED, "429"),
        (reply(401, "100"), Outcome.REFUSED, "500"),
        (reply(403, "403"), Outcome.REFUSED, "500"),
        (reply(200, "219"), Outcome.REFUSED, "219"),
        (reply(500, "500"), Outcome.UNKNOWN, ""),
        (reply(500, "202"), Outcome.UNKNOWN, ""),
        (reply(503, "019"), Outcome.UNKNOWN, ""),
        (reply(302, "202"), Outcome.UNKNOWN, ""),
        (reply(400, "202"), Outcome.UNKNOWN, ""),
        (reply(404, "404"), Outcome.UNKNOWN, ""),
        (HttpReply(429, b"slow down"), Outcome.UNKNOWN, ""),
        (HttpReply(202, b'["202"]'), Outcome.UNKNOWN, ""),
        (HttpReply(202, b'{"response_code": 202}'), Outcome.UNKNOWN, ""),
    ],
)
async def test_only_a_listed_answer_is_believed(
    answer: HttpReply, outcome: Outcome, code: str
) -> None:
    result, _ = await answered(answer)

    assert isinstance(result, SubmitResult)
    assert (result.outcome, result.code) == (outcome, code)


async def test_a_duplicate_of_our_own_request_is_there_and_asked_for() -> None:
    result, _ = await answered(reply(200, "219"), repeated=True)

    assert result.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("status", "outcome", "cancelled"),
    [
        ("000", Outcome.SUCCEEDED, False),
        ("001", Outcome.FAILED, False),
        ("002", Outcome.PENDING, False),
        ("003", Outcome.FAILED, True),
        ("004", Outcome.UNKNOWN, False),
    ],
)
async def test_the_status_of_the_other_gateway(
    status: str, outcome: Outcome, cancelled: bool
) -> None:
    record = {"transaction_id": "R1", "status": status, "status_desc": "said"}
    result, _ = await answered(reply(200, "000", response_data=record), status=True)

    assert (result.outcome, result.cancelled) == (outcome, cancelled)
    assert result.echo == Echo("R1")


async def test_the_client_s_fields_go_on_and_the_callback_comes_to_us() -> None:
    _, (sent,) = await answered(reply(202, "202"))

    assert sent.path == "/make_payment"
    assert sent.headers["user-agent"].startswith("sandbox_sim/")
    assert json.loads(sent.body) == {
        "service_id": 55,
        "reference": "Order 1",
        "transaction_id": "R1",
        "trans_type": "CTM",
        "amount": 10.5,
        "nw": "MTN",
        "callback_url": "http://127.0.0.1:9/_networks/testnet/A1",
        "request_time": "2026-01-01 09:00",
        "payment_option": "MOM",
        "customer_number": "0244000001",
        "currency_code": "GHS",
        "nickname": "Ama",
    }


@pytest.mark.decision("D27")
@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("status", [Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED])
def test_a_callback_in_every_profile_is_read(profile: Profile, status: Status) -> None:
    """A sandbox gateway writes and signs the callback."""
    assert profile in BODIES
    decided = transaction(transaction_id="R1").moved(status, SETTLED)
    callback = compose(decided, profile, "sandbox_secret", "C1", NOON)
    network = upstream({"base_url": "http://127.0.0.1:9", **SETTINGS}, environment())
    came = raw(callback.body.encode(), callback.signature)

    (told,) = network.parse(came)

    assert network.verify(came)
    succeeded = status is Status.SUCCESSFUL
    assert told.outcome is (Outcome.SUCCEEDED if succeeded else Outcome.FAILED)
    assert told.cancelled is (status is Status.CANCELLED)
    assert (told.echo.reference, told.echo.amount) == ("R1", Decimal("10.5"))
    assert told.network_id == "12345678901"


def test_a_callback_about_nothing_is_not_readable() -> None:
    network = upstream({"base_url": "http://127.0.0.1:9", **SETTINGS}, environment())

    with pytest.raises(UnreadableNotification, match="names no transaction"):
        network.parse(raw(b'{"amount": "1"}'))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({**SETTINGS}, "base_url"),
        ({**SETTINGS, "base_url": "not an address"}, "base_url"),
        ({**SETTINGS, "base_url": "http://127.0.0.1:9", "secret_key": ""}, "secret_key"),
        ({**SETTINGS, "base_url": "http://127.0.0.1:9", "colour": "red"}, "colour"),
    ],
)
def test_settings_that_are_wrong_are_named_and_not_shown(
    settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(NetworkConfigError, match=named) as raised:
        upstream(settings, environment())

    assert "sandbox_secret" not in str(raised.value)
