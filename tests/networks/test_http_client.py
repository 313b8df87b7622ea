"""The client sends a submit once; it repeats only a query, which changes nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.networks import http_client
from sandbox_sim.networks.http_client import HttpAnswer, NetworkHttpClient, NoAnswer, retry_after
from sandbox_sim.records.exchanges import Scrubber
from sandbox_sim.testing.network_contract import Fault, HttpReply, HttpRequest
from sandbox_sim.testing.network_contract.http_peer import FaultServer
from tests.networks.fakes import KeptEvents
from tests.turns import turns

pytestmark = pytest.mark.decision("D39")

OK = HttpReply(200, b"{}")


class Served:
    """A client, the server that it calls, and what each of them recorded."""

    def __init__(self, replies: Sequence[HttpReply]) -> None:
        self.requests: list[HttpRequest] = []
        self.events = KeptEvents()
        self.server = FaultServer(self.requests.append, self._answer, self._answer)
        clock = VirtualClock()
        self.client = NetworkHttpClient(
            "testnet", clock, Scrubber(["s3cret"]), timedelta(seconds=30), first_pause_s=0.001
        )
        self._replies = list(replies)

    def _answer(self, _request: HttpRequest) -> HttpReply:
        return self._replies.pop(0) if self._replies else OK

    async def submit(self, method: str = "POST", url: str | None = None) -> HttpAnswer | NoAnswer:
        return await self.client.submit(
            method, url or self.server.url + "/pay", {}, b"{}", attempt_id="A1"
        )

    async def ask(self, method: str = "GET") -> HttpAnswer | NoAnswer:
        return await self.client.ask("status", method, self.server.url + "/status", {})


@asynccontextmanager
async def served(*replies: HttpReply) -> AsyncIterator[Served]:
    both = Served(replies)
    async with both.server.running():
        await both.client.open(both.events)
        yield both
        await both.client.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "GET"])
@pytest.mark.parametrize("fault", [Fault.CLOSE_AFTER_READ, Fault.RESET_AFTER_READ])
async def test_a_submit_is_not_repeated_if_its_connection_breaks(method: str, fault: Fault) -> None:
    """aiohttp alone would repeat all of these except POST, even on a new connection."""
    async with served() as both:
        both.server.misbehave(fault)
        answer = await both.submit(method)

        assert isinstance(answer, NoAnswer)
        assert answer.may_have_arrived
        assert len(both.requests) == both.server.connections == 1


async def test_each_submit_has_its_own_connection_and_a_redirect_is_an_answer() -> None:
    async with served(OK, HttpReply(307, b"", (("Location", "/elsewhere"),))) as both:
        await both.submit()
        answer = await both.submit()

        assert both.server.connections == 2
        assert isinstance(answer, HttpAnswer)
        assert answer.status == 307
        assert [request.path for request in both.requests] == ["/pay", "/pay"]


async def test_a_submit_that_fails_on_our_side_is_not_a_network_fault() -> None:
    unopened = await Served([]).submit(url="http://127.0.0.1:9/")
    assert isinstance(unopened, NoAnswer)
    assert (unopened.may_have_arrived, unopened.network_fault) == (False, False)

    async with served() as both:
        unwritable = await both.client.submit(
            "POST", both.server.url, {"X-Name": "two\nlines"}, b"", attempt_id="A1"
        )
        assert isinstance(unwritable, NoAnswer)
        assert not unwritable.network_fault


async def test_an_answer_above_the_size_limit_counts_as_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_client, "MOST_ANSWER_BYTES", 10)
    async with served(HttpReply(200, b"x" * 11)) as both:
        answer = await both.submit()

        assert isinstance(answer, NoAnswer)
        assert answer.may_have_arrived


def late(seconds: int) -> HttpReply:
    return HttpReply(429, b"", (("Retry-After", str(seconds)),))


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("replies", "status", "tries"),
    [
        *(([HttpReply(code)] * 2, 200, 3) for code in (429, 502, 503, 504)),
        *(([HttpReply(code)], code, 1) for code in (400, 401, 404, 409, 500, 501)),
        ([HttpReply(503)] * 9, 503, 3),
        ([late(0)], 200, 2),
        ([late(3)], 429, 1),  # that is left to the schedule
    ],
    ids=str,
)
async def test_a_query_is_repeated_at_most_twice_and_only_after_a_temporary_error(
    method: str, replies: list[HttpReply], status: int, tries: int
) -> None:
    async with served(*replies) as both:
        answer = await both.ask(method)

        assert isinstance(answer, HttpAnswer)
        assert answer.status == status
        assert len(both.requests) == both.events.exchanges[0].tries == tries


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_query_survives_a_broken_connection_and_ends_after_three_tries(method: str) -> None:
    """aiohttp alone would repeat a GET once for each broken connection."""
    async with served() as both:
        both.server.misbehave(Fault.CLOSE_AFTER_READ)
        answer = await both.ask(method)
        assert isinstance(answer, HttpAnswer)
        assert answer.status == 200

        both.requests.clear()
        for _ in range(9):
            both.server.misbehave(Fault.RESET_AFTER_READ)
        assert isinstance(await both.ask(method), NoAnswer)
        assert len(both.requests) == 3


async def test_an_answer_to_no_query_is_not_read_as_that_to_the_next_one() -> None:
    """It would be the status of another payment."""
    answered, count = asyncio.Event(), 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        await reader.readuntil(b"\r\n\r\n")
        answer = f"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{count}".encode()
        writer.write(answer)
        await answered.wait()
        writer.write(answer)
        await reader.read()
        writer.close()

    client = NetworkHttpClient("testnet", VirtualClock(), Scrubber(), timedelta(seconds=30))
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/status"
    await client.open(KeptEvents())
    first = await client.ask("status", "GET", url, {})
    answered.set()
    await turns()
    second = await client.ask("status", "GET", url, {})
    await client.close()
    server.close()
    await server.wait_closed()

    assert isinstance(first, HttpAnswer)
    assert isinstance(second, HttpAnswer)
    assert (first.body, second.body, count) == (b"1", b"2", 2)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        ("Thu, 01 Jan 2026 09:00:30 GMT", 30),
        ("Thu, 01 Jan 2026 08:00:00 GMT", 0),
        ("soon", None),
        ("", None),
        ("-5", None),
        ("7199", 7199),
        ("9" * 40, 7200),
        ("Thu, 01 Jan 2026 11:00:01 GMT", 7200),
        ("Thu, 01 Jan 2099 09:00:00 GMT", 7200),
        ("Fri, 31 Dec 9999 23:59:59 -1200", 7200),
        (f"Thu, 01 Jan {10**20} 09:00:00 GMT", None),
    ],
)
def test_both_forms_of_retry_after_are_read_and_bounded(text: str, seconds: int | None) -> None:
    clock = VirtualClock(datetime(2026, 1, 1, 9, tzinfo=UTC))
    found = retry_after({"retry-after": text}, clock, timedelta(seconds=7200))

    assert found == (None if seconds is None else timedelta(seconds=seconds))


@pytest.mark.parametrize(
    "send", [lambda both: both.submit(), lambda both: both.ask()], ids=["submit", "ask"]
)
async def test_each_exchange_is_reported_without_secrets(send: Callable[[Served], object]) -> None:
    async with served(HttpReply(200, b'{"key": "s3cret"}')) as both:
        await send(both)  # type: ignore[misc]

        (exchange,) = both.events.exchanges
        assert (exchange.status, exchange.answer_body) == (200, '{"key": "***"}')
