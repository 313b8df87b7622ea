"""Two replicas on one Postgres: one transaction_id and one notification that reach both. D39."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from aiohttp import ClientSession, web

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.bootstrap import build
from sandbox_sim.callbacks.bodies import sign
from sandbox_sim.ports import Unit
from sandbox_sim.ports.network import StatusResult
from sandbox_sim.records.attempts import AttemptQuery
from sandbox_sim.records.reports import Outcome
from sandbox_sim.settings.schema import Settings
from sandbox_sim.web.transport.server import GatewayRunner
from tests import postgres
from tests.conftest import Sandbox, basic
from tests.kit.http_servers import listening
from tests.live_records import paid_in
from tests.production.settings import LIVE
from tests.units import unit_of
from tests.web.control_api import get, post

SECRET = "far_secret"
SIGNED = {"by": "ama", "reason": "by letter"}
OF_55 = {"service_id": 55, **SIGNED}

pytestmark = pytest.mark.decision("D39")


@dataclass
class Far:
    """The network, which takes every payment, and the shop, which takes every callback."""

    url: str = ""
    submits: list[dict[str, Any]] = field(default_factory=list)
    callbacks: list[dict[str, Any]] = field(default_factory=list)

    async def make_payment(self, request: web.Request) -> web.Response:
        self.submits.append(await request.json())
        body = {"response_code": "202", "response_message": "received"}
        return web.json_response(body, status=202)

    async def callback(self, request: web.Request) -> web.Response:
        self.callbacks.append(await request.json())
        return web.Response()

    async def called_back(self, *statuses: str) -> None:
        """Wait for as many callbacks, and assert that they report these statuses."""
        async with asyncio.timeout(20):
            while len(self.callbacks) < len(statuses):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert [each["trans_status"] for each in self.callbacks] == [*statuses]


@pytest.fixture
async def far() -> AsyncIterator[Far]:
    far = Far()
    async with listening(
        web.post("/make_payment", far.make_payment), web.post("/callback", far.callback)
    ) as far.url:
        yield far


@dataclass
class Replicas:
    """Two gateways on one database, with one network."""

    one: Sandbox
    other: Sandbox
    far: Far

    @property
    def both(self) -> tuple[Sandbox, Sandbox]:
        return self.one, self.other

    async def pay(self, replica: Sandbox) -> str:
        return (await replica.collect(callback_url=f"{self.far.url}/callback")).code

    async def notify(self, replica: Sandbox) -> int:
        """Send the notification that T1 is successful; returns the HTTP status of the answer."""
        path = "/_networks/" + self.far.submits[0]["callback_url"].partition("/_networks/")[2]
        trans = {"trans_ref": "T1", "trans_id": "10000000009", "trans_status": "000/SUCCESS"}
        payment = {"customer_number": "233244000001", "nw": "MTN", "payment_mode": "MOM"}
        said = {**trans, **payment, "message": "SUCCESSFUL", "amount": "10.5"}
        body = json.dumps(said).encode()
        headers = {"X-Service-Signature": sign(body, SECRET)}
        async with replica.session.post(replica.url + path, data=body, headers=headers) as answer:
            return answer.status

    async def statuses(self) -> set[str]:
        """The status of T1 at each."""
        return {(await each.status()).data["status"] for each in self.both}

    async def until_successful(self) -> None:
        async with asyncio.timeout(20):
            while await self.statuses() != {"000"}:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def collect(self) -> None:
        """The collection T1 of 10.50, successful."""
        assert await self.pay(self.one) == "202"
        assert await self.notify(self.one) == 200
        await self.until_successful()

    async def wallet(self) -> tuple[object, object]:
        """What is available and pending in the only wallet."""
        (wallet,) = (await unit_of(self.other.gateway.store).balances(None, 55)).values()
        return wallet.available, wallet.pending

    async def read(self, path: str) -> dict[str, Any]:
        """The answer of both, which is the same."""
        one, other = [await get(each, path) for each in self.both]
        assert one == other
        return dict(one)

    async def enter_at_once(self, name: str, **fields: Any) -> str:
        """Make the same entry at both at the same moment; returns the message of the refusal."""
        asked = (post(each, f"ledger/{name}", **SIGNED, **fields) for each in self.both)
        done, refused = sorted(await asyncio.gather(*asked), key=lambda answer: answer.status)
        assert (done.status, refused.status) == (200, 409)
        assert refused.body["error"]["code"] == "entry_refused"
        return str(refused.body["error"]["message"])


@pytest.fixture
async def replicas(far: Far) -> AsyncIterator[Replicas]:
    account = {"adapter": "upstream", "client_key": "far_key", "secret_key": SECRET}
    settings = Settings(
        store=postgres.empty_database(),
        production=True,
        callback_hosts={"allow": ["127.0.0.0/8"]},
        credentials=[LIVE],
        networks={"account": {**account, "base_url": far.url}},
        routes=[{"network": "account"}],
    )
    runners = []
    async with ClientSession() as session:

        async def start(seed: int) -> Sandbox:
            gateway = build(settings, clock=VirtualClock(), ids=RandomIds(seed=seed))
            runner = GatewayRunner(gateway.app)
            runners.append(runner)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            headers = {"Authorization": basic("live_key", "live_secret")}
            return Sandbox(url, gateway, session, runner, headers=headers)

        yield Replicas(await start(1), await start(2), far)
        for runner in runners:
            await runner.cleanup()


async def entered(replica: Sandbox, name: str, **fields: Any) -> dict[str, Any]:
    answer = await post(replica, f"ledger/{name}", **OF_55, **fields)
    assert answer.status == 200, answer.body
    return dict(answer.body)


async def test_a_transaction_id_that_reaches_both_replicas_at_once_is_sent_once(
    replicas: Replicas,
) -> None:
    codes = await asyncio.gather(*map(replicas.pay, replicas.both * 3))

    assert sorted(codes) == ["202", *["219"] * 5]
    assert [each["transaction_id"] for each in replicas.far.submits] == ["T1"]


async def test_a_notification_that_reaches_both_replicas_at_once_counts_once(
    replicas: Replicas,
) -> None:
    assert await replicas.pay(replicas.one) == "202"

    answers = await asyncio.gather(*map(replicas.notify, replicas.both * 3))

    assert answers == [200] * 6
    await replicas.until_successful()
    await replicas.far.called_back("000/SUCCESS")
    assert await replicas.wallet() == (Decimal("10.5"), 0)


@pytest.mark.decision("D45")
async def test_refunds_that_reach_both_replicas_cannot_exceed_the_collection(
    replicas: Replicas,
) -> None:
    await replicas.collect()
    # The wallet has more than the collection, so its balance is not the reason for a refusal.
    await unit_of(replicas.one.gateway.store).add_transfer(paid_in("100"))

    refunds = (
        post(each, "transactions/55/T1/refund", amount="4", **SIGNED) for each in replicas.both * 4
    )
    answers = await asyncio.gather(*refunds)

    assert sorted(each.status for each in answers) == [200, 200, *[409] * 6]
    assert [each["amount"] for each in replicas.far.submits[1:]] == [4, 4]
    assert await replicas.wallet() == (Decimal("102.5"), 8)


@pytest.mark.decision("D45")
async def test_a_reversal_that_both_replicas_record_at_once_counts_once(replicas: Replicas) -> None:
    await replicas.collect()
    (found,) = await unit_of(replicas.one.gateway.store).list_attempts(AttemptQuery())

    async def record(replica: Sandbox) -> None:
        production = replica.gateway.production
        assert production is not None

        async def work(unit: Unit) -> None:
            attempt = await unit.attempt(found.id)
            assert attempt is not None
            await production.asking.record(unit, attempt, StatusResult(Outcome.REVERSED))

        await replica.gateway.store.run(work)

    await asyncio.gather(*map(record, replicas.both * 3))

    assert await replicas.statuses() == {"001"}
    assert await replicas.wallet() == (0, 0)
    await replicas.far.called_back("000/SUCCESS", "001/FAILED")


@pytest.mark.decision("D44")
async def test_an_entry_of_one_replica_is_read_and_not_repeated_by_the_other(
    replicas: Replicas,
) -> None:
    """T1 is in suspense: a person called it failed, and its network successful."""
    assert await replicas.pay(replicas.one) == "202"
    decision = {**SIGNED, "status": "001", "force": True}
    settled = await post(replicas.other, "transactions/55/T1/settle", **decision)
    assert settled.status == 200, settled.body
    assert await replicas.notify(replicas.one) == 200
    async with asyncio.timeout(20):
        while not (await get(replicas.other, "ledger/suspense"))["suspense"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await entered(replicas.one, "topup", units=5, mode="P")
    amounts = {"amount": "20", "debit": "fees", "credit": "collection"}
    wrong = await entered(replicas.other, "adjust", **amounts)
    await entered(replicas.one, "adjust", **amounts)

    assert "is already reversed" in await replicas.enter_at_once("reverse", entry=wrong["id"])
    resolved = {"transaction": "T1", "to": "service"}
    assert "nothing is in suspense" in await replicas.enter_at_once("resolve", **resolved)

    balances = (await replicas.read("ledger?mode=P&service_id=55&audit=true"))["balances"]
    found = {each["account"]: each["balance"] for each in balances}
    assert found == {"collection": "30.5", "sms": "5"}
    assert (await replicas.read("ledger/suspense"))["suspense"] == []


@pytest.mark.decision("D44")
async def test_a_period_that_one_replica_closes_is_closed_for_the_other(replicas: Replicas) -> None:
    await replicas.collect()
    until = "2026-01-01T09:01:00Z"
    for each in replicas.both:
        await each.advance(minutes=1)

    refused = await replicas.enter_at_once("close", service_id=55, until=until)

    assert "everything before" in refused or "was closed just now" in refused
    closed = await replicas.read("ledger/statement?service_id=55&period=1")
    assert [line["transaction_id"] for line in closed["lines"]] == ["T1"]
    assert (closed["total"], closed["until"]) == ("10.5", "2026-01-01T09:01:00.000Z")
    again = await post(replicas.other, "ledger/close", **OF_55, until=until)
    assert (again.status, again.body["error"]["field"]) == (409, "until")
    assert "is closed, in period 1" in again.body["error"]["message"]
    # A late entry belongs to the open period, also for the replica that did not make it.
    await entered(replicas.one, "adjust", amount="2", debit="fees", credit="collection")
    assert await replicas.read("ledger/statement?service_id=55&period=1") == closed
    still_open = await replicas.read("ledger/statement?service_id=55")
    assert (still_open["period"], still_open["total"]) == (2, "2")
    assert (await replicas.read("ledger?mode=P&audit=true"))["agrees"]
