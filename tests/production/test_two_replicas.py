"""Two replicas on one Postgres: one transaction_id and one notification that reach both. D39."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import ClientSession, web

from sandbox_sim.adapters.clock_and_ids import RandomIds, VirtualClock
from sandbox_sim.bootstrap import build
from sandbox_sim.ports import Unit
from sandbox_sim.ports.network import StatusResult
from sandbox_sim.records.attempts import AttemptQuery
from sandbox_sim.records.reports import Outcome
from sandbox_sim.settings.schema import Settings
from sandbox_sim.web.transport.server import GatewayRunner
from tests import postgres
from tests.conftest import Sandbox, basic
from tests.kit.http_servers import listening
from tests.kit.requests import collection
from tests.live_records import paid_in
from tests.units import unit_of
from tests.web.control_api import get, post

SECRET = "far_secret"
LIVE = basic("live_key", "live_secret")

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


@pytest.fixture
async def far() -> AsyncIterator[Far]:
    far = Far()
    async with listening(
        web.post("/make_payment", far.make_payment), web.post("/callback", far.callback)
    ) as far.url:
        yield far


@pytest.fixture
async def replicas(far: Far) -> AsyncIterator[tuple[Sandbox, Sandbox]]:
    settings = Settings(
        store=postgres.empty_database(),
        production=True,
        callback_hosts={"allow": ["127.0.0.0/8"]},
        credentials=[{"client_key": "live_key", "secret_key": "live_secret", "mode": "P"}],
        networks={
            "account": {
                "adapter": "upstream",
                "base_url": far.url,
                "client_key": "far_key",
                "secret_key": SECRET,
            }
        },
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
            return Sandbox(url, gateway, session, runner)

        yield await start(1), await start(2)
        for runner in runners:
            await runner.cleanup()


async def pay(replica: Sandbox, far: Far) -> str:
    body = collection(callback_url=f"{far.url}/callback")
    return (await replica.post("/make_payment", body, Authorization=LIVE)).code


async def status(replica: Sandbox) -> str:
    body = {"service_id": 55, "transaction_id": "T1"}
    found = await replica.post("/get_transaction_status", body, Authorization=LIVE)
    return str(found.data["status"])


async def notify(replica: Sandbox, path: str, body: bytes) -> int:
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-Service-Signature": signature}
    async with replica.session.post(replica.url + path, data=body, headers=headers) as answer:
        return answer.status


def success(far: Far) -> tuple[str, bytes]:
    """The path and the body of the notification that T1 is successful."""
    path = "/_networks/" + far.submits[0]["callback_url"].partition("/_networks/")[2]
    body = json.dumps(
        {
            "trans_ref": "T1",
            "trans_id": "10000000009",
            "trans_status": "000/SUCCESS",
            "message": "SUCCESSFUL",
            "customer_number": "233244000001",
            "nw": "MTN",
            "payment_mode": "MOM",
            "amount": "10.5",
        }
    ).encode()
    return path, body


async def collected(replicas: tuple[Sandbox, Sandbox], far: Far) -> None:
    """The collection T1 of 10.50, successful."""
    assert await pay(replicas[0], far) == "202"
    assert await notify(replicas[0], *success(far)) == 200
    await until_both_say(replicas, "000")


async def refund(replica: Sandbox, amount: str) -> int:
    body = json.dumps({"amount": amount, "by": "ama", "reason": "sold out"}).encode()
    path = f"{replica.url}/_sandbox/transactions/55/T1/refund"
    async with replica.session.post(path, data=body) as answer:
        return answer.status


async def until_both_say(replicas: tuple[Sandbox, Sandbox], wanted: str) -> None:
    async with asyncio.timeout(20):
        while {await status(each) for each in replicas} != {wanted}:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def until_called_back(far: Far, *statuses: str) -> None:
    async with asyncio.timeout(20):
        while len(far.callbacks) < len(statuses):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert [each["trans_status"] for each in far.callbacks] == [*statuses]


async def test_a_transaction_id_that_reaches_both_replicas_at_once_is_sent_once(
    replicas: tuple[Sandbox, Sandbox], far: Far
) -> None:
    codes = await asyncio.gather(*(pay(each, far) for each in replicas for _ in range(3)))

    assert sorted(codes) == ["202", *["219"] * 5]
    assert [each["transaction_id"] for each in far.submits] == ["T1"]


async def test_a_notification_that_reaches_both_replicas_at_once_counts_once(
    replicas: tuple[Sandbox, Sandbox], far: Far
) -> None:
    assert await pay(replicas[0], far) == "202"
    path, body = success(far)

    answers = await asyncio.gather(*(notify(each, path, body) for each in replicas * 3))

    assert answers == [200] * 6
    await until_both_say(replicas, "000")
    await until_called_back(far, "000/SUCCESS")
    balances = await unit_of(replicas[1].gateway.store).balances(None, 55)
    assert [str(balance.available) for balance in balances.values()] == ["10.5"]


@pytest.mark.decision("D45")
async def test_refunds_that_reach_both_replicas_cannot_exceed_the_collection(
    replicas: tuple[Sandbox, Sandbox], far: Far
) -> None:
    await collected(replicas, far)
    # The wallet has more than the collection, so its balance is not the reason for a refusal.
    await unit_of(replicas[0].gateway.store).add_transfer(paid_in("100"))

    answers = await asyncio.gather(*(refund(each, "4") for each in replicas * 4))

    assert sorted(answers) == [200, 200, *[409] * 6]
    assert [each["amount"] for each in far.submits[1:]] == [4, 4]
    balances = await unit_of(replicas[1].gateway.store).balances(None, 55)
    (wallet,) = balances.values()
    assert (str(wallet.available), str(wallet.pending)) == ("102.5", "8")


@pytest.mark.decision("D45")
async def test_a_reversal_that_both_replicas_record_at_once_counts_once(
    replicas: tuple[Sandbox, Sandbox], far: Far
) -> None:
    await collected(replicas, far)
    production = [each.gateway.production for each in replicas]
    (found,) = await unit_of(replicas[0].gateway.store).list_attempts(AttemptQuery())

    async def record(number: int) -> None:
        parts = production[number % 2]
        assert parts is not None

        async def work(unit: Unit) -> None:
            attempt = await unit.attempt(found.id)
            assert attempt is not None
            await parts.asking.record(unit, attempt, StatusResult(Outcome.REVERSED))

        await replicas[number % 2].gateway.store.run(work)

    await asyncio.gather(*map(record, range(6)))

    assert {await status(each) for each in replicas} == {"001"}
    balances = await unit_of(replicas[1].gateway.store).balances(None, 55)
    assert [balance.available for balance in balances.values()] == [0]
    await until_called_back(far, "000/SUCCESS", "001/FAILED")


SIGNED = {"by": "ama", "reason": "by letter"}
OF_55 = {"service_id": 55, **SIGNED}


async def late_success(replicas: tuple[Sandbox, Sandbox], far: Far) -> None:
    """The collection T1 of 10.50, which a person called failed, and its network successful."""
    assert await pay(replicas[0], far) == "202"
    decision = {"status": "001", "by": "ama", "reason": "nothing came", "force": True}
    settled = await post(replicas[1], "transactions/55/T1/settle", **decision)
    assert settled.status == 200, settled.body
    assert await notify(replicas[0], *success(far)) == 200
    async with asyncio.timeout(20):
        while not (await get(replicas[1], "ledger/suspense"))["suspense"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def entered(replica: Sandbox, name: str, **fields: Any) -> dict[str, Any]:
    answer = await post(replica, f"ledger/{name}", **OF_55, **fields)
    assert answer.status == 200, answer.body
    return dict(answer.body)


async def read(replicas: tuple[Sandbox, Sandbox], path: str) -> dict[str, Any]:
    """The answer of both, which is the same."""
    one, other = [await get(each, path) for each in replicas]
    assert one == other
    return dict(one)


async def at_once(replicas: tuple[Sandbox, Sandbox], name: str, **fields: Any) -> str:
    """Make the same entry at both at the same moment; returns the message of the refusal."""
    asked = (post(each, f"ledger/{name}", **SIGNED, **fields) for each in replicas)
    done, refused = sorted(await asyncio.gather(*asked), key=lambda answer: answer.status)
    assert (done.status, refused.status) == (200, 409)
    assert refused.body["error"]["code"] == "entry_refused"
    return str(refused.body["error"]["message"])


@pytest.mark.decision("D44")
async def test_an_entry_of_one_replica_is_read_and_not_repeated_by_the_other(
    replicas: tuple[Sandbox, Sandbox], far: Far
) -> None:
    one, other = replicas
    await late_success(replicas, far)
    await entered(one, "topup", units=5, mode="P")
    amounts = {"amount": "20", "debit": "fees", "credit": "collection"}
    wrong = await entered(other, "adjust", **amounts)
    await entered(one, "adjust", **amounts)

    assert "is already reversed" in await at_once(replicas, "reverse", entry=wrong["id"])
    resolved = {"transaction": "T1", "to": "service"}
    assert "nothing is in suspense" in await at_once(replicas, "resolve", **resolved)

    balances = (await read(replicas, "ledger?mode=P&service_id=55&audit=true"))["balances"]
    found = {each["account"]: each["balance"] for each in balances}
    assert found == {"collection": "30.5", "sms": "5"}
    assert (await read(replicas, "ledger/suspense"))["suspense"] == []


@pytest.mark.decision("D44")
async def test_a_period_that_one_replica_closes_is_closed_for_the_other(
    replicas: tuple[Sandbox, Sandbox], far: Far
) -> None:
    one, other = replicas
    await collected(replicas, far)
    until = "2026-01-01T09:01:00Z"
    for each in replicas:
        await each.advance(minutes=1)

    refused = await at_once(replicas, "close", service_id=55, until=until)

    assert "everything before" in refused or "was closed just now" in refused
    closed = await read(replicas, "ledger/statement?service_id=55&period=1")
    assert [line["transaction_id"] for line in closed["lines"]] == ["T1"]
    assert (closed["total"], closed["until"]) == ("10.5", "2026-01-01T09:01:00.000Z")
    again = await post(other, "ledger/close", **OF_55, until=until)
    assert (again.status, again.body["error"]["field"]) == (409, "until")
    assert "is closed, in period 1" in again.body["error"]["message"]
    # A late entry belongs to the open period, also for the replica that did not make it.
    await entered(one, "adjust", amount="2", debit="fees", credit="collection")
    assert await read(replicas, "ledger/statement?service_id=55&period=1") == closed
    still_open = await read(replicas, "ledger/statement?service_id=55")
    assert (still_open["period"], still_open["total"]) == (2, "2")
    assert (await read(replicas, "ledger?mode=P&audit=true"))["agrees"]
