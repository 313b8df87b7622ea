"""The fake MTN MoMo server as the network. Its callbacks come in every way that they may.

It runs in the process of the run, behind a socket, and outlives every kill of our servers.
"""

import asyncio
import json
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from random import Random
from typing import Any, Final

import aiohttp

from chaos.production.fake_momo import PRODUCTS, SETTINGS, FakeMomo, MomoServer, reply, serving
from chaos.production.load import FAILS, PAYS, STRANGER
from chaos.production.network_side import GIVES_UP_AFTER_S
from chaos.production.observations import (
    DUPLICATE,
    FAILED,
    PENDING,
    SUCCEEDED,
    BadAnswers,
    Charges,
    Observations,
    Purchase,
    Renewal,
)
from chaos.run import Plan
from chaos.servers import Server
from sandbox_sim.production.notifications import HINTS_WITHOUT_ATTEMPT
from sandbox_sim.testing.network_contract import HttpReply, HttpRequest
from tests.kit.servers import free_port

_TABLE: Final = """
[networks.mtn]
adapter = "mtn_momo"
base_url = "{url}"
{settings}
timeout_s = {timeout_s}
poll_after_s = 0.3
poll_at_most_s = 2
give_up_after_s = {give_up_after_s}

[[routes]]
network = "mtn"
"""
# Seconds until a payment is decided, and between a forged callback and the decision.
_DECIDED_AFTER_S: Final = (0.1, 0.5)
_FORGED_BEFORE_S: Final = 0.1
# How long an answer 401 waits at most for the other payments, and a new token for all of them.
_WAITING_AT_MOST_S: Final = 2.5
_WAITING_S: Final = 0.2
# How callbacks come, each with its weight. `never`: the outcome is only found by asking.
ONCE, TWICE, EARLY, FORGED, UNKNOWN, NEVER = (
    *("once", "twice", "before the answer"),
    *("forged", "for an unknown reference", "never"),
)
_WAYS: Final = {ONCE: 30, TWICE: 20, EARLY: 20, FORGED: 15, UNKNOWN: 10, NEVER: 5}
_STATUSES: Final = {"SUCCESSFUL": SUCCEEDED, "FAILED": FAILED, "PENDING": PENDING}
_HALF: Final = 0.5
# The codes of answers to payments. 401 is not among them: MTN did not look at the payment then.
_CODES: Final = {202: "202", 400: "400", 409: DUPLICATE}


class _Fake(FakeMomo):
    """Refuses payments of strangers, and counts the answers to payments.

    answers: of each payment that it looked at, by its `externalId`. unauthorized: how many had an
    old token. fails: whether it looks at half of the payments only.
    """

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self.answers: dict[str, list[int]] = {}
        self.unauthorized = 0
        self.fails = False
        self._rng = rng

    def answer(self, request: HttpRequest) -> HttpReply:
        if not is_payment(request):
            return super().answer(request)
        if self.fails and self._rng.random() < _HALF:
            return reply(503)
        body = json.loads(request.body)
        party = body[PRODUCTS[request.path.split("/")[1]].party]["partyId"]
        stranger = party == f"233{STRANGER[1:]}" and self.is_authorized(request)
        answer = reply(400) if stranger else super().answer(request)
        self.answers.setdefault(body["externalId"], []).append(answer.status)
        self.unauthorized += answer.status == 401
        return answer


def is_payment(request: HttpRequest) -> bool:
    """Whether it is a request to pay or a transfer."""
    return request.method == "POST" and "v1_0" in request.path.split("/")


