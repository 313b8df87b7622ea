"""The live feed, GET /_sandbox/events: ordered, resumable, filtered; no writer waits for it."""

import asyncio
import logging
import re
import socket
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import pytest

from sandbox_sim.events import event_feed as gateway_feed
from sandbox_sim.web.control import events as web_events
from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import ask, assert_error, get
from tests.web.events import PATH, Event, fields, listening

UNTIL_PAID = 7
CUSTOMERS = [f"233244{number:06}" for number in range(200)]
# The limit that `few_events_may_wait` sets.
MOST_WAITING = 1000


async def pay(sandbox: Sandbox, **fields: object) -> None:
    """Make a collection and deliver its callback: `UNTIL_PAID` events."""
    await sandbox.collect(**fields)
    await sandbox.gateway.journal.save()  # it is saved in the background, at any time
    await sandbox.gateway.jobs.run_until_idle()
    await sandbox.advance(seconds=1)


def types(events: list[Event]) -> list[str]:
    return [each.type for each in events]


class TestEvents:
    async def test_a_payment_has_its_events_in_order(self, sandbox: Sandbox) -> None:
        """An event has the record of the control API on one line. A health check has no event."""
        async with listening(sandbox) as feed:
            await sandbox.collect()
            begun = await feed.take(2)
            await get(sandbox, "readyz")
            await sandbox.advance(seconds=1)
            ended = await feed.take(5)
            await sandbox.sms(msg_body="Akwaaba Ɛsi\r\n\n: \u2028data: x")
            text = next(each for each in await feed.take(3) if each.type == "sms")

        assert fields(begun[:1], "status") == [("transaction", "002")]
        assert fields(begun[1:], "path") == [("request", "/make_payment")]
        assert types(ended) == ["transaction", "callback", "inbox", "callback", "clock"]
        assert [ended[place].data["state"] for place in (1, 3)] == ["pending", "delivered"]
        assert ended[2].data["json"]["trans_status"] == "000/SUCCESS"
        ids = [each.id.rpartition("-") for each in begun + ended]
        assert [number for _, _, number in ids] == list("1234567")
        assert len({run for run, _, _ in ids}) == 1

        request, paid, _, delivery, called, clock = (begun[1], *ended)
        assert paid.data == await get(sandbox, "transactions/55/T1")
        assert called.data == await get(sandbox, f"callbacks/{called.data['id']}")
        assert request.data == await get(sandbox, f"requests/{request.data['id']}")
        (message,) = await sandbox.inbox()
        assert delivery.data == {"name": "orders", **message}
        assert clock.data == await get(sandbox, "clock")
        assert text.data["message"] == "Akwaaba Ɛsi\r\n\n: \u2028data: x"

    async def test_sms_and_their_costs_have_events(self, sandbox: Sandbox) -> None:
        async with listening(sandbox, "?types=sms,ledger") as feed:
            await sandbox.bulk("0244000001", "0244000009")
            await sandbox.advance(seconds=1)
            events = await feed.take(7)

        assert fields(events[:2], "reason") == [("ledger", "opening"), ("ledger", "charge")]
        assert [each.data["status"] for each in events[2:6]] == [
            *("ACKNOWLEDGED", "ACKNOWLEDGED"),
            *("SENT", "REFUNDED"),
        ]
        assert fields(events[6:], "reason", "amount") == [("ledger", "refund", "1")]
        history = await get(sandbox, f"sms/{events[5].data['processing_id']}")
        assert events[5].data == history

    async def test_a_reset_and_a_restored_snapshot_have_events(self, sandbox: Sandbox) -> None:
        for body in (b'{"name": "one", "service_id": 55}', b'{"name": "all"}'):
            await ask(sandbox, "POST", "/_sandbox/snapshots", body)
        async with listening(sandbox) as feed:
            for body in (b'{"service_id": 55}', b""):
                await ask(sandbox, "POST", "/_sandbox/reset", body)
            for name in ("one", "never", "all"):
                await ask(sandbox, "POST", f"/_sandbox/snapshots/{name}/restore")
            events = await feed.take(4)

        assert fields(events[:2], "service_id") == [("reset", 55), ("reset", None)]
        assert fields(events[2:], "name", "service_id") == [
            ("restore", "one", 55),
            ("restore", "all", None),
        ]


