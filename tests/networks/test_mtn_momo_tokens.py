"""Tokens of MTN MoMo: cached, and renewed before they end and on 401 by one request for all."""

import asyncio

import pytest

from chaos.production.fake_momo import COLLECTION, FakeMomo, gateway_error, reply
from sandbox_sim.operations import Operation
from sandbox_sim.records.reports import Outcome
from sandbox_sim.testing.network_contract import Fault, HttpReply, HttpRequest
from sandbox_sim.testing.network_contract.http_peer import closed_address
from tests.networks.fakes import KeptEvents, query
from tests.networks.momo import Momo, MomoClock, adapter, answering, opened, request, scripted

pytestmark = pytest.mark.decision("D39")


def numbered(number: int) -> str:
    """A UUID of version 4."""
    return f"00000000-0000-4000-8000-{number:012}"


async def test_a_token_of_each_product_is_requested_once_as_mtn_specifies() -> None:
    async with opened(FakeMomo(token_needs_environment=True)) as momo:
        for number in range(3):
            await momo.network.submit(request(reference=numbered(number)))
        await momo.network.status(query(request()))
        await momo.network.submit(request(Operation.PAYOUT, reference=numbered(3)))

        asked, of_payouts = momo.fake.came("token")
        assert (asked.method, asked.path, asked.body) == ("POST", "/collection/token/", b"")
        assert asked.headers["authorization"] == f"Basic {COLLECTION.basic}"
        assert asked.headers["ocp-apim-subscription-key"] == COLLECTION.subscription_key
        assert asked.headers["x-target-environment"] == "mtnghana"
        assert of_payouts.path == "/disbursement/token/"


@pytest.mark.parametrize(("expires_in", "seconds"), [(3600, 3541), (60, 31)])
async def test_a_token_is_renewed_before_it_ends(expires_in: int, seconds: float) -> None:
    async with opened(FakeMomo(expires_in=expires_in)) as momo:
        await momo.network.submit(request())
        momo.clock.seconds = seconds - 2
        await momo.network.submit(request(reference=numbered(2)))
        assert len(momo.fake.tokens) == 1

        momo.clock.seconds = seconds
        await momo.network.submit(request(reference=numbered(3)))
        await momo.server.until(lambda: len(momo.fake.tokens) == 2)


async def test_no_payment_waits_for_a_new_token_until_the_old_one_ends(momo: Momo) -> None:
    await momo.network.submit(request())
    momo.clock.seconds = 3541
    momo.server.hold("token")

    numbers = [request(reference=numbered(number)) for number in range(50)]
    results = await asyncio.gather(*map(momo.network.submit, numbers))

    assert {each.outcome for each in results} == {Outcome.PENDING}
    await momo.server.until(lambda: len(momo.fake.tokens) == 2)
    first, second = momo.fake.tokens
    sent = {each.headers["authorization"] for each in momo.fake.came("requesttopay")}
    assert sent == {f"Bearer {first}"}

    momo.clock.seconds = 3600
    late = asyncio.create_task(momo.network.submit(request(reference=numbered(50))))
    momo.server.release()
    assert (await late).outcome is Outcome.PENDING
    assert momo.fake.came("requesttopay")[-1].headers["authorization"] == f"Bearer {second}"


async def test_the_old_token_is_used_until_it_ends_if_no_new_one_comes() -> None:
    fake = FakeMomo()
    async with opened(fake) as momo:
        await momo.network.submit(request())
        momo.clock.seconds = 3599
        fake.gives_tokens = False

        taken = await momo.network.submit(request(reference=numbered(2)))
        momo.clock.seconds = 3600
        refused = await momo.network.submit(request(reference=numbered(3)))

        assert taken.outcome is Outcome.PENDING
        assert refused.outcome is Outcome.NOT_SENT
        assert "HTTP 500" in refused.reason


@pytest.mark.parametrize("refuse", ["submit", "status"])
async def test_a_token_that_ended_in_flight_is_renewed_on_401(momo: Momo, refuse: str) -> None:
    await momo.network.submit(request())
    momo.fake.expire_tokens()

    again = request(reference=numbered(2))
    if refuse == "submit":
        outcome = (await momo.network.submit(again)).outcome
    else:
        outcome = (await momo.network.status(query(request()))).outcome

    assert outcome is Outcome.PENDING
    assert len(momo.fake.came("token")) == 2


