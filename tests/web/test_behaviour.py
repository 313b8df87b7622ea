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
from tests.conftest import Sandbox, StartSandbox
from tests.fakes import FakeSender, Post
from tests.web.control_api import get, post

REFUSED = ReceiverResponse(500, "", 1)


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

    async def status_after(self, sent: Callable[..., Awaitable[Any]], **by: float) -> str:
        """The status of a new payment, this much gateway time after it."""
        transaction_id = self.new_id()
        await sent(transaction_id=transaction_id)
        await self.sandbox.advance(**by)
        return str((await self.sandbox.status(transaction_id)).data["status"])

    async def posts_after(self, **by: float) -> list[Post]:
        """What is posted for a new payment within this time after it has settled."""
        before = len(self.sender.posts)
        await self.status_after(self.sandbox.collect, seconds=1)
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


def collected(**body: Any) -> Callable[[Server], Awaitable[str]]:
    """The code of a collection with these fields."""

    async def probe(server: Server) -> str:
        return (await server.sandbox.collect(transaction_id=server.new_id(), **body)).code

    return probe


def paid_by_card(**body: Any) -> Callable[[Server], Awaitable[str]]:
    async def probe(server: Server) -> str:
        return (await server.sandbox.card(transaction_id=server.new_id(), **body)).code

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


def settled(**by: float) -> Callable[[Server], Awaitable[str]]:
    return lambda server: server.status_after(server.sandbox.collect, **by)


def card_settled(**by: float) -> Callable[[Server], Awaitable[str]]:
    return lambda server: server.status_after(server.sandbox.card, **by)


async def sms_status(server: Server) -> str:
    await server.sandbox.sms()
    await server.sandbox.advance(milliseconds=800)
    return str((await server.sandbox.history()).data[0]["status"])


async def sms_code(server: Server) -> str:
    return (await server.sandbox.sms(sender_id="Other")).code


async def has_transaction_id(server: Server) -> bool:
    (sent,) = await server.posts_after(seconds=0)
    return "transaction_id" in json.loads(sent.body)


async def is_signed(server: Server) -> bool:
    (sent,) = await server.posts_after(seconds=0)
    return "X-Service-Signature" in sent.headers


async def timeout(server: Server) -> timedelta:
    (sent,) = await server.posts_after(seconds=0)
    return sent.timeout


async def lenient_shown(server: Server) -> bool:
    settings = (await get(server.sandbox, "config"))["settings"]
    return bool(settings["lenient"]["value"])


def attempts_in(**by: float) -> Callable[[Server], Awaitable[int]]:
    async def probe(server: Server) -> int:
        server.sender.answers = [REFUSED] * 4
        return len(await server.posts_after(**by))

    return probe


@dataclass(frozen=True)
class Case:
    """What a change of a setting changes. given: the settings that the server starts with."""

    value: Any
    probe: Callable[[Server], Awaitable[Any]]
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
    "allowed_prefixes": Case(("0555",), collected(customer_number="0555000001"), "019", "202"),
    "allowed_numbers": Case(("0244000002",), collected(), "202", "019"),
    "match_network": Case(True, collected(nw="VOD"), "202", "019"),
    "accept_international": Case(True, collected(customer_number="233244000001"), "019", "202"),
    "duplicates": Case("reject", second_of_two, "202", "219"),
    "magic_outcomes": Case({"0244000001": "402"}, collected(), "202", "402"),
    "settle_delay_ms": Case(5000, settled(seconds=1), "000", "002"),
    "approval": Case("handset", settled(seconds=1), "000", "002"),
    "approval_timeout_s": Case(5, settled(seconds=5), "002", "003", {"approval": "handset"}),
    "test_cards": Case({"4000000000000002": "VIS"}, paid_by_card(), "000", "019"),
    "sandbox_card_entry": Case(True, paid_by_card(nw="CRD", customer_number=None), "400", "000"),
    "card_auto_complete_ms": Case(1000, card_settled(seconds=1), "002", "000"),
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