class Momo:
    """The network. Each callback that our gateway answered is noted in the observations."""

    name = "mtn"
    timeout_s = 4.0
    repeats_within_s: float | None = None  # MTN keeps a reference
    numbers: Mapping[str, int] = {PAYS[0]: 40, PAYS[1]: 40, FAILS: 15, STRANGER: 5}
    forgets_after_s = math.inf
    servers: Sequence[Server] = ()

    def __init__(self, seen: Observations, http: aiohttp.ClientSession, rng: Random) -> None:
        self._seen = seen
        self._http = http
        self._rng = rng
        self._fake = _Fake(rng)
        self._port = free_port()
        self._listening = AsyncExitStack()
        self._server: MomoServer | None = None
        self._answers = asyncio.Event()
        self._answers.set()
        self._refuses_tokens, self._gives_tokens = asyncio.Event(), asyncio.Event()
        self._refuses_tokens.set()
        self._gives_tokens.set()
        self._delays: dict[str, float] = {}
        self._unanswered: dict[str, set[str]] = {"POST": set(), "GET": set()}
        self._bad_answers = BadAnswers()
        self._stops = asyncio.Event()
        self._deciding: set[asyncio.Task[None]] = set()
        # How many callbacks named an unknown reference. With more of them at once the gateway takes
        # no callbacks for a while, as tests/production/test_notifications.py shows.
        self._strays = 0

    @property
    def configuration(self) -> str:
        settings = "\n".join(f'{name} = "{value}"' for name, value in SETTINGS.items())
        url = f"http://127.0.0.1:{self._port}"
        return _TABLE.format(
            url=url, settings=settings, timeout_s=self.timeout_s, give_up_after_s=GIVES_UP_AFTER_S
        )

    async def start(self) -> None:
        """Listen, always on the same port."""
        self._stops.clear()
        self._server = await self._listening.enter_async_context(
            serving(self._fake, self._port, self._before_answer)
        )

    async def stop(self) -> None:
        """Take no connection any more, and cut off those that there are."""
        self._stops.set()
        await self._listening.aclose()

    async def close(self) -> None:
        """Stop, and decide nothing any more."""
        for task in self._deciding:
            task.cancel()
        await asyncio.gather(*self._deciding, return_exceptions=True)
        await self.stop()

    async def prepare(self, services: Sequence[int]) -> None:
        """Nothing is to be prepared."""

    async def away(self, seconds: float) -> None:
        await self.stop()
        await asyncio.sleep(seconds)
        await self.start()

    async def silent(self, seconds: float) -> None:
        self._answers.clear()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._answers.set()

    async def delay_answer(self, purchase: Purchase, seconds: float) -> None:
        self._delays[purchase.transaction_id] = seconds

    async def has(self, purchase: Purchase, within_s: float) -> bool:
        name = purchase.transaction_id
        return await self._came(lambda: 202 in self._fake.answers.get(name, ()), within_s)

    async def _came(self, happened: Callable[[], bool], within_s: float) -> bool:
        """Wait until this is true after a request; False when the time is over."""
        assert self._server is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._server.until(happened)
        return happened()

    async def recorded(self, purchase: Purchase) -> str | None:
        return self._charges_of(purchase.transaction_id).status

    async def never_answer(self, purchase: Purchase) -> None:
        for names in self._unanswered.values():
            names.add(purchase.transaction_id)

    @asynccontextmanager
    async def failing(self) -> AsyncIterator[None]:
        self._fake.fails = True
        try:
            yield
        finally:
            self._fake.fails = False

    async def forget(self) -> None:
        """Nothing: MTN keeps a reference."""

    async def bad_answers(self) -> BadAnswers:
        return self._bad_answers

    async def charges(self, services: Collection[int]) -> dict[tuple[int, str], Charges]:
        """By the payments that it took. One that no client sent has service 0."""
        owners = {each.transaction_id: each.service_id for each in self._seen.purchases}
        return {(owners.get(name, 0), name): self._charges_of(name) for name in self._fake.answers}

    def _charges_of(self, transaction_id: str) -> Charges:
        answers = self._fake.answers.get(transaction_id, ())
        taken = [
            _STATUSES[each.status]
            for each in self._fake.payments.values()
            if each.body["externalId"] == transaction_id
        ]
        codes = [_CODES.get(each, str(each)) for each in answers if each != 401]
        return Charges(codes, taken[-1] if taken else None)

    async def renew_tokens(self, paying: Sequence[asyncio.Task[Any]], servers: int) -> int:
        """Take no token given out so far, and say so when all these payments came with one.

        The new token is given a moment later, when they wait for it.
        paying: the payments, which begin now. servers: how many of our servers have a token.
        Returns how many came with the old one.
        """
        before, enough = len(self._fake.tokens), self._fake.unauthorized + len(paying)
        self._refuses_tokens.clear()
        self._gives_tokens.clear()
        self._fake.expire_tokens()
        await self._came(lambda: self._fake.unauthorized >= enough, _WAITING_AT_MOST_S)
        waiting = self._fake.unauthorized + len(paying) - enough
        self._refuses_tokens.set()
        await asyncio.sleep(_WAITING_S)
        self._gives_tokens.set()
        await asyncio.gather(*paying)
        new = self._fake.tokens[before:]
        given = Counter(token.rpartition("-")[2] for token in new)
        self._seen.renewals.append(Renewal(waiting, servers, given))
        return waiting

    async def _before_answer(self, request: HttpRequest, answer: HttpReply) -> HttpReply:
        await self._answers.wait()
        if "token" in request.path.split("/"):
            await self._gives_tokens.wait()
            return answer
        if answer.status == 401:
            await self._refuses_tokens.wait()
            return answer
        if is_payment(request) and answer.status == 202:
            await self._taken(request.headers["x-reference-id"])
        elif request.method == "GET" and answer.status == 200:
            name = self._name(request.path.rpartition("/")[2])
            await self._unless_unanswered(request.method, name)
        if not self._fake.fails:
            return answer
        self._bad_answers = self._bad_answers._replace(failed=self._bad_answers.failed + 1)
        return reply(503)

    async def _taken(self, reference: str) -> None:
        """Decide on a payment, now or later, and wait until its answer may go out."""
        name = self._name(reference)
        (way,) = self._rng.choices([*_WAYS], [*_WAYS.values()])
        way = NEVER if name in self._unanswered["POST"] else way
        if way == EARLY:
            self._decide(reference)
            await self._notify(reference, way)
        else:
            task = asyncio.create_task(self._decide_later(reference, way))
            self._deciding.add(task)
            task.add_done_callback(self._deciding.discard)
        await self._unless_unanswered("POST", name)
        await asyncio.sleep(self._delays.pop(name, 0))

    def _name(self, reference: str) -> str:
        return str(self._fake.payments[reference].body["externalId"])

    async def _unless_unanswered(self, method: str, name: str) -> None:
        """Wait to the end where a payment is not to be answered, once for each method."""
        if name not in self._unanswered[method]:
            return
        self._unanswered[method].discard(name)
        failed, submits, questions = self._bad_answers
        is_submit = method == "POST"
        self._bad_answers = BadAnswers(failed, submits + is_submit, questions + (not is_submit))
        await self._stops.wait()

    async def _decide_later(self, reference: str, way: str) -> None:
        """Decide a payment after a while, and let its callback come in this way."""
        await asyncio.sleep(self._rng.uniform(*_DECIDED_AFTER_S))
        payment = self._fake.payments[reference]
        if way == FORGED:
            # The opposite of what it decides below; our gateway must ask, and go on waiting.
            lie = "SUCCESSFUL" if self._fails(reference) else "FAILED"
            await self._send(payment.callback_url, {**payment.document(), "status": lie}, way)
            await asyncio.sleep(_FORGED_BEFORE_S)
        self._decide(reference)
        if way == UNKNOWN and self._strays < HINTS_WITHOUT_ATTEMPT.burst:
            self._strays += 1
            stray = f"{payment.callback_url.rpartition('/')[0]}/no-attempt-of-ours"
            await self._send(stray, {**payment.document(), "amount": "1000"}, way)
        if way == TWICE:
            await asyncio.gather(*(self._notify(reference, way) for _ in range(2)))
        elif way != NEVER:
            await self._notify(reference, ONCE)

    def _fails(self, reference: str) -> bool:
        payment = self._fake.payments[reference]
        return str(payment.body[payment.product.party]["partyId"]).endswith(FAILS[1:])

    def _decide(self, reference: str) -> None:
        if self._fails(reference):
            self._fake.decide(reference, "FAILED", "NOT_ENOUGH_FUNDS")
        else:
            self._fake.decide(reference, "SUCCESSFUL")

    async def _notify(self, reference: str, way: str) -> None:
        payment = self._fake.payments[reference]
        await self._send(payment.callback_url, payment.document(), way)

    async def _send(self, url: str, document: Mapping[str, object], way: str) -> None:
        """Send a callback once, as MTN does. Where no server of ours answers, it is not noted."""
        method = self._rng.choice(("PUT", "POST"))
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self._http.request(method, url, json=document) as answer:
                self._seen.notified[way, answer.status] += 1


@asynccontextmanager
async def momo(plan: Plan, seen: Observations) -> AsyncIterator[Momo]:
    """The fake MTN MoMo server, running inside of the context."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as http:
        network = Momo(seen, http, plan.chance("momo"))
        await network.start()
        try:
            yield network
        finally:
            await network.close()