async def test_a_second_401_is_a_refusal_of_our_account() -> None:
    async with scripted(lambda _: gateway_error(401, "Access denied")) as (network, requests):
        result = await network.submit(request())
        found = await network.status(query(request()))

    paths = [each.path.rpartition("/v1_0/")[2] for each in requests]
    assert (result.outcome, result.code) == (Outcome.REFUSED, "500")
    assert result.reason == "HTTP 401, Access denied"
    assert paths.count("requesttopay") == 2
    assert (found.outcome, found.found) == (Outcome.UNKNOWN, True)


async def test_a_401_without_a_new_token_is_a_refusal_too() -> None:
    fake = FakeMomo()
    async with opened(fake) as momo:
        await momo.network.submit(request())
        fake.expire_tokens()
        fake.gives_tokens = False

        result = await momo.network.submit(request(reference=numbered(2)))

        assert (result.outcome, result.code) == (Outcome.REFUSED, "500")
        assert result.reason == "HTTP 401, Unauthorized; no token: HTTP 500"
        assert len(fake.payments) == 1


@pytest.mark.parametrize(
    "answer",
    [
        reply(200),
        reply(200, access_token=7),
        reply(200, access_token="two words"),
        HttpReply(200, b'["token"]'),
        HttpReply(200, b"not JSON"),
        reply(201, access_token="token"),
        reply(401, error="login_failed"),
        reply(500),
    ],
    ids=lambda answer: f"{answer.status} {answer.body!r}",
)
async def test_a_payment_without_a_token_is_not_sent(answer: HttpReply) -> None:
    requests: list[HttpRequest] = []

    def answered(came: HttpRequest) -> HttpReply:
        requests.append(came)
        return answer

    async with answering(answered) as (network, _):
        result = await network.submit(request())

    assert (result.outcome, result.network_fault) == (Outcome.NOT_SENT, answer.status == 500)
    assert {each.path for each in requests} == {"/collection/token/"}


async def test_a_network_that_cannot_be_reached_is_a_network_fault() -> None:
    network = adapter(closed_address(), MomoClock())
    await network.open(KeptEvents())

    result = await network.submit(request())
    found = await network.status(query(request()))
    health = await network.health()
    await network.close()

    assert (result.outcome, result.network_fault) == (Outcome.NOT_SENT, True)
    assert (found.outcome, found.found) == (Outcome.UNKNOWN, True)
    assert not health.ok


@pytest.mark.parametrize("expires_in", [None, "3600", "soon", 0, -1])
async def test_an_unreadable_expires_in_counts_as_an_hour(expires_in: object) -> None:
    fake = FakeMomo()

    def answer(came: HttpRequest) -> HttpReply:
        if not came.path.endswith("/token/"):
            return HttpReply(202)
        fake.answer(came)
        return reply(200, access_token=fake.tokens[-1], expires_in=expires_in)

    clock = MomoClock()
    async with answering(answer, clock) as (network, _):
        for seconds in (0, 3539, 3600):
            clock.seconds = seconds
            await network.submit(request())

    assert len(fake.tokens) == 2


async def test_close_ends_the_payments_that_wait_for_a_token() -> None:
    clock = MomoClock()
    async with answering(lambda _: HttpReply(202), clock) as (network, server):
        server.misbehave(Fault.SILENCE)
        waiting = [asyncio.create_task(network.submit(request())) for _ in range(2)]
        while not server.silences:
            await clock.pause(0)

        await network.close()

        results = await asyncio.gather(*waiting)
    assert {each.outcome for each in results} == {Outcome.NOT_SENT}


async def test_a_payment_and_its_token_share_one_timeout() -> None:
    fake, clock = FakeMomo(), MomoClock()

    def answer(came: HttpRequest) -> HttpReply:
        clock.seconds += 4
        return fake.answer(came)

    async with answering(answer, clock) as (network, _):
        result = await network.submit(request())

    assert result.outcome is Outcome.PENDING
    assert clock.limits == [10, 10, 6]  # waiting for a token, the request for it, the payment


async def test_the_health_check_requests_each_token_and_names_a_wrong_product(momo: Momo) -> None:
    await momo.network.submit(request())
    health = await momo.network.health()

    assert (health.ok, health.detail) == (True, "gives tokens for collection and disbursement")
    asked = [each.path for each in momo.fake.requests[2:]]
    assert asked == ["/collection/token/", "/disbursement/token/"]
    async with opened(disbursement_api_key="another-key") as wrong:
        health = await wrong.network.health()
    assert not health.ok
    assert health.detail == (
        "disbursement: no token: HTTP 401: the network refuses the credentials; correct "
        "api_user, api_key and subscription_key of this product"
    )
