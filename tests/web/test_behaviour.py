"""The behaviour of a running server changes at once, for each setting that belongs to it."""

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import ClientSession

from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import Profile, ReceiverResponse
from tests.conftest import Sandbox, Seen, StartSandbox
from tests.fakes import FakeSender, Post
from tests.web.control_api import get, post

REFUSED = ReceiverResponse(500, "", 1)
COLLECT, CARD = Sandbox.collect, Sandbox.card


@dataclass
class Server:
    """A running gateway whose callbacks go to a fake sender."""

    sandbox: Sandbox
    sender: FakeSender
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def change(self, **values: Any) -> None:
        """Change these values of the behaviour."""
        await self.sandbox.gateway.behaviour_control.change(lambda now: replace(now, **values))

    def new_id(self) -> str:
        return f"T{next(self.numbers)}"

    async def status_after(self, operation: Callable[..., Awaitable[Any]], **by: float) -> str:
        """The status of a new payment, this much gateway time after it."""
        transaction_id = self.new_id()
        await operation(self.sandbox, transaction_id=transaction_id)
        await self.sandbox.advance(**by)
        return str((await self.sandbox.status(transaction_id)).data["status"])

    async def posts_after(self, **by: float) -> list[Post]:
        """What is posted for a new payment within this time after it has settled."""
        before = len(self.sender.posts)
        await self.status_after(Sandbox.collect, seconds=1)
        await self.sandbox.advance(**by)
        return self.sender.posts[before:]


Start = Callable[..., Awaitable[Server]]


@pytest.fixture
async def start(start_sandbox: StartSandbox) -> AsyncIterator[Start]:
    """Starts a server with these settings. Its session takes answers of changed settings too."""
    async with ClientSession() as session:

        async def started(**settings: Any) -> Server:
            sender = FakeSender()
            sandbox = await start_sandbox(sender=sender, **settings)
            return Server(replace(sandbox, session=session), sender)

        yield started


Probe = Callable[[Server], Awaitable[Any]]


def code(operation: Callable[..., Awaitable[Seen]], **body: Any) -> Probe:
    """The code of a new payment with these fields."""

    async def probe(server: Server) -> str:
        return (await operation(server.sandbox, transaction_id=server.new_id(), **body)).code

    return probe


async def status_of_a_refusal(server: Server) -> int:
    return (await server.sandbox.collect(customer_number="0555000001")).status


async def second_of_two(server: Server) -> str:
    await server.sandbox.collect()
    return (await server.sandbox.collect()).code


async def warning(server: Server) -> bool:
    """Whether the last request has a warning that names `lenient`."""
    await server.sandbox.collect(customer_number="233244000001")
    (entry, *_) = (await get(server.sandbox, "requests"))["requests"]
    return any("lenient turned on" in each for each in entry["warnings"])


def status(operation: Callable[..., Awaitable[Seen]], **by: float) -> Probe:
    """The status of a new payment, this much gateway time after it."""
    return lambda server: server.status_after(operation, **by)


async def sms_status(server: Server) -> str:
    await server.sandbox.sms()
    await server.sandbox.advance(milliseconds=800)
    return str((await server.sandbox.history()).data[0]["status"])


async def sms_code(server: Server) -> str:
    return (await server.sandbox.sms(sender_id="Other")).code


def of_callback(read: Callable[[Post], Any]) -> Probe:
    """What `read` returns for the callback of a new payment."""

    async def probe(server: Server) -> Any:
        (sent,) = await server.posts_after(seconds=0)
        return read(sent)

    return probe


has_transaction_id = of_callback(lambda sent: "transaction_id" in json.loads(sent.body))
is_signed = of_callback(lambda sent: "X-Service-Signature" in sent.headers)
timeout = of_callback(lambda sent: sent.timeout)


async def lenient_shown(server: Server) -> bool:
    settings = (await get(server.sandbox, "config"))["settings"]
    return bool(settings["lenient"]["value"])


def attempts_in(**by: float) -> Probe:
    async def probe(server: Server) -> int:
        server.sender.answers = [REFUSED] * 4
        return len(await server.posts_after(**by))

    return probe


@dataclass(frozen=True)
class Case:
    """What a change of a setting changes. given: the settings that the server starts with."""

    value: Any
    probe: Probe
    before: Any
    after: Any
    given: Mapping[str, Any] = field(default_factory=dict)


