"""The ledger under /_sandbox: it tops up SMS units and lists every posting."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from sandbox_sim.records.ledger import Reason
from sandbox_sim.values.vocabulary import Wallet
from sandbox_sim.web.control.input import ListQuery
from sandbox_sim.web.control.ledger import LedgerListQuery, Topup
from tests.conftest import Sandbox, Seen, StartSandbox
from tests.web.control_api import assert_error, get, post
from tests.web.wire import exchange, request_bytes


async def topup(sandbox: Sandbox, units: object, service_id: object = 55) -> Seen:
    return await post(sandbox, "ledger/topup", service_id=service_id, units=units)


async def ledger(sandbox: Sandbox, query: str = "") -> dict[str, Any]:
    return dict(await get(sandbox, f"ledger?{query}"))


async def moved(sandbox: Sandbox, query: str = "") -> list[tuple[str, str]]:
    """The reason and the amount of each posting, newest first."""
    return [(each["reason"], each["amount"]) for each in (await ledger(sandbox, query))["postings"]]


async def pages(sandbox: Sandbox, query: str) -> AsyncIterator[dict[str, Any]]:
    """Yield each page of the list, newest first."""
    page = await ledger(sandbox, query)
    yield page
    while page["next"] is not None:
        page = await ledger(sandbox, f"{query}&after={page['next']}")
        yield page


@pytest.mark.decision("D22")
@pytest.mark.spec("sandbox.9", "sandbox.10")
async def test_sms_can_be_sent_again_after_a_top_up(start_sandbox: StartSandbox) -> None:
    """The account balance shows a top-up only if balances are live."""
    for balances, reported in (("fixed", 500), ("live", 3)):
        sandbox = await start_sandbox(balances=balances, sms_initial_units=1)
        assert [(await sandbox.sms()).code for _ in range(2)] == ["370", "237"]

        await topup(sandbox, 3)

        assert (await sandbox.balance()).data["sms_balance"] == reported
        assert [(await sandbox.sms()).code for _ in range(4)] == [*["370"] * 3, "237"]
        assert await sandbox.sms_balance() == 0

    for service_id, units in ((1, 1), (2**63 - 1, 1), (57, 1), (56, 1_000_000_000)):
        assert (await topup(sandbox, units, service_id)).body["sms_balance"] == 1 + units


NOT_INTEGERS: list[object] = [None, True, False, "5", "", 5.0, 5.5, [], [5], {}]
SERVICE = "service_id must be an integer from 1 to 9223372036854775807"
UNITS = "units must be an integer from 1 to 1000000000"
BAD_TOPUPS: list[tuple[bytes, list[str]]] = [
    *((json.dumps({"service_id": v, "units": 5}).encode(), [SERVICE]) for v in NOT_INTEGERS),
    *((json.dumps({"service_id": 55, "units": v}).encode(), [UNITS]) for v in NOT_INTEGERS),
    *((b'{"service_id": %d, "units": 5}' % v, [SERVICE]) for v in (0, -1, 2**63, 10**400)),
    *((b'{"service_id": 55, "units": %d}' % v, [UNITS]) for v in (0, -1, 10**9 + 1, 10**400)),
    *((b'{"service_id": 55, "units": %b}' % v, [UNITS]) for v in (b"NaN", b"1e2", b"-0")),
    (b'{"service_id": 55, "units": Infinity}', [UNITS]),
    (b'{"units": 5}', ["service_id is required"]),
    (b'{"service_id": 55}', ["units is required"]),
    (b"{}", ["service_id is required", "units is required"]),
    (b'{"service_id": "55", "units": true}', [SERVICE, UNITS]),
    (b'{"service_id": 55, "units": 5, "unit": 5}', ["'unit' is unknown: did you mean units?"]),
    (b'{"unit": 5, "user": 1}', ["'unit'", "'user'", "service_id is req", "units is required"]),
    (b'{"service_id": 55, "units": 5, "": 1}', ["'' is unknown"]),
    (b'{"service_id": 55, "units": 5, "\\u0000": 1}', ["is unknown"]),
    *((b, ["the body must be a JSON object"]) for b in (b"", b"[]", b"null", b'"units"', b"true")),
    *((b, ["not valid JSON"]) for b in (b"{", b"units=5", b"\xff\xfe", b'{"units": 05}')),
    *((b, ["not valid JSON"]) for b in (b"[" * 50_000, b'{"units": ' + b"9" * 5000 + b"}")),
    (b'{"service_id": 55, "units": 5, "\\ud800": 1}', ["not valid JSON"]),
]


async def test_a_bad_top_up_names_each_wrong_field_and_posts_nothing(sandbox: Sandbox) -> None:
    for body, named in BAD_TOPUPS:
        answer = await exchange(
            sandbox, request_bytes("/_sandbox/ledger/topup", body, credentials=False)
        )

        assert_error(answer, 400, *named)
        assert await moved(sandbox) == [], body[:60]


class TestPostings:
    async def test_a_posting_has_its_account_amount_reason_and_time(self, sandbox: Sandbox) -> None:
        await sandbox.sms_balance()
        await sandbox.advance(minutes=5)
        processing_id = (await sandbox.sms(msg_body="a" * 161)).data["processing_id"]

        charge, opening = (await ledger(sandbox))["postings"]

        assert charge["id"] > opening["id"] > 0
        assert charge == {
            "id": charge["id"],
            "mode": "S",
            "kind": "posted",
            "service_id": 55,
            "account": "sms",
            "amount": "-2",
            "reason": "charge",
            "subject": processing_id,
            "at": "2026-01-01T09:05:00.000Z",
            "debit": "service/55/sms/SMS",
            "credit": "issued/SMS",
            "pending": None,
        }
        assert (opening["reason"], opening["amount"], opening["subject"]) == ("opening", "500", "")

    async def test_postings_are_filtered_by_their_fields(self, sandbox: Sandbox) -> None:
        rows: list[tuple[str, list[int]]] = [
            ("", [56, 56, 55, 55]),
            ("service_id=55", [55, 55]),
            ("service_id=57", []),
            ("reason=opening", [56, 55]),
            ("reason=refund", []),
            ("account=sms", [56, 56, 55, 55]),
            ("account=payout", []),
            ("subject=unknown", []),
            ("subject=", [56, 56, 55, 55]),
            ("service_id=56&account=sms&reason=topup", [56]),
        ]
        await topup(sandbox, 5, service_id=55)
        await topup(sandbox, 5, service_id=56)

        for query, expected in rows:
            found = (await ledger(sandbox, query))["postings"]

            assert [posting["service_id"] for posting in found] == expected


async def test_a_page_has_20_postings_by_default_and_at_most_100(sandbox: Sandbox) -> None:
    """Only the first page has the balances."""
    for _ in range(100):
        await topup(sandbox, 1)

    counts = {"": 20, "limit=7": 7, "limit=100": 100, "limit=101": 100, "limit=9000": 100}
    for query, count in counts.items():
        assert len((await ledger(sandbox, query))["postings"]) == count
    first, second = [page async for page in pages(sandbox, "limit=90")]
    assert set(first) == {"postings", "next", "balances"}
    assert set(second) == {"postings", "next"}


BAD_QUERIES: list[tuple[str, list[str]]] = [
    *((f"service_id={v}", [SERVICE]) for v in ("", "0", "-1", "x", "5.0", "%2B5", "+5", "5_0")),
    *((f"service_id={v}", [SERVICE]) for v in (2**63, 10**400, "true", "%D9%A5", "5%0A")),
    *((f"limit={v}", ["limit must be an integer above 0"]) for v in ("", "0", "-1", "x", "1e2")),
    *((f"after={v}", ["after must be the id"]) for v in ("", "0", "-1", "x", 2**63)),
    *((f"account={v}", ["one of payout, collection, sms, airtime"]) for v in ("", "SMS", "x")),
    *((f"reason={v}", ["one of opening, charge, refund, topup"]) for v in ("", "x")),
    *((f"audit={v}", ["audit must be true or false"]) for v in ("", "yes", "1")),
    ("subject=%00", ["subject must be"]),
    ("service=55", ["'service' is unknown", "service_id"]),
    ("page=2&offset=1", ["'page' is unknown", "'offset' is unknown"]),
    ("=5", ["'' is unknown"]),
    ("%ff=5", ["is unknown"]),
    ("service_id=55&service_id=56", ["service_id must be given once"]),
    ("limit=0&after=x&account=x", ["limit must", "after must", "account must"]),
    ("limit=1&limit=2&after=x", ["limit must be given once", "after must"]),
]


async def test_a_bad_query_names_each_wrong_field(sandbox: Sandbox) -> None:
    for query, named in BAD_QUERIES:
        path = f"/_sandbox/ledger?{query}"
        request = request_bytes(path, b"", method="GET", credentials=False)

        assert_error(await exchange(sandbox, request), 400, *named)


def test_every_field_of_the_input_has_a_description() -> None:
    for model in (Topup, LedgerListQuery, ListQuery):
        assert [name for name, each in model.model_fields.items() if not each.description] == []


class TestBalances:
    async def test_wallets_have_balances_and_an_audit_checks_them(self, sandbox: Sandbox) -> None:
        await sandbox.sms()
        await topup(sandbox, 5, service_id=59)

        plain = await ledger(sandbox)
        audit = await ledger(sandbox, "audit=true&limit=1&service_id=55")

        own = {"mode": "S", "account": "sms", "asset": "SMS", "pending": "0"}
        assert plain["balances"] == [
            {"service_id": service_id, "balance": balance, "available": balance, **own}
            for service_id, balance in [(55, "499"), (59, "5")]
        ]
        assert (audit["agrees"], audit["violations"], audit["postings_checked"]) == (True, [], 4)
        assert "agrees" not in plain
        assert "agrees" not in await ledger(sandbox, "audit=false")

    @pytest.mark.spec("sandbox.10")
    @pytest.mark.decision("D21", "D22", "D25")
    async def test_a_balance_is_the_sum_of_its_postings(self, start_sandbox: StartSandbox) -> None:
        sandbox = await start_sandbox(balances="live", sms_initial_units=20)
        for service_id in (55, 59):
            chosen = {"service_id": service_id}
            await topup(sandbox, 7, service_id)
            await sandbox.sms(customer_number="0244000009", msg_body="a" * 161, **chosen)
            await sandbox.bulk("0244000001", "0270000009", "0200000002", **chosen)
            await sandbox.sms(msg_body="a" * 10_000, **chosen)
            await sandbox.deposit(transaction_id="T1", amount=0.1, **chosen)
            await sandbox.collect(transaction_id="T2", amount=0.2, **chosen)
            await sandbox.payout(transaction_id="T3", amount=4.99, **chosen)
            await sandbox.airtime(transaction_id="T4", amount=0.7, **chosen)
            await sandbox.airtime(transaction_id="T5", amount=10_000, **chosen)
            await sandbox.advance(seconds=5)
            await topup(sandbox, 1, service_id)

        found = [page async for page in pages(sandbox, "limit=3&audit=true")]
        sums: dict[tuple[int, str], Decimal] = defaultdict(Decimal)
        for posting in (posting for page in found for posting in page["postings"]):
            assert posting["reason"] in set(Reason)
            sums[posting["service_id"], posting["account"]] += Decimal(posting["amount"])

        assert found[0]["agrees"] is True
        assert sums == {
            (b["service_id"], b["account"]): Decimal(b["balance"]) for b in found[0]["balances"]
        }
        assert {account for _, account in sums} == set(Wallet)
        for service_id in (55, 59):
            reported = (await sandbox.balance(service_id)).data
            for account in Wallet:
                assert float(sums[service_id, account]) == reported[f"{account}_balance"]
            assert sums[service_id, "sms"] == await sandbox.sms_balance(service_id)

    @pytest.mark.decision("D21")
    async def test_large_amounts_do_not_lose_digits(self, start_sandbox: StartSandbox) -> None:
        """Deposits have no cap, and 1e300 has more digits than Decimal keeps by default."""
        sandbox = await start_sandbox(balances="live")
        await sandbox.deposit(transaction_id="T1", amount=1e300)
        await sandbox.advance(seconds=1)
        await sandbox.payout(transaction_id="T2", amount=1e300)

        body = await ledger(sandbox, "audit=true")

        assert (body["balances"][0]["balance"], body["agrees"]) == ("10000", True)
