"""Overrides: what is asked for comes, whatever the rules of the sandbox say."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Sandbox, Seen, StartSandbox
from tests.sqlite_files import killed
from tests.web.conftest import kept_callbacks
from tests.web.control_api import ask, assert_error, override
from tests.web.hosted_page import LANDING_PAGE, choose, look, redirect, status
from tests.web.wire import CODES

PAYMENTS = ["collect", "card", "deposit", "payout", "bill", "airtime"]
# What refuses each of them by its value.
REFUSED: dict[str, dict[str, Any]] = {
    "collect": {"customer_number": "0540010000"},
    "card": {"customer_number": "4000000000000002"},
    "deposit": {"customer_number": "0244000009"},
    "payout": {"amount": 20000},
    "bill": {"account_number": "0244000001"},
    "airtime": {"amount": 10000.01},
}
OTHERS = ["status", "balance", "sms", "bulk-sms", "sms-history", "sms-balance"]


async def pay(sandbox: Sandbox, operation: str = "collect", **fields: Any) -> Seen:
    answer: Seen = await getattr(sandbox, operation)(**fields)
    return answer


async def query(sandbox: Sandbox, operation: str) -> Seen:
    """A good request to one of the other operations."""
    match operation:
        case "status" | "balance" | "sms":
            answer: Seen = await getattr(sandbox, operation)()
            return answer
        case "bulk-sms":
            return await sandbox.bulk("0244000001")
        case "sms-history":
            return await sandbox.history()
        case _:
            return await sandbox.post("/sms/balance", {"service_id": 55})


async def listed(sandbox: Sandbox, query: str = "") -> list[dict[str, Any]]:
    answer = await ask(sandbox, "GET", f"/_sandbox/overrides{query}")
    found: list[dict[str, Any]] = answer.body["overrides"]
    return found


async def counts(sandbox: Sandbox) -> list[tuple[int, int]]:
    return [(each["seen"], each["used"]) for each in await listed(sandbox)]


async def bodies(sandbox: Sandbox) -> list[dict[str, Any]]:
    return [message["json"] for message in await sandbox.inbox()]


class TestStatuses:
    @pytest.mark.spec("states.transactions")
    @pytest.mark.decision("D31")
    @pytest.mark.parametrize("operation", PAYMENTS)
    @pytest.mark.parametrize(
        ("code", "told"), [("000", "000/SUCCESS"), ("001", "001/FAILED"), ("003", "003/CANCELLED")]
    )
    async def test_a_payment_ends_as_it_is_told_and_its_callback_says_so(
        self, sandbox: Sandbox, operation: str, code: str, told: str
    ) -> None:
        """Even one that the sandbox would refuse."""
        await override(sandbox, outcome={"status": code})

        answer = await pay(sandbox, operation, **REFUSED[operation])
        assert answer.code == ("000" if operation == "card" else "202")
        assert answer.rule == "override"
        assert (answer.body.get("status") == "success") is (operation == "payout")
        assert (await sandbox.status()).data["status"] == "002"
        await sandbox.advance(seconds=3)

        assert (await sandbox.status()).data["status"] == code
        assert (await sandbox.callback())["trans_status"] == told

    @pytest.mark.decision("D31")
    @pytest.mark.parametrize("operation", PAYMENTS)
    async def test_a_payment_can_stay_pending(self, sandbox: Sandbox, operation: str) -> None:
        await override(sandbox, outcome={"status": "002"})

        await pay(sandbox, operation)
        await sandbox.advance(minutes=14)

        assert await status(sandbox) == "002"
        assert await sandbox.inbox() == []
        answer = await ask(
            sandbox, "POST", "/_sandbox/transactions/55/T1/settle", b'{"status": "003"}'
        )
        await sandbox.advance(seconds=0)
        assert answer.body["status"] == "003"
        assert (await sandbox.callback())["trans_status"] == "003/CANCELLED"

    async def test_live_balances_move_by_what_became_of_it(
        self, start_sandbox: StartSandbox
    ) -> None:
        sandbox = await start_sandbox(balances="live")
        await override(sandbox, outcome={"status": "001"}, times=1)

        for transaction_id in "T1", "T2":
            await sandbox.payout(transaction_id=transaction_id)
        await sandbox.advance(seconds=1)

        assert (await sandbox.balance()).data["payout_balance"] == 9989.5

    async def test_the_transaction_says_that_it_was_told_to(self, sandbox: Sandbox) -> None:
        asked = {"outcome": {"status": "003"}, "delay_ms": 20, "callback": {"profile": "flat"}}
        made = await override(sandbox, **asked)

        await sandbox.collect()

        shown = await ask(sandbox, "GET", "/_sandbox/transactions/55/T1")
        assert shown.body["override"] == {"id": made["id"], **asked}


@pytest.mark.decision("D20")
class TestTheCardPage:
    @pytest.mark.parametrize("code", ["000", "001", "003"])
    async def test_pay_brings_what_was_asked_for(self, sandbox: Sandbox, code: str) -> None:
        await override(sandbox, outcome={"status": code})
        page = await redirect(sandbox)
        await look(sandbox, page)

        answer = await choose(sandbox, page, "pay")
        await sandbox.advance(seconds=5)

        assert await status(sandbox) == code
        assert (answer.status == 303) is (code == "000")
        assert len(await sandbox.inbox()) == 1

    async def test_a_payment_that_stays_pending_leads_back_to_the_shop(
        self, sandbox: Sandbox
    ) -> None:
        await override(sandbox, outcome={"status": "002"})
        page = await redirect(sandbox)

        answer = await choose(sandbox, page, "pay")
        await sandbox.advance(seconds=5)

        assert (answer.status, answer.headers["Location"]) == (303, LANDING_PAGE)
        assert await status(sandbox) == "002"
        assert await sandbox.inbox() == []

    @pytest.mark.parametrize(("choice", "code"), [("fail", "001"), ("cancel", "003")])
    async def test_fail_and_cancel_are_what_they_are(
        self, sandbox: Sandbox, choice: str, code: str
    ) -> None:
        await override(sandbox, outcome={"status": "000"})
        page = await redirect(sandbox)

        await choose(sandbox, page, choice)

        assert await status(sandbox) == code


class TestResponseCodes:
    @pytest.mark.spec("codes")
    @pytest.mark.decision("D7")
    @pytest.mark.parametrize("operation", PAYMENTS)
    @pytest.mark.parametrize("code", ["016", "019", "402", "219", "403", "404", "429", "500"])
    async def test_a_payment_is_rejected_and_leaves_nothing(
        self, sandbox: Sandbox, operation: str, code: str
    ) -> None:
        await override(sandbox, outcome={"response_code": code}, times=1)

        answer = await pay(sandbox, operation)
        await sandbox.advance(seconds=5)

        assert answer.code == code
        assert answer.status == {"402": 402, "403": 403, "404": 404, "429": 429, "500": 500}.get(
            code, 200
        )
        assert answer.rule == "override"
        assert set(answer.body) == {"response_code", "response_message"}
        assert (await sandbox.status()).code == "027"
        assert await sandbox.inbox() == []

    async def test_the_setting_for_rejections_counts(self, start_sandbox: StartSandbox) -> None:
        sandbox = await start_sandbox(sandbox_reject_status=422)
        await override(sandbox, outcome={"response_code": "019"})

        assert (await sandbox.collect()).status == 422

    async def test_a_rejection_charges_nothing(self, start_sandbox: StartSandbox) -> None:
        sandbox = await start_sandbox(balances="live")
        await override(sandbox, outcome={"response_code": "500"}, times=1)

        await sandbox.payout()
        await sandbox.advance(seconds=5)

        assert (await sandbox.balance()).data["payout_balance"] == 10000

    @pytest.mark.decision("D16")
    @pytest.mark.parametrize("operation", PAYMENTS)
    async def test_a_simulated_decline_keeps_its_record(
        self, sandbox: Sandbox, operation: str
    ) -> None:
        await override(sandbox, outcome={"response_code": "015"})

        assert (await pay(sandbox, operation)).code == "015"
        await sandbox.advance(seconds=5)

        assert await status(sandbox) == "001"
        assert await sandbox.inbox() == []

    @pytest.mark.parametrize("operation", PAYMENTS)
    @pytest.mark.parametrize("code", ["000", "202"])
    async def test_acceptance_is_that_of_the_operation(
        self, sandbox: Sandbox, operation: str, code: str
    ) -> None:
        await override(sandbox, outcome={"response_code": code})

        answer = await pay(sandbox, operation, **REFUSED[operation])
        await sandbox.advance(seconds=5)

        assert answer.code == ("000" if operation == "card" else "202")
        assert await status(sandbox) == "000"

    async def test_code_is_short_for_it(self, sandbox: Sandbox) -> None:
        made = await override(sandbox, outcome={"code": "402"})

        assert made["outcome"] == {"response_code": "402"}
        assert (await sandbox.collect()).code == "402"

    @pytest.mark.spec("codes")
    @pytest.mark.parametrize("operation", OTHERS)
    @pytest.mark.parametrize("code", ["027", "100", "237", "404", "429", "500", "S002"])
    async def test_any_other_operation_can_be_rejected(
        self, sandbox: Sandbox, operation: str, code: str
    ) -> None:
        await override(
            sandbox,
            match={"service_id": 55, "operation": operation},
            outcome={"response_code": code},
            times=1,
        )

        answer = await query(sandbox, operation)

        assert (answer.code, answer.rule) == (code, "override")
        assert set(answer.body) == {"response_code", "response_message"}
        of_sms = "sms" in operation
        statuses = {"100": 401, "404": 200 if of_sms else 404, "429": 429, "500": 500}
        assert answer.status == statuses.get(code, 200)
        assert (await query(sandbox, operation)).rule != "override"

    @pytest.mark.parametrize("operation", ["sms", "bulk-sms"])
    async def test_a_rejected_sms_is_neither_sent_nor_charged(
        self, sandbox: Sandbox, operation: str
    ) -> None:
        await override(sandbox, match={"operation": operation}, outcome={"response_code": "371"})

        await query(sandbox, operation)

        assert await sandbox.sms_balance() == 500
        assert (await sandbox.history()).data == []

    async def test_a_bulk_is_told_by_any_of_its_recipients(self, sandbox: Sandbox) -> None:
        match = {"customer_number": "0200000002"}
        await override(sandbox, match=match, outcome={"response_code": "S002"})

        assert (await sandbox.bulk("0244000001", "233200000002")).code == "S002"
        assert (await sandbox.bulk("0244000001")).code == "370"

    async def test_what_is_accepted_anyway_stays_as_it_is(self, sandbox: Sandbox) -> None:
        match = {"operation": "sms"}
        await override(sandbox, match=match, outcome={"response_code": "237"})
        await override(sandbox, match=match, outcome={"response_code": "370"}, times=1)

        assert [(await sandbox.sms()).code for _ in range(2)] == ["370", "237"]


class TestWhichOne:
    async def test_the_newest_goes_first_and_makes_room_when_it_is_used_up(
        self, sandbox: Sandbox
    ) -> None:
        await override(sandbox, outcome={"response_code": "402"})
        await override(sandbox, outcome={"response_code": "019"}, times=2)

        codes = [(await sandbox.collect(transaction_id=f"T{n}")).code for n in range(4)]

        assert codes == ["019", "019", "402", "402"]
        assert await counts(sandbox) == [(2, 2), (2, 2)]

    @pytest.mark.parametrize(
        "match",
        [
            {"operation": "payout"},
            {"transaction_id": "T2"},
            {"customer_number": "0244000002"},
            {"nw": "VOD"},
            {"amount": 10},
            {"amount": {"min": 11}},
        ],
    )
    async def test_one_for_others_leaves_this_payment_alone(
        self, sandbox: Sandbox, match: dict[str, Any]
    ) -> None:
        await override(sandbox, match=match, outcome={"response_code": "402"})

        assert (await sandbox.collect()).rule == "sandbox.3"
        assert await counts(sandbox) == [(0, 0)]

    async def test_one_about_payments_is_not_used_by_other_requests(self, sandbox: Sandbox) -> None:
        await override(sandbox, outcome={"status": "003"}, times=1)
        await override(sandbox, outcome={"response_code": "202"}, times=1)
        await override(sandbox, outcome={"response_code": "402"}, times=1)

        for operation in OTHERS:
            await query(sandbox, operation)

        assert await counts(sandbox) == [(0, 0)] * 3

    async def test_one_that_decides_nothing_waits_for_an_accepted_payment(
        self, sandbox: Sandbox
    ) -> None:
        await override(sandbox, callback={"profile": "flat"}, times=1)

        assert (await sandbox.collect(customer_number="0244000009")).rule == "sandbox.3"
        assert await counts(sandbox) == [(1, 0)]
        assert (await sandbox.collect(transaction_id="T2")).rule == "override"
        assert await counts(sandbox) == [(2, 1)]

    async def test_two_services_never_meet(self, sandbox: Sandbox) -> None:
        for service_id, code in ((55, "003"), (56, "001")):
            await override(sandbox, match={"service_id": service_id}, outcome={"status": code})

        for service_id in (55, 56, 57):
            await sandbox.collect(service_id=service_id)
        await sandbox.advance(seconds=1)

        seen = [(await sandbox.status(service_id=each)).data["status"] for each in (55, 56, 57)]
        assert seen == ["003", "001", "000"]
        assert [each["match"] for each in await listed(sandbox, "?service_id=56")] == [
            {"service_id": 56}
        ]
        await ask(sandbox, "DELETE", "/_sandbox/overrides?service_id=56")
        assert (await sandbox.collect(service_id=56)).rule == "sandbox.3"
        assert (await sandbox.collect(service_id=55)).rule == "override"

    async def test_what_it_decided_outlasts_it(self, sandbox: Sandbox) -> None:
        made = await override(sandbox, outcome={"status": "003"})
        await sandbox.collect()

        await ask(sandbox, "DELETE", f"/_sandbox/overrides/{made['id']}")
        await sandbox.advance(seconds=1)

        assert await status(sandbox) == "003"

    @pytest.mark.decision("D9")
    async def test_who_may_not_ask_and_what_is_malformed_is_refused_as_ever(
        self, start_sandbox: StartSandbox
    ) -> None:
        credentials = [{"client_key": "k", "secret_key": "s", "service_ids": [7]}]
        sandbox = await start_sandbox()
        closed = await start_sandbox(credentials=credentials)
        for each in sandbox, closed:
            await override(each, outcome={"status": "000"})

        assert (await closed.collect()).code == "100"
        assert (await sandbox.collect(amount="10")).code == "400"
        assert (await sandbox.collect(nw="XXX")).code == "400"
        assert await counts(sandbox) == await counts(closed) == [(0, 0)]

    async def test_a_payment_that_could_not_be_saved_uses_nothing(
        self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await override(sandbox, outcome={"status": "003"}, times=1)
        unit: Any = type(sandbox.gateway.store._unit)  # type: ignore[attr-defined]

        async def broken(_unit: object, _transaction: object) -> None:
            raise ValueError("no")

        with monkeypatch.context() as patch:
            patch.setattr(unit, "add_transaction", broken)
            assert (await sandbox.collect()).code == "500"
        assert await counts(sandbox) == [(0, 0)]

        assert (await sandbox.collect()).rule == "override"
        assert await counts(sandbox) == [(1, 1)]


class TestWhen:
    @pytest.mark.decision("D16")
    async def test_settlement_comes_so_much_later(self, sandbox: Sandbox) -> None:
        await override(sandbox, delay_ms=60_000)
        await sandbox.collect()
        await sandbox.card(transaction_id="T2")

        await sandbox.advance(seconds=60)
        assert [await status(sandbox), (await sandbox.status("T2")).data["status"]] == ["002"] * 2
        await sandbox.advance(seconds=1)
        assert [await status(sandbox), (await sandbox.status("T2")).data["status"]] == [
            *("000", "002")
        ]
        await sandbox.advance(seconds=2)
        assert (await sandbox.status("T2")).data["status"] == "000"

    async def test_even_when_nobody_can_ask_for_it_any_more(self, sandbox: Sandbox) -> None:
        await override(sandbox, outcome={"status": "001"}, delay_ms=86_400_000)
        await sandbox.collect()

        await sandbox.advance(days=1)
        assert await sandbox.inbox() == []
        await sandbox.advance(seconds=1)

        assert (await sandbox.callback())["trans_status"] == "001/FAILED"


async def test_the_journal_names_it_and_what_it_asked_for(sandbox: Sandbox) -> None:
    made = await override(sandbox, outcome={"status": "003"}, callback={"duplicate": 2})

    await sandbox.collect()

    (entry,) = (await ask(sandbox, "GET", "/_sandbox/requests?service_id=55")).body["requests"]
    assert entry["rule"] == "override"
    assert entry["why"] == f"override {made['id']} asks for status 003, callback duplicate 2"


@pytest.mark.parametrize("end", ["stopped", "killed"])
async def test_what_was_decided_comes_after_a_restart(
    start_sandbox: StartSandbox, tmp_path: Path, end: str
) -> None:
    path = tmp_path / "state.sqlite3"
    sandbox = await start_sandbox(store=f"sqlite:{path}")
    await override(sandbox, outcome={"status": "003"}, callback={"bad_signature": True}, times=2)
    await sandbox.collect()

    if end == "killed":
        path = killed(path, tmp_path / "after the kill")
    else:
        await sandbox.stop()
    again = await start_sandbox(store=f"sqlite:{path}")
    assert await counts(again) == [(1, 1)]
    await again.advance(seconds=1)

    assert await status(again) == "003"
    (callback,) = await kept_callbacks(again)
    assert json.loads(callback.body)["trans_status"] == "003/CANCELLED"
    codes = [(await again.collect(transaction_id=f"R{n}")).rule for n in range(2)]
    assert codes == ["override", "sandbox.3"]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_one_that_is_for_once_is_used_once_by_all_who_come_together(
    start_sandbox: StartSandbox, tmp_path: Path, store: str
) -> None:
    address = "memory:" if store == "memory" else f"sqlite:{tmp_path / 'state.sqlite3'}"
    sandbox = await start_sandbox(store=address)
    await override(sandbox, outcome={"status": "003"}, times=1)

    answers = await asyncio.gather(
        *(sandbox.collect(transaction_id=f"T{number}") for number in range(12))
    )

    assert sorted(answer.rule for answer in answers) == ["override"] + ["sandbox.3"] * 11
    assert await counts(sandbox) == [(1, 1)]


class TestBadInput:
    @pytest.mark.parametrize(
        ("body", "named"),
        [
            ({}, "outcome, delay_ms or callback"),
            ({"outcome": {}}, "must ask for something"),
            ({"delay_ms": 0, "callback": {"drop": False}}, "must ask for something"),
            ({"outcome": {"status": "004"}}, "outcome.status must be one of 000, 001, 002, 003"),
            ({"outcome": {"status": 3}}, "outcome.status"),
            (
                {"outcome": {"response_code": "999"}},
                "outcome.response_code must be one of 000, 202",
            ),
            ({"outcome": {"code": "ok"}}, "outcome.code must be one of 000, 202"),
            ({"outcome": {"code": "402", "response_code": "402"}}, "outcome.code"),
            ({"outcome": {"codes": "402"}}, "'outcome.codes' is unknown"),
            ({"outcome": "003"}, "outcome must be an object"),
            ({"outcome": None}, "outcome"),
            ({"outcome": {"status": "001", "code": "402"}}, "outcome.status"),
            ({"delay_ms": -1}, "delay_ms must be an integer of milliseconds from 0 to 86400000"),
            ({"delay_ms": 86_400_001}, "delay_ms"),
            ({"delay_ms": 1.5}, "delay_ms"),
            ({"delay_ms": "5"}, "delay_ms"),
            ({"callback": True}, "callback must be an object"),
            ({"callback": {"drop": 1}}, "callback.drop must be true or false"),
            ({"callback": {"duplicate": 1}}, "callback.duplicate must be an integer from 2 to 10"),
            ({"callback": {"duplicate": 11}}, "callback.duplicate"),
            ({"callback": {"duplicate": True}}, "callback.duplicate"),
            ({"callback": {"delay_ms": 10**30}}, "callback.delay_ms"),
            ({"callback": {"profile": "xml"}}, "callback.profile must be one of trans, trans_bare"),
            ({"callback": {"slow": True}}, "'callback.slow' is unknown"),
            ({"callback": {"drop": True, "reorder": True}}, "callback.drop and callback.reorder"),
            ({"outcome": {"status": "003"}, "times": 0}, "times"),
            ({"outcome": {"status": "003"}, "match": {"operation": "pay"}}, "match.operation"),
            ({"outcome": {"status": "003"}, "match": {"service": 55}}, "'match.service'"),
            (
                {"outcome": {"status": "003"}, "match": {"operation": "sms"}},
                "match.operation is sms",
            ),
            (
                {"outcome": {"code": "370"}, "match": {"operation": "collect"}},
                "outcome.response_code 370",
            ),
            ({"outcome": {"status": "003"}, "match": {"amount": -1}}, "match.amount must be a nu"),
            ({"outcome": {"status": "003"}, "match": {"amount": float("nan")}}, "match.amount"),
            ({"outcome": {"status": "003"}, "match": {"amount": {"min": 0}}}, "match.amount"),
            (
                {"delay_ms": 5, "match": {"amount": {"min": 2, "max": 1}}},
                "match.amount.min is above",
            ),
            ({"outcome": {"status": "003"}, "often": 2}, "'often' is unknown"),
        ],
    )
    async def test_the_field_is_named_and_what_to_send(
        self, sandbox: Sandbox, body: dict[str, Any], named: str
    ) -> None:
        answer = await ask(sandbox, "POST", "/_sandbox/overrides", json.dumps(body).encode())

        assert_error(answer, 400, named)
        assert await listed(sandbox) == []

    async def test_an_unknown_code_is_told_all_that_there_are(self, sandbox: Sandbox) -> None:
        body = b'{"outcome": {"response_code": "999"}}'
        answer = await ask(sandbox, "POST", "/_sandbox/overrides", body)

        assert_error(answer, 400, *CODES)

    @pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b'"003"', b"\xff"])
    async def test_what_is_no_object(self, sandbox: Sandbox, body: bytes) -> None:
        assert_error(await ask(sandbox, "POST", "/_sandbox/overrides", body), 400, "the body")


class TestTheList:
    async def test_an_override_is_shown_as_it_was_given(self, sandbox: Sandbox) -> None:
        given = {
            "match": {"service_id": 55, "operation": "collect", "amount": {"min": 1.0, "max": 2.5}},
            "outcome": {"status": "003"},
            "delay_ms": 500,
            "callback": {"duplicate": 2, "bad_signature": True, "profile": "flat"},
            "times": 3,
        }
        made = await override(sandbox, **given)

        assert {name: made[name] for name in given} == given
        assert (made["seen"], made["used"]) == (0, 0)
        assert made["created_at"] == "2026-01-01T09:00:00.000Z"
        assert await listed(sandbox) == [made]

    async def test_they_are_taken_out_one_by_one_or_together(self, sandbox: Sandbox) -> None:
        ids = [(await override(sandbox, outcome={"status": "003"}))["id"] for _ in range(3)]
        assert [each["id"] for each in await listed(sandbox)] == ids[::-1]

        one = await ask(sandbox, "DELETE", f"/_sandbox/overrides/{ids[0]}")
        gone = await ask(sandbox, "DELETE", f"/_sandbox/overrides/{ids[0]}")
        rest = await ask(sandbox, "DELETE", "/_sandbox/overrides")

        assert_error(gone, 404, ids[0])
        assert (one.body, rest.body) == ({"deleted": 1}, {"deleted": 2})
        assert (await sandbox.collect()).rule == "sandbox.3"

    async def test_a_card_number_in_a_match_is_shown_masked(self, sandbox: Sandbox) -> None:
        number = "4111111111111111"
        await override(sandbox, match={"customer_number": number}, outcome={"status": "003"})

        (shown,) = await listed(sandbox)
        assert shown["match"] == {"customer_number": "411111******1111"}
        assert (await sandbox.card()).rule == "override"