class TestFilters:
    async def test_readers_of_two_services_get_only_their_events(self, sandbox: Sandbox) -> None:
        """Neither reader gets deliveries to an inbox, or requests without a service."""
        async with (
            listening(sandbox, "?service_id=55") as one,
            listening(sandbox, "?service_id=56") as other,
        ):
            for service_id in (55, 56):
                await sandbox.sms(service_id=service_id)
                await sandbox.collect(service_id=service_id)
            await sandbox.post("/make_payment", {})
            await sandbox.advance(seconds=1)
            await ask(sandbox, "POST", "/_sandbox/reset", b'{"service_id": 55}')
            await ask(sandbox, "POST", "/_sandbox/reset")
            events = [await one.take(13), await other.take(12)]

        for service_id, each in zip((55, 56), events, strict=True):
            common = [event for event in each if event.data.get("service_id") is None]
            assert types(common) == ["clock", "reset"]
            own = [event for event in each if event not in common]
            assert {event.data["service_id"] for event in own} == {service_id}

    async def test_the_feed_needs_the_control_token_and_names_a_bad_filter(
        self, start_sandbox: StartSandbox
    ) -> None:
        sandbox = await start_sandbox(control_token="s3cret")
        token = {"Authorization": "Bearer s3cret"}
        rows = [
            ("types=callbacks", "types must be a list of request, transaction, callback"),
            ("types=", "types must be"),
            ("types=sms, callback", "without spaces"),
            ("service_id=x", "service_id must be an integer"),
            ("service_id=0", "service_id must be an integer"),
            ("service_id=55&service_id=56", "service_id must be given once"),
            ("service=55", "'service' is unknown"),
        ]
        for query, named in rows:
            path = f"{PATH}?{quote(query, safe='=&,')}"

            assert_error(await ask(sandbox, "GET", path, b"", **token), 400, named)
        assert_error(await ask(sandbox, "GET", PATH), 401, "Authorization")
        async with listening(sandbox, **token) as feed:
            await sandbox.collect()
            assert (await feed.next()).type == "transaction"


class TestReconnection:
    @pytest.mark.parametrize("by", ["query", "header", "both"])
    async def test_missed_events_come_first(self, sandbox: Sandbox, by: str) -> None:
        """A browser reconnects to the same address, so `after` is older than `Last-Event-ID`."""
        async with listening(sandbox) as feed:
            await pay(sandbox)
            before = await feed.take(UNTIL_PAID)
        await pay(sandbox, transaction_id="T2")
        first, last = before[0].id, before[2].id
        headers = {} if by == "query" else {"Last-Event-ID": last}
        query = {"query": f"?after={last}", "header": "", "both": f"?after={first}"}[by]

        async with listening(sandbox, query, **headers) as feed:
            assert await feed.take(4) == before[3:]
            meanwhile = await feed.take(UNTIL_PAID)
            await pay(sandbox, transaction_id="T3")
            afterwards = await feed.take(UNTIL_PAID)

        assert types(meanwhile) == types(afterwards) == types(before)
        assert meanwhile[0].data["transaction_id"] == "T2"
        assert [each.id.rpartition("-")[2] for each in (*before, *meanwhile, *afterwards)] == [
            str(number) for number in range(1, 3 * UNTIL_PAID + 1)
        ]

    async def test_an_unknown_event_id_gives_a_gap(self, sandbox: Sandbox) -> None:
        """After a `gap` the reader must reload its lists; then it gets the events that are kept.

        Filters apply to missed events too.
        """
        async with listening(sandbox) as feed:
            await pay(sandbox, service_id=56)
            await pay(sandbox)
            known = await feed.take(2 * UNTIL_PAID)

        query = "?service_id=55&types=transaction"
        for last in ("of-an-earlier-run-7", "nonsense", "1"):
            async with listening(sandbox, query, **{"Last-Event-ID": last}) as feed:
                gap, *events = await feed.take(3)
            async with listening(sandbox, **{"Last-Event-ID": gap.id}) as feed:
                again = await feed.take(2 * UNTIL_PAID)

            assert (gap.type, gap.data) == ("gap", {"after": last})
            assert events == [known[UNTIL_PAID], known[UNTIL_PAID + 2]]
            assert again == known
        async with listening(sandbox, f"{query}&after={known[0].id}") as feed:
            assert await feed.take(2) == events


