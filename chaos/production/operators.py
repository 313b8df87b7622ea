"""Operators who act at random over the control API, while servers are killed and networks fail.

Each request that enters something has a name of its own as its reason. Where its answer is lost,
or the operator hangs up before it, the operator looks whether it is in the books, and if not acts
again, under a new name.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

import aiohttp

from chaos.clients import ANSWER_WITHIN_S
from chaos.final_state import NoAnswer
from chaos.production.observations import FAILED, SUCCEEDED, Act, Observations, Purchase

PEOPLE: Final = ("ama", "kofi")
REFUND: Final = "refund"
_THINKS_S: Final = 0.05
_BACK_OFF_S: Final = 0.1
# How often an operator does not wait for an answer, and for how many seconds at most.
_HANGS_UP: Final = 0.1
_IMPATIENT_S: Final = (0.002, 0.03)
_MOST_TRIES: Final = 600
_NEWEST: Final = 5  # payments, which may still be open
_OFTEN: Final = 0.7
_PART: Final = 0.3
_CANCELLED: Final = "003"
_LEDGER: Final = "ledger?mode=P&limit=100"

# Those of a payment that the answers to a refund stand for.
_CODES: Final[Mapping[int | None, str]] = {200: "202", 404: "404", 409: "409"}

Body = Mapping[str, object]


class Operators:
    """Two people who settle, ask, refund, correct, close and read.

    network: its name in the books. names: how the names of acts begin.
    """

    def __init__(
        self,
        seen: Observations,
        http: aiohttp.ClientSession,
        urls: Sequence[str],
        services: Sequence[int],
        network: str,
        names: str,
        rng: Random,
    ) -> None:
        self._seen = seen
        self._http = http
        self._urls = urls
        self._services = services
        self._network = network
        self._names = names
        self._rng = rng
        self._settled: list[str] = []
        self._entries: list[int] = []
        self._closed: dict[tuple[int, int], str] = {}
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []
        self._kinds: Sequence[Callable[[str], Awaitable[object]]] = (
            *(self._settle, self._ask, self._refund, self._resolve, self._adjust),
            *(self._reverse, self._close, self._top_up, self._read),
            *(self._settle, self._settle, self._refund, self._refund),
        )

    def start(self) -> None:
        """Let both begin. Each does every kind of act once, and then any."""
        self._tasks = [asyncio.create_task(self._work(person)) for person in PEOPLE]

    async def stop(self) -> None:
        """Wait until both have finished what they do."""
        self._stopped = True
        await asyncio.gather(*self._tasks)

    async def _work(self, person: str) -> None:
        first = self._rng.sample(self._kinds, len(self._kinds))
        while first or not self._stopped:
            act = first.pop() if first else self._rng.choice(self._kinds)
            await act(person)
            await asyncio.sleep(self._rng.uniform(0, _THINKS_S))

    async def finish(self) -> None:
        """Ask about all that was settled by hand, empty suspense, and end what waits."""
        by, *_ = PEOPLE
        for path in dict.fromkeys(self._settled):
            asked = await self._get(f"{path}/ask", {})
            if " says " not in asked.get("network_said", ""):
                self._seen.unknown_there.add(path.rpartition("/")[2])
        for item in (await self._get("ledger/suspense"))["suspense"]:
            of = {"transaction": item["network_transaction_id"]}
            if await self._enter("resolve", by, "ledger/resolve", {**of, "to": "service"}) is None:
                await self._enter("resolve", by, "ledger/resolve", {**of, "to": "fees"})
        for waiting in (await self._get("transactions?waiting=true&limit=100"))["transactions"]:
            path = f"transactions/{waiting['service_id']}/{waiting['transaction_id']}"
            await self._enter("settle", by, f"{path}/settle", {"status": waiting["status"]}, path)
        for url in self._urls:
            await self._check_end(url)

    async def _check_end(self, url: str) -> None:
        """See on one server that the books agree, and that nothing stands or waits any more."""
        await self._audit(url)
        for (service, period), closed in self._closed.items():
            await self._check_period(service, period, closed)
        for path, name in (
            ("ledger/suspense", "suspense"),
            ("transactions?waiting=true", "transactions"),
        ):
            for left in (await self._get(path, url=url))[name]:
                self._seen.remarks.append(f"{path} still has {left['transaction_id']}")

    # What they do.

    async def _settle(self, by: str) -> None:
        chosen = await self._open() or self._some()
        if chosen is None:
            return
        (status,) = self._rng.choices((SUCCEEDED, FAILED, _CANCELLED), (6, 3, 1))
        body: dict[str, object] = {"status": status, "force": self._rng.random() < _OFTEN}
        if status == SUCCEEDED and self._rng.random() < _PART:
            body["amount"] = self._part_of(chosen.amount)
        if self._rng.random() < _PART:
            body["network_id"] = f"slip-{self._rng.randrange(1000)}"
        path = _address(chosen)
        self._settled.append(path)
        await self._enter("settle", by, f"{path}/settle", body, path)

    async def _open(self) -> Purchase | None:
        """A payment or a refund that is listed as open, most of the time."""
        listed = (await self._get("transactions?status=002&mode=P&limit=50"))["transactions"]
        names = {each["transaction_id"] for each in listed}
        found = [each for each in self._seen.purchases if each.transaction_id in names]
        return self._rng.choice(found) if found and self._rng.random() < _OFTEN else None

    async def _ask(self, _by: str) -> None:
        purchase = self._some()
        if purchase is not None:
            await self._get(f"{_address(purchase)}/ask", {})

    async def _refund(self, by: str) -> None:
        paid = {
            each.trans_ref
            for each in self._seen.facts.deliveries
            if each.trans_status.startswith(SUCCEEDED)
        }
        collections = [
            each
            for each in self._seen.purchases
            if each.operation == "collect" and each.transaction_id in paid
        ]
        if not collections:
            return
        of = self._rng.choice(collections)
        refund = Purchase(of.service_id, self._name(), REFUND, Decimal(0))
        refund.refund_of = of.transaction_id
        self._seen.purchases.append(refund)
        body: dict[str, object] = {"transaction_id": refund.transaction_id}
        if self._rng.random() < _OFTEN:
            body["amount"] = self._part_of(of.amount)
        await self._enter(
            REFUND, by, f"{_address(of)}/refund", body, _address(refund), codes=refund.codes
        )

    async def _resolve(self, by: str) -> None:
        items = (await self._get("ledger/suspense"))["suspense"]
        if items:
            item = self._rng.choice(items)
            body = {
                "transaction": item["network_transaction_id"],
                "to": self._rng.choice(("service", "clearing", "fees")),
            }
            if self._rng.random() < _OFTEN:
                body["amount"] = self._part_of(abs(Decimal(item["amount"])))
            await self._enter("resolve", by, "ledger/resolve", body)

    async def _adjust(self, by: str) -> None:
        ends = [
            self._rng.choice(("collection", "payout")),
            self._rng.choice(("clearing", "fees", "suspense")),
        ]
        ours = ends[1]
        self._rng.shuffle(ends)
        body: dict[str, object] = {
            "service_id": self._rng.choice(self._services),
            "amount": self._part_of(Decimal(3)),
            **dict(zip(("debit", "credit"), ends, strict=True)),
        }
        if ours == "clearing":
            body["network"] = self._network
        if ours == "suspense":
            purchase = self._some()
            if purchase is None:
                return
            body |= {"transaction": purchase.transaction_id, "service_id": purchase.service_id}
        await self._enter("adjust", by, "ledger/adjust", body)

    async def _reverse(self, by: str) -> None:
        if self._entries:
            body = {"entry": self._rng.choice(self._entries)}
            await self._enter("reverse", by, "ledger/reverse", body)

    async def _close(self, by: str) -> None:
        service = self._rng.choice(self._services)
        until = datetime.now(UTC) - timedelta(seconds=self._rng.uniform(0, 2))
        body = {"service_id": service, "until": until.isoformat()}
        statement = await self._enter("close", by, "ledger/close", body)
        if statement is not None:
            self._closed[service, statement["period"]] = _lines_of(statement)
            paid = -Decimal(statement["entry"]["amount"])
            if not paid == _total(statement) == Decimal(statement["total"]):
                text = f"{paid} was paid, and the lines sum to {_total(statement)}"
                self._seen.remarks.append(f"period {statement['period']} of {service}: {text}")

    async def _top_up(self, by: str) -> None:
        service, units = self._rng.choice(self._services), self._rng.randrange(1, 20)
        body = {"service_id": service, "mode": "P", "account": "airtime", "units": units}
        await self._enter("topup", by, "ledger/topup", body)

    async def _read(self, _by: str) -> None:
        """Read the statement of a service, what is in suspense, or the audit."""
        await self._rng.choice((self._read_statement, self._read_suspense, self._audit))()

    async def _read_suspense(self) -> None:
        await self._get("ledger/suspense")

    async def _read_statement(self) -> None:
        if self._closed and self._rng.random() < _OFTEN:
            (service, period), closed = self._rng.choice([*self._closed.items()])
            await self._check_period(service, period, closed)
        else:
            await self._get(f"ledger/statement?service_id={self._rng.choice(self._services)}")

    async def _check_period(self, service: int, period: int, closed: str) -> None:
        path = f"ledger/statement?service_id={service}&period={period}"
        if _lines_of(await self._get(path)) != closed:
            self._seen.remarks.append(f"closed period {period} of service {service} has changed")

    async def _audit(self, url: str = "") -> None:
        ledger = await self._get("ledger?mode=P&limit=1&audit=true", url=url)
        self._seen.remarks += [
            f"the audit says: {each['rule']}: {each['detail']}" for each in ledger["violations"]
        ]

    # How they do it.

    def _some(self) -> Purchase | None:
        """A payment or a refund, more often one of the newest."""
        purchases = self._seen.purchases
        if self._rng.random() < _OFTEN:
            purchases = purchases[-_NEWEST:]
        return self._rng.choice(purchases) if purchases else None

    def _part_of(self, amount: Decimal) -> str:
        cents = max(int(amount * 100), 1)
        return str(Decimal(self._rng.randint(1, cents)) / 100)

    def _name(self) -> str:
        return f"{self._names}-r{len(self._seen.purchases) + 1}"

    async def _enter(
        self,
        kind: str,
        by: str,
        path: str,
        body: Body,
        shown: str = _LEDGER,
        codes: list[str | None] | None = None,
    ) -> Any:
        """Act once; where the answer is lost, look, and act again if the act is not in the books.

        shown: where the control API shows the act. Returns the answer, or None where it was refused
        or never came.
        """
        for _ in range(_MOST_TRIES):
            act = Act(f"{self._names}-a{len(self._seen.acts) + 1}", kind)
            self._seen.acts.append(act)
            signed = {**body, "by": by, "reason": act.name}
            within = self._patience(kind)
            act.code, text = await self._send("POST", path, signed, within=within)
            if codes is not None:
                codes.append(_CODES.get(act.code))
            if act.code is not None:
                return self._heard(act, text)
            act.found = f'"{act.name}"' in json.dumps(await self._get(shown))
            if act.found:
                return None
        raise NoAnswer(f"our gateway never answered POST {path}")

    def _patience(self, kind: str) -> float | None:
        """After how many seconds to hang up.

        Never from a settlement: it asks the network, and would end long after a look at it.
        """
        if kind == "settle" or self._stopped or self._rng.random() > _HANGS_UP:
            return None
        return self._rng.uniform(*_IMPATIENT_S)

    def _heard(self, act: Act, text: str) -> Any:
        if act.code not in {200, 404, 409}:
            self._seen.remarks.append(f"{act.kind} was answered HTTP {act.code}: {text[:200]}")
        if act.code != 200:
            return None
        act.noted = "nothing was settled by hand" in text
        answer = json.loads(text)
        entry = answer.get("entry", answer) if act.kind != "topup" else {}
        if isinstance(entry.get("id"), int):
            self._entries.append(entry["id"])
        return answer

    async def _get(self, path: str, body: Body | None = None, url: str = "") -> Any:
        """Read, or ask, until an answer comes."""
        self._seen.reads += 1
        for _ in range(_MOST_TRIES):
            method = "GET" if body is None else "POST"
            code, text = await self._send(method, path, body, url)
            if code is not None:
                if code not in {200, 404, 409}:
                    self._seen.remarks.append(f"{path} was answered HTTP {code}: {text[:200]}")
                return json.loads(text)
            await asyncio.sleep(_BACK_OFF_S)
        raise NoAnswer(f"our gateway never answered {method} {path}")

    async def _send(
        self,
        method: str,
        path: str,
        body: Body | None,
        url: str = "",
        within: float | None = None,
    ) -> tuple[int | None, str]:
        """The HTTP status and the text of the answer; None if it does not say the outcome.

        within: hang up after this many seconds; None for the time that every answer has.
        """
        limit = aiohttp.ClientTimeout(total=within or ANSWER_WITHIN_S)
        for _ in range(_MOST_TRIES):
            to = url or self._rng.choice(self._urls)
            try:
                async with self._http.request(
                    method, f"{to}/_sandbox/{path}", json=body, timeout=limit
                ) as answer:
                    text = await answer.text()
            except aiohttp.ClientConnectorError:  # nothing was sent
                await asyncio.sleep(_BACK_OFF_S)
                continue
            except (aiohttp.ClientError, OSError, TimeoutError):
                return None, ""
            if answer.status < 500:
                return answer.status, text
            if not self._seen.database_away:
                self._seen.remarks.append(f"{path} was answered HTTP {answer.status}: {text[:200]}")
            return None, text
        raise NoAnswer(f"no server takes {method} {path}")


def _address(purchase: Purchase) -> str:
    return f"transactions/{purchase.service_id}/{purchase.transaction_id}"


def _lines_of(statement: Any) -> str:
    """What a closed period never changes."""
    return json.dumps([(each["id"], each["amount"]) for each in statement["lines"]])


def _total(statement: Any) -> Decimal:
    return sum((Decimal(each["amount"]) for each in statement["lines"]), Decimal(0))
