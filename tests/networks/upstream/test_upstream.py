"""The adapter `upstream`, against a sandbox gateway and against single scripted answers."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.callbacks.bodies import BODIES, compose
from sandbox_sim.networks.upstream.adapter import UpstreamNetwork, upstream
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import (
    NetworkConfigError,
    StatusQuery,
    StatusResult,
    SubmitResult,
    UnreadableNotification,
)
from sandbox_sim.records.callbacks import SIGNATURE_HEADER, Profile
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Echo, Outcome
from sandbox_sim.records.transactions import Status
from sandbox_sim.testing.network_contract import HttpReply, HttpRequest
from sandbox_sim.testing.network_contract.http_peer import FaultServer
from tests.conftest import Sandbox, StartSandbox
from tests.networks.fakes import KeptEvents, environment, query, request
from tests.networks.upstream_dialect import reply
from tests.records.samples import NOON, SETTLED, transaction

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
async def test_a_payment_succeeds_through_a_sandbox_gateway(
    sandbox: Sandbox, operation: Operation
) -> None:
    asked = request(operation, notification_url=sandbox.inbox_url("A1"))
    async with opened(sandbox.url) as network:
        taken = await network.submit(asked)
        pending = await network.status(query(asked))
        await sandbox.advance(seconds=1)
        decided = await network.status(query(asked))
        (message,) = await sandbox.inbox("A1")
        came = raw(message["body"].encode(), message["headers"][SIGNATURE_HEADER.lower()])
        (notification,) = network.parse(came)

        assert (taken.outcome, pending.outcome) == (Outcome.PENDING, Outcome.PENDING)
        assert decided.outcome is Outcome.SUCCEEDED
        assert network.verify(came)
        assert (notification.outcome, notification.attempt_id) == (Outcome.SUCCEEDED, "A1")
        assert notification.reference == "R1"
        assert notification.echo == Echo("R1", Decimal("10.50"))
        assert notification.network_id == decided.network_id


async def test_an_sms_succeeds_or_fails_through_a_sandbox_gateway(sandbox: Sandbox) -> None:
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


async def test_a_sandbox_gateway_takes_airtime_and_a_card(start_sandbox: StartSandbox) -> None:
    there = await start_sandbox(sandbox_card_entry=True)
    async with opened(there.url) as network:
        airtime = await network.submit(request(Operation.AIRTIME))
        card = await network.submit(request(Operation.CARD, reference="R2"))

        assert airtime.outcome is card.outcome is Outcome.PENDING
        assert card.redirect_url.startswith(there.url)


async def test_a_refusal_of_the_other_gateway_keeps_its_code(sandbox: Sandbox) -> None:
    message = request(Operation.SMS, amount=Decimal(1), nw="", sender_id="")
    stranger = replace(message, sender_id="Shop", party="233540010000", reference="R2")
    async with opened(sandbox.url) as network:
        asked = (request(party="0540010000"), message, stranger)
        refused = [await network.submit(each) for each in asked]
        missing = await network.status(replace(query(), submitted_at=VirtualClock().now()))

    assert [(each.outcome, each.code) for each in refused] == [
        (Outcome.REFUSED, code) for code in ("019", "216", "S002")
    ]
    assert (missing.outcome, missing.found) == (Outcome.UNKNOWN, False)


@pytest.mark.parametrize(
    ("status", "is_ok", "words"),
    [
        (400, True, "answers with HTTP 400"),
        (401, False, "HTTP 401: the network refuses the credentials; correct client_key and"),
        (403, False, "ask the network to add the address of this server to its list"),
        (404, False, "the network does not know this address; correct base_url"),
    ],
)
async def test_a_gateway_is_healthy_if_it_accepts_the_client(
    status: int, words: str, *, is_ok: bool
) -> None:
    server = FaultServer(lambda _: None, lambda _: reply(status, "400"), lambda _: reply(200, ""))
    async with server.running(), opened(server.url) as network:
        health = await network.health()

    assert health.ok is is_ok
    assert words in health.detail


async def answered(
    answer: HttpReply,
    *,
    status: StatusQuery | None = None,
    settings: dict[str, Any] | None = None,
    **fields: Any,
) -> tuple[SubmitResult | StatusResult, Sequence[HttpRequest]]:
    """The result that the adapter makes of one answer, and the requests that it sent."""
    requests: list[HttpRequest] = []
    server = FaultServer(requests.append, lambda _: answer, lambda _: answer)
    async with server.running(), opened(server.url, **(settings or {})) as network:
        if status is not None:
            return await network.status(status), requests
        return await network.submit(request(**fields)), requests


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
async def test_only_a_listed_answer_counts(answer: HttpReply, outcome: Outcome, code: str) -> None:
    result, _ = await answered(answer)

    assert isinstance(result, SubmitResult)
    assert (result.outcome, result.code) == (outcome, code)


@pytest.mark.parametrize(
    ("may_pass", "codes"),
    [
        (True, ["402", "429", "100", "401", "403", "237"]),
        (False, ["400", "015", "016", "019", "216", "371", "389", "S002"]),
    ],
    ids=["of our account or the load", "of the request"],
)
async def test_a_refusal_may_pass_unless_the_request_is_its_reason(
    may_pass: bool, codes: list[str]
) -> None:
    for code in codes:
        result, _ = await answered(reply(200, code), repeated=True)

        assert result.outcome is Outcome.REFUSED
        assert result.report.may_pass is may_pass, code


async def test_a_duplicate_of_our_own_request_is_unknown() -> None:
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
async def test_each_status_of_the_other_gateway_has_its_outcome(
    status: str, outcome: Outcome, cancelled: bool
) -> None:
    record = {"transaction_id": "R1", "status": status, "status_desc": "said"}
    result, _ = await answered(reply(200, "000", response_data=record), status=query())

    assert (result.outcome, result.cancelled) == (outcome, cancelled)
    assert result.echo == Echo("R1")


@pytest.mark.parametrize(
    ("code", "age_s", "settings", "found"),
    [
        ("027", 0, {}, False),
        ("027", 599.9, {}, False),
        ("027", 600, {}, True),
        ("027", 899.9, {"repeats_within_s": 60}, True),
        ("027", 59.9, {"repeats_within_s": 60}, False),
        ("027", None, {}, True),
        ("404", 100_000, {}, False),
    ],
)
async def test_027_means_not_found_only_while_the_payment_cannot_be_forgotten(
    code: str, age_s: float | None, settings: dict[str, Any], found: bool
) -> None:
    now = VirtualClock().now()
    submitted_at = None if age_s is None else now - timedelta(seconds=age_s)
    asked = replace(query(), submitted_at=submitted_at)

    result, _ = await answered(reply(200, code), status=asked, settings=settings)

    assert result == StatusResult(Outcome.UNKNOWN, found=found, reason="said")


def test_a_request_may_be_repeated_for_ten_minutes_if_duplicates_are_rejected() -> None:
    def within(**settings: Any) -> timedelta | None:
        made = upstream({"base_url": "http://127.0.0.1:9", **SETTINGS, **settings}, environment())
        return made.capabilities.repeats_within

    assert within(rejects_duplicates=True) == timedelta(seconds=600)
    assert within(rejects_duplicates=True, repeats_within_s=60) == timedelta(seconds=60)
    assert within(repeats_within_s=60) is None


async def test_the_fields_of_the_client_are_sent_with_our_callback_address() -> None:
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


@pytest.mark.parametrize("operation", [Operation.BILL, Operation.AIRTIME])
async def test_a_currency_the_interface_cannot_express_is_not_sent(operation: Operation) -> None:
    result, sent = await answered(reply(202, "202"), operation=operation, currency="EUR")

    assert (result.outcome, sent) == (Outcome.NOT_SENT, [])
    assert result.reason == f"the interface has no currency for {operation}, so it takes only GHS"


@pytest.mark.decision("D27")
@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("status", [Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED])
def test_a_callback_in_every_profile_is_read(profile: Profile, status: Status) -> None:
    """A sandbox gateway writes and signs the callback."""
    assert profile in BODIES
    decided = transaction(transaction_id="R1").with_status(status, SETTLED)
    callback = compose(decided, profile, "sandbox_secret", "C1", NOON)
    network = upstream({"base_url": "http://127.0.0.1:9", **SETTINGS}, environment())
    came = raw(callback.body.encode(), callback.signature)

    (notification,) = network.parse(came)

    assert network.verify(came)
    succeeded = status is Status.SUCCESSFUL
    assert notification.outcome is (Outcome.SUCCEEDED if succeeded else Outcome.FAILED)
    assert notification.cancelled is (status is Status.CANCELLED)
    assert (notification.echo.reference, notification.echo.amount) == ("R1", Decimal("10.5"))
    assert notification.network_id == "12345678901"
    with pytest.raises(UnreadableNotification, match="names no transaction"):
        network.parse(raw(b'{"amount": "1"}'))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({**SETTINGS}, "base_url"),
        ({**SETTINGS, "base_url": "not an address"}, "base_url"),
        ({**SETTINGS, "base_url": "http://127.0.0.1:9", "secret_key": ""}, "secret_key"),
        ({**SETTINGS, "base_url": "http://127.0.0.1:9", "colour": "red"}, "colour"),
        ({**SETTINGS, "base_url": "http://127.0.0.1:9", "repeats_within_s": "x"}, "repeats_within"),
    ],
)
def test_a_wrong_setting_is_named_without_its_value(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(NetworkConfigError, match=named) as raised:
        upstream(settings, environment())

    assert "sandbox_secret" not in str(raised.value)


@pytest.mark.parametrize("seconds", [0, -1, 900, 86_400, float("nan"), float("inf")])
def test_a_window_of_repeats_in_which_the_other_gateway_forgets_is_refused(seconds: float) -> None:
    settings = {**SETTINGS, "base_url": "http://127.0.0.1:9", "repeats_within_s": seconds}

    with pytest.raises(NetworkConfigError) as raised:
        upstream(settings, environment())

    assert str(raised.value) == (
        "repeats_within_s: must be above 0 and below 900, because the other gateway forgets a "
        "payment after 15 minutes, and would then take it a second time"
    )