CASES = {
    "sandbox_reject_status": Case(422, status_of_a_refusal, 200, 422),
    "rate_limit_per_minute": Case(1, second_of_two, "202", "429", {"rate_limit_burst": 1}),
    "rate_limit_burst": Case(1, second_of_two, "202", "429", {"rate_limit_per_minute": 1}),
    "turned_on_by_lenient": Case(
        ("accept_international",), warning, False, True, {"accept_international": True}
    ),
    "allowed_prefixes": Case(("0555",), code(COLLECT, customer_number="0555000001"), "019", "202"),
    "allowed_numbers": Case(("0244000002",), code(COLLECT), "202", "019"),
    "match_network": Case(True, code(COLLECT, nw="VOD"), "202", "019"),
    "accept_international": Case(True, code(COLLECT, customer_number="233244000001"), "019", "202"),
    "duplicates": Case("reject", second_of_two, "202", "219"),
    "magic_outcomes": Case({"0244000001": "402"}, code(COLLECT), "202", "402"),
    "settle_delay_ms": Case(5000, status(COLLECT, seconds=1), "000", "002"),
    "approval": Case("handset", status(COLLECT, seconds=1), "000", "002"),
    "approval_timeout_s": Case(
        5, status(COLLECT, seconds=5), "002", "003", {"approval": "handset"}
    ),
    "test_cards": Case({"4000000000000002": "VIS"}, code(CARD), "000", "019"),
    "sandbox_card_entry": Case(True, code(CARD, nw="CRD", customer_number=None), "400", "000"),
    "card_auto_complete_ms": Case(1000, status(CARD, seconds=1), "002", "000"),
    "sms_transition_ms": Case(5000, sms_status, "SENT", "ACKNOWLEDGED"),
    "approved_senders": Case(("Shop",), sms_code, "370", "216"),
    "callback_profile": Case(Profile.FLAT, has_transaction_id, False, True),
    "callback_profiles": Case({"*": Profile.FLAT}, has_transaction_id, False, True),
    "sign_callbacks": Case(False, is_signed, True, False),
    "callback_attempts": Case(1, attempts_in(days=1), 3, 1),
    "callback_retry_interval_s": Case(10, attempts_in(seconds=10), 1, 2),
    "callback_timeout_s": Case(5, timeout, timedelta(seconds=30), timedelta(seconds=5)),
    "given": Case({"lenient": True}, lenient_shown, False, True),
}


def test_each_setting_of_the_behaviour_has_a_case() -> None:
    assert set(CASES) == {each.name for each in fields(Behaviour)}


@pytest.mark.parametrize("name", CASES)
async def test_a_running_server_follows_a_changed_setting_at_once(start: Start, name: str) -> None:
    case = CASES[name]
    server = await start(**case.given)
    assert await case.probe(server) == case.before
    server.sender.answers = []

    await server.change(**{name: case.value})

    assert await case.probe(server) == case.after


async def test_pages_the_openapi_document_and_the_doctor_follow_changes(start: Start) -> None:
    server = await start()
    _, _, card = (await server.sandbox.card()).body["redirect_url"].partition("/_sandbox/")
    await server.sandbox.collect(transaction_id="T2")
    airtime = (await get(server.sandbox, "openapi.json"))["paths"]["/send_airtime"]["post"]
    assert "422" not in airtime["responses"]

    await server.change(
        approval="handset",
        allowed_numbers=("0200000007",),
        card_auto_complete_ms=7000,
        settle_delay_ms=8000,
        sandbox_reject_status=422,
        callback_profile=Profile.FLAT,
        sign_callbacks=False,
        callback_timeout_s=5,
    )

    assert "Waiting for a payment" in (await ask_page(server, "handset/0200000007"))[1]
    assert (await ask_page(server, "handset/0244000001"))[0] == 404
    assert "it is paid after 7 s" in (await ask_page(server, card))[1]
    dashboard = (await ask_page(server, ""))[1]
    assert "settle_delay_ms = 8000" in dashboard
    assert "0200000007" in dashboard
    airtime = (await get(server.sandbox, "openapi.json"))["paths"]["/send_airtime"]["post"]
    assert "422" in airtime["responses"]
    await post(server.sandbox, "doctor", url="http://shop.test/hook", profiles=["flat"])
    (first, *_) = server.sender.posts
    assert "X-Service-Signature" not in first.headers
    assert first.timeout == timedelta(seconds=5)


async def test_seeding_follows_changes_after_a_reset_of_one_service(start: Start) -> None:
    server = await start()
    await server.change(allowed_prefixes=("0555",), test_cards={}, approved_senders=("Kente",))
    await post(server.sandbox, "reset", service_id=55)

    seeded = await post(server.sandbox, "seed", service_id=55, seed=42, count=6)

    numbers = [each["customer_number"] for each in seeded.body["people"]]
    assert {each[:4] for each in numbers} == {"0555"}
    assert {each["sender_id"] for each in (await server.sandbox.history()).data} == {"Kente"}


async def ask_page(server: Server, path: str) -> tuple[int, str]:
    """The status and the text of a page below `/_sandbox/`."""
    url = f"{server.sandbox.url}/_sandbox/{path}"
    async with server.sandbox.session.get(url, headers={"Accept": "text/html"}) as answer:
        return answer.status, await answer.text()
