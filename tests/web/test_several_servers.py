"""Two servers on one Postgres, each on its own port: to a client they are one gateway."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from aiohttp import ClientSession, CookieJar

from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.ports import store as store_port
from sandbox_sim.records.callbacks import DeliveryState
from sandbox_sim.stores.postgres import postgres_notifications
from sandbox_sim.stores.postgres.postgres_store import PostgresStore, PostgresUnit
from tests import postgres
from tests.conftest import Sandbox, Seen, StartSandbox
from tests.proxy import Proxy, proxy
from tests.stores.conftest import eventually
from tests.web.conftest import Receiver, kept_callback, kept_callbacks
from tests.web.control_api import ask, get, post
from tests.web.events import fields, listening


@pytest.fixture
def database() -> str:
    return postgres.empty_database()


@pytest.fixture
def start(start_sandbox: StartSandbox, database: str) -> StartSandbox:
    """A function that starts another server on the same database."""
    return partial(start_sandbox, store=database)


@pytest.mark.spec("service.6", "service.8")
@pytest.mark.decision("D16")
async def test_servers_share_payments_waits_the_clock_and_faults(start: StartSandbox) -> None:
    one, other = await start(), await start()
    asked = b'{"match": {"service_id": 55, "status": "000"}, "timeout_s": 60}'
    waiting = asyncio.create_task(ask(other, "POST", "/_sandbox/transactions/wait", asked))
    for number in range(3):
        await one.collect(transaction_id=f"T{number}", service_id=56)

    assert (await one.collect(callback_url=one.inbox_url("paid"))).code == "202"
    assert (await other.status()).data["status"] == "002"
    assert not waiting.done()
    await one.advance(seconds=1)

    assert (await other.status()).data["status"] == "000"
    waited = await waiting
    assert [each["transaction_id"] for each in waited.body["transactions"]] == ["T1"]
    (message,) = await other.inbox("paid")
    network_id = (await other.status()).data["network_transaction_id"]
    assert message["json"]["trans_id"] == network_id
    assert message["signature"] == "valid"

    await one.advance(minutes=20)
    assert other.gateway.clock.now() == one.gateway.clock.now()
    assert (await other.status()).code == "027"
    await other.collect(transaction_id="T2")
    await other.advance(seconds=1)
    assert (await one.status("T2")).data["status"] == "000"

    assert (await post(one, "faults", fault={"status": 503}, times=5)).status == 201
    seen = await asyncio.gather(*(each.status() for each in (one, other) * 8))
    assert [each.status for each in seen].count(503) == 5


async def test_servers_share_a_changed_setting_until_the_last_stops(start: StartSandbox) -> None:
    one, other = await start(), await start()

    await ask(one, "PATCH", "/_sandbox/config", b'{"approval": "handset"}')
    assert (await other.collect()).rule == "D33"
    await one.stop()
    third = await start()
    assert (await third.collect(transaction_id="T2")).rule == "D33"

    await other.stop()
    await third.stop()
    last = await start()
    assert (await last.collect(transaction_id="T3")).rule != "D33"


async def test_the_live_feed_of_a_server_has_the_events_of_all_servers(start: StartSandbox) -> None:
    one, other = await start(), await start()
    async with listening(one, "?service_id=55&types=transaction,clock") as feed:
        store = other.gateway.store
        assert isinstance(store, PostgresStore)
        assert store.relay.remote_readers

        await other.collect()
        begun = await feed.next()
        await one.advance(seconds=1)
        ended = await feed.take(2)
        await other.advance(seconds=1)
        moved = await feed.next()

    assert fields([begun, *ended[:1]], "status") == [("transaction", "002"), ("transaction", "000")]
    clocks = fields([*ended[1:], moved], "shift_s")
    assert clocks == [("clock", 1), ("clock", 2)]


@pytest.mark.decision("D33")
async def test_a_phone_that_scans_the_qr_code_of_one_server_logs_in_at_another(
    start: StartSandbox, qr_texts: list[str]
) -> None:
    """A code that replaces the login would be known to one process only."""
    public = "http://gateway.test"
    settings = {"control_token": "s3cret", "host": "0.0.0.0", "public_url": public}
    one, other = await start(**settings), await start(**settings)
    browser = {"Accept": "text/html"}
    page = f"{one.url}/_sandbox/handset/0244000001"
    async with one.session.get(page, headers=browser | {"Authorization": "Bearer s3cret"}) as seen:
        assert "The phone asks for the control token once" in await seen.text()

    jar = CookieJar(unsafe=True)
    async with ClientSession(headers=browser, cookie_jar=jar) as phone:
        async with phone.get(qr_texts[0].replace(public, other.url)) as login:
            asked = login.url.query["next"]
            assert login.url.path == "/_sandbox/login"
        form = {"token": "s3cret", "next": asked}
        async with phone.post(login.url.with_query(None), data=form) as seen:
            assert (seen.status, seen.url.path_qs) == (200, "/_sandbox/handset/0244000001?alone")


@pytest.mark.decision("D18")
async def test_each_callback_is_sent_by_only_one_server(start: StartSandbox) -> None:
    one = await start(clock=SystemClock(), settle_delay_ms=20)
    other = await start(clock=SystemClock(), settle_delay_ms=20)
    ids = [f"T{number}" for number in range(30)]
    await asyncio.gather(
        *(
            each.collect(transaction_id=name, callback_url=one.inbox_url("orders"))
            for name, each in zip(ids, (one, other) * 15, strict=True)
        )
    )

    async def all_recorded() -> bool:
        states = [each.state for each in await kept_callbacks(one)]
        return states == [DeliveryState.DELIVERED] * 30

    await eventually(all_recorded)

    bodies = [message["json"] for message in await other.inbox()]
    assert sorted(body["trans_ref"] for body in bodies) == sorted(ids)
    assert len({body["trans_id"] for body in bodies}) == 30


@pytest.mark.decision("D16")
@pytest.mark.parametrize("pay", [Sandbox.collect, Sandbox.card])
async def test_another_server_does_not_send_a_callback_before_its_answer_is_written(
    start: StartSandbox, monkeypatch: pytest.MonkeyPatch, pay: Callable[..., Awaitable[Seen]]
) -> None:
    soon = {"settle_delay_ms": 1, "card_auto_complete_ms": 1}
    one, other = await start(**soon), await start(**soon)
    gate = one.gateway.deliveries.gate
    release, held = gate.release, list[str]()
    monkeypatch.setattr(gate, "release", held.append)

    assert (await pay(one)).code in {"202", "000"}
    await one.advance(milliseconds=1)
    assert await other.gateway.jobs.run_due(one.gateway.clock.now()) == []
    assert await one.inbox() == []

    release(held[0])

    async def arrived() -> bool:
        return len(await one.inbox()) == 1

    await eventually(arrived)


class TestUnavailablePostgres:
    @pytest.fixture
    async def database_proxy(self, database: str) -> AsyncIterator[Proxy]:
        async with proxy(database) as database_proxy:
            yield database_proxy

    @pytest.fixture
    async def sandbox(
        self, database_proxy: Proxy, start: StartSandbox, monkeypatch: pytest.MonkeyPatch
    ) -> Sandbox:
        monkeypatch.setattr(postgres_notifications, "_RECONNECT_S", 0.05)
        monkeypatch.setattr(store_port, "STORE_PAUSE_S", 0.05)
        return await start(clock=SystemClock(), store=database_proxy.url, settle_delay_ms=50)

    async def ready(self, sandbox: Sandbox) -> int:
        return (await ask(sandbox, "GET", "/_sandbox/readyz")).status

    async def recorded(self, sandbox: Sandbox) -> bool:
        """Return True if the server is ready and has delivered the only callback."""
        if await self.ready(sandbox) != 200:
            return False
        return (await kept_callback(sandbox)).state is DeliveryState.DELIVERED

    @pytest.mark.spec("errors")
    async def test_requests_get_code_500_until_postgres_is_back(
        self, sandbox: Sandbox, database_proxy: Proxy
    ) -> None:
        assert await self.ready(sandbox) == 200
        await database_proxy.cut()

        for operation in ("collect", "status", "sms", "balance", "history"):
            seen = await getattr(sandbox, operation)()
            assert (seen.status, seen.code) == (500, "500")
            assert set(seen.body) == {"response_code", "response_message"}
            assert "127.0.0.1" not in seen.message
        assert await self.ready(sandbox) == 503
        inbox = await ask(sandbox, "GET", "/_sandbox/inbox/orders/messages")
        assert (inbox.status, inbox.body["error"]["code"]) == (503, "store_unavailable")

        await database_proxy.open()

        async def is_ready() -> bool:
            return await self.ready(sandbox) == 200

        await eventually(is_ready)
        assert (await sandbox.status()).code == "027"
        assert await sandbox.sms_balance() == 500

    @pytest.mark.parametrize("under_way", [False, True])
    async def test_an_acknowledged_payment_settles_and_sends_its_callback_once_afterwards(
        self, sandbox: Sandbox, database_proxy: Proxy, receiver: Receiver, *, under_way: bool
    ) -> None:
        """An attempt that is under way meanwhile is recorded afterwards, and not made again."""
        go_on = receiver.hang()
        await sandbox.collect(callback_url=receiver.url)
        if under_way:
            await receiver.arrival()
        await database_proxy.cut()
        go_on.set()
        if under_way:
            assert await self.ready(sandbox) == 503
        await database_proxy.open()

        await receiver.arrival()
        await eventually(partial(self.recorded, sandbox))
        assert len((await kept_callback(sandbox)).attempts) == len(receiver.deliveries) == 1
        assert receiver.delivery.body["trans_status"] == "000/SUCCESS"


@pytest.mark.decision("D14", "D40")
async def test_a_payment_settled_by_another_server_while_its_id_is_reused_stays_settled(
    start: StartSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = await start(settle_delay_ms=3_600_000), await start()
    await here.collect()
    read = PostgresUnit.network_id_of

    async def settled_meanwhile(*asked: Any) -> Any:
        monkeypatch.setattr(PostgresUnit, "network_id_of", read)
        found = await read(*asked)
        assert (await post(there, "transactions/55/T1/settle", status="001")).status == 200
        return found

    monkeypatch.setattr(PostgresUnit, "network_id_of", settled_meanwhile)
    assert (await here.collect()).code == "202"

    newer, older = (await get(there, "transactions"))["transactions"]
    assert (older["status"], newer["status"]) == ("001", "002")
    assert older["replaced_by"] == newer["network_transaction_id"]