async def stalled_reader(sandbox: Sandbox) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect a client that requests the SMS events and reads none; its buffers are small."""
    address = urlsplit(sandbox.url)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, (address.hostname, address.port))
    streams = await asyncio.open_connection(sock=client, limit=1024)
    streams[1].write(b"GET /_sandbox/events?types=sms HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await streams[0].readuntil(b"retry: 1000\n\n")
    for connection in connections(sandbox):
        connection.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return streams


async def send_many(sandbox: Sandbox) -> None:
    """Send an SMS to each customer: each has an event now, and another when it settles."""
    await sandbox.post("/_sandbox/ledger/topup", {"service_id": 55, "units": len(CUSTOMERS)})
    assert (await sandbox.bulk(*CUSTOMERS)).code == "370"


def unsent(sandbox: Sandbox) -> bool:
    """Return True if the operating system accepts no more data from the server."""
    return any(each.get_write_buffer_size() for each in connections(sandbox))


def connections(sandbox: Sandbox) -> Iterator[asyncio.Transport]:
    """The open connections of the server."""
    assert sandbox.runner.server is not None
    for connection in sandbox.runner.server.connections:
        if connection.transport is not None:
            yield connection.transport


@pytest.fixture
def few_events_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the number of events that may wait for a reader, so that tests reach it."""
    defaults = gateway_feed.Feed.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "stuck_queue_length", MOST_WAITING)


@pytest.mark.usefixtures("few_events_may_wait")
class TestSlowReaders:
    @pytest.fixture
    def server(self, caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
        """The log of the server; after the test, asserts that readers caused no error in it."""
        with caplog.at_level(logging.WARNING):
            yield caplog
        assert [each for each in caplog.records if each.levelno > logging.WARNING] == []

    async def test_a_reader_that_falls_behind_is_disconnected_and_can_resume(
        self, sandbox: Sandbox, server: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Other readers still get all events, and no writer waits."""
        monkeypatch.setattr(gateway_feed, "READER_STALLED_S", 0)
        stalled, writer = await stalled_reader(sandbox)

        async with listening(sandbox, "?types=sms") as prompt:
            events = []
            while not server.records:
                await send_many(sandbox)
                events += await prompt.take(len(CUSTOMERS))

        assert ["did not keep up" in each.message for each in server.records] == [True]
        async with asyncio.timeout(10):  # far more than it needs
            left = re.findall(rb"^id: (\S+)$", await stalled.read(), re.MULTILINE)[:-1]
        writer.close()
        ids = [each.id for each in events]
        assert [each.decode() for each in left] == ids[: len(left)]
        assert len(left) < len(ids)
        headers = {"Last-Event-ID": ids[len(left) - 1]}
        async with listening(sandbox, "?types=sms", **headers) as back:
            assert await back.take(len(ids) - len(left)) == events[len(left) :]

    async def test_a_quiet_feed_sends_keep_alives_and_a_stopping_server_ends_each_feed(
        self, sandbox: Sandbox, server: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A server that waited for its readers would later cut off the body."""
        async with listening(sandbox) as one, listening(sandbox, "?types=sms") as other:
            await pay(sandbox)
            await one.take(UNTIL_PAID)
            with monkeypatch.context() as patched:
                patched.setattr(web_events, "KEEP_ALIVE_S", 0.001)
                async with listening(sandbox) as feed:
                    assert await feed.block() == ": keep-alive\n"
                    headers = feed.response.headers

            await sandbox.stop()

            assert [await feed.response.content.read() for feed in (one, other)] == [b"", b""]
        names = ("Content-Type", "Cache-Control", "X-Accel-Buffering")
        assert [headers[name] for name in names] == ["text/event-stream", "no-cache", "no"]

    async def test_a_stopping_server_does_not_wait_for_a_stalled_reader(
        self, sandbox: Sandbox, server: pytest.LogCaptureFixture
    ) -> None:
        sandbox.runner._shutdown_timeout = 3600
        _, writer = await stalled_reader(sandbox)
        async with listening(sandbox, "?types=sms") as prompt:
            while not unsent(sandbox):
                await send_many(sandbox)
                await prompt.take(len(CUSTOMERS))

        async with asyncio.timeout(30):  # far more than a stop needs, and less than an hour
            await sandbox.stop()

        writer.close()
        assert server.records == []
