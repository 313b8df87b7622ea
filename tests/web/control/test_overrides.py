"""Overrides decide the outcome or the response code of a request in place of the sandbox rules."""

import asyncio
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Sandbox, StartSandbox
from tests.web.control_api import ask, only, post
from tests.web.hosted_page import LANDING_PAGE, choose, look, redirect, status
from tests.web.overriding import OTHERS, PAYMENTS, REFUSED, counts, listed, override, pay, query


class TestStatuses:
    @pytest.mark.spec("states.transactions")
    @pytest.mark.decision("D31")
    @pytest.mark.parametrize("operation", PAYMENTS)
    async def test_a_payment_and_its_callback_have_the_status_of_the_override(
        self, sandbox: Sandbox, operation: str
    ) -> None:
        """The override applies even to a payment that the sandbox rules refuse."""
        for code, word in (("000", "SUCCESS"), ("001", "FAILED"), ("003", "CANCELLED")):
            await override(sandbox, outcome={"status": code})

            answer = await pay(sandbox, operation, **REFUSED[operation])
            assert answer.code == ("000" if operation == "card" else "202")
            assert answer.rule == "override"
            assert (answer.body.get("status") == "success") is (operation == "payout")
            assert (await sandbox.status()).data["status"] == "002"
            await sandbox.advance(seconds=3)

            assert (await sandbox.status()).data["status"] == code
            assert (await sandbox.inbox())[-1]["json"]["trans_status"] == f"{code}/{word}"
        assert len(await sandbox.inbox()) == 3

    @pytest.mark.decision("D31")
    async def test_a_payment_can_stay_pending(self, sandbox: Sandbox) -> None:
        await override(sandbox, outcome={"status": "002"})

        for operation in PAYMENTS:
            await pay(sandbox, operation, transaction_id=operation)
        await sandbox.advance(minutes=14)

        for number, operation in enumerate(PAYMENTS):
            assert (await sandbox.status(operation)).data["status"] == "002"
            assert len(await sandbox.inbox()) == number
            answer = await post(sandbox, f"transactions/55/{operation}/settle", status="003")
            await sandbox.advance(seconds=0)
            assert answer.body["status"] == "003"
            assert (await sandbox.inbox())[-1]["json"]["trans_status"] == "003/CANCELLED"

    async def test_live_balances_follow_the_override(self, start_sandbox: StartSandbox) -> None:
        sandbox = await start_sandbox(balances="live")
        await override(sandbox, outcome={"status": "001"}, times=1)

        for transaction_id in "T1", "T2":
            await sandbox.payout(transaction_id=transaction_id)
        await sandbox.advance(seconds=1)

        assert (await sandbox.balance()).data["payout_balance"] == 9989.5

    async def test_transaction_and_journal_show_the_override(self, sandbox: Sandbox) -> None:
        asked = {"outcome": {"status": "003"}, "delay_ms": 20, "callback": {"duplicate": 2}}
        made = await override(sandbox, **asked)

        await sandbox.collect()

        shown = await ask(sandbox, "GET", "/_sandbox/transactions/55/T1")
        assert shown.body["override"] == {"id": made["id"], **asked}
        entry = await only(sandbox, "requests", "service_id=55")
        assert entry["rule"] == "override"
        says = "status 003, delay_ms 20, callback duplicate 2"
        assert entry["why"] == f"override {made['id']} asks for {says}"


@pytest.mark.decision("D20")
@pytest.mark.parametrize(
    ("overridden", "choice", "code"),
    [
        *((code, "pay", code) for code in ("000", "001", "003", "002")),
        *(("000", "fail", "001"), ("000", "cancel", "003")),
    ],
)
async def test_pay_on_the_card_page_follows_the_override_and_other_choices_do_not(
    sandbox: Sandbox, overridden: str, choice: str, code: str
) -> None:
    """A payment that stays pending leads back to the shop."""
    await override(sandbox, outcome={"status": overridden})
    page = await redirect(sandbox)
    await look(sandbox, page)

    answer = await choose(sandbox, page, choice)
    await sandbox.advance(seconds=5)

    assert await status(sandbox) == code
    assert answer.headers.get("Location") == (LANDING_PAGE if code in {"000", "002"} else None)
    assert len(await sandbox.inbox()) == (0 if code == "002" or choice == "fail" else 1)


class TestSelection:
    async def test_an_override_for_payments_ignores_other_requests(self, sandbox: Sandbox) -> None:
        await override(sandbox, outcome={"status": "003"}, times=1)
        await override(sandbox, outcome={"response_code": "202"}, times=1)
        await override(sandbox, outcome={"response_code": "402"}, times=1)

        for operation in OTHERS:
            await query(sandbox, operation)

        assert await counts(sandbox) == [(0, 0)] * 3

    async def test_an_override_without_outcome_waits_for_acceptance(self, sandbox: Sandbox) -> None:
        """The next override decides a refused payment."""
        await override(sandbox, callback={"profile": "flat"}, times=1)

        assert (await sandbox.collect(customer_number="0244000009")).rule == "sandbox.3"
        assert await counts(sandbox) == [(1, 0)]
        assert (await sandbox.collect(transaction_id="T2")).rule == "override"
        assert await counts(sandbox) == [(2, 1)]

        await override(sandbox, outcome={"status": "003"})
        await override(sandbox, callback={"duplicate": 2}, times=1)
        await sandbox.collect(transaction_id="T3", customer_number="0244000009")
        await sandbox.advance(seconds=1)
        assert (await sandbox.inbox())[-1]["json"]["trans_status"] == "003/CANCELLED"
        assert (await counts(sandbox))[:2] == [(1, 0), (1, 1)]

    async def test_an_override_for_a_service_ignores_other_services(self, sandbox: Sandbox) -> None:
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

    @pytest.mark.decision("D9")
    async def test_an_override_does_not_affect_unauthorised_or_malformed_requests(
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

    async def test_a_payment_that_cannot_be_saved_does_not_use_an_override(
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


@pytest.mark.decision("D16")
async def test_delay_ms_postpones_the_settlement(sandbox: Sandbox) -> None:
    await override(sandbox, delay_ms=60_000)
    await sandbox.collect()
    await sandbox.card(transaction_id="T2")

    for seconds, statuses in ((60, ["002", "002"]), (1, ["000", "002"]), (2, ["000", "000"])):
        await sandbox.advance(seconds=seconds)
        seen = [(await sandbox.status(name)).data["status"] for name in ("T1", "T2")]
        assert seen == statuses


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_an_override_with_times_1_applies_to_one_of_many_concurrent_payments(
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


class TestResponseCodes:
    @pytest.mark.spec("codes")
    @pytest.mark.decision("D7")
    async def test_a_rejected_payment_is_not_stored(self, sandbox: Sandbox) -> None:
        statuses = {"402": 402, "403": 403, "404": 404, "429": 429, "500": 500}
        for operation in PAYMENTS:
            for code in ("016", "019", "402", "219", "403", "404", "429", "500"):
                await override(sandbox, outcome={"response_code": code}, times=1)

                answer = await pay(sandbox, operation)
                await sandbox.advance(seconds=5)

                assert (answer.code, answer.status) == (code, statuses.get(code, 200))
                assert answer.rule == "override"
                assert set(answer.body) == {"response_code", "response_message"}
                assert (await sandbox.status()).code == "027"
            assert await sandbox.inbox() == []

    @pytest.mark.decision("D16")
    async def test_an_accepting_code_becomes_that_of_the_operation_and_a_decline_is_stored(
        self, sandbox: Sandbox
    ) -> None:
        """`code` is short for `response_code`."""
        for operation, code in product(PAYMENTS, ("000", "202", "015")):
            name, before = f"{operation} {code}", len(await sandbox.inbox())
            made = await override(sandbox, outcome={"code": code})
            assert made["outcome"] == {"response_code": code}

            answer = await pay(sandbox, operation, transaction_id=name, **REFUSED[operation])
            await sandbox.advance(seconds=5)

            accepted = "000" if operation == "card" else "202"
            assert answer.code == ("015" if code == "015" else accepted)
            ends = "001" if code == "015" else "000"
            assert (await sandbox.status(name)).data["status"] == ends
            assert len(await sandbox.inbox()) == before + (code != "015")

    @pytest.mark.spec("codes")
    async def test_any_other_operation_can_be_rejected(self, sandbox: Sandbox) -> None:
        for operation in OTHERS:
            of_sms = "sms" in operation
            statuses = {"100": 401, "404": 200 if of_sms else 404, "429": 429, "500": 500}
            match = {"service_id": 55, "operation": operation}
            for code in ("027", "100", "237", "404", "429", "500", "S002"):
                await override(sandbox, match=match, outcome={"response_code": code}, times=1)

                answer = await query(sandbox, operation)

                assert (answer.code, answer.rule) == (code, "override")
                assert set(answer.body) == {"response_code", "response_message"}
                assert answer.status == statuses.get(code, 200)
                assert (await query(sandbox, operation)).rule != "override"

    async def test_a_rejected_sms_is_neither_sent_nor_charged(self, sandbox: Sandbox) -> None:
        """An override matches a bulk SMS by any of its recipients."""
        rejected = {"response_code": "371"}
        for operation in ("sms", "bulk-sms"):
            await override(sandbox, match={"operation": operation}, outcome=rejected, times=1)
            assert (await query(sandbox, operation)).code == "371"
        await override(sandbox, match={"customer_number": "0200000002"}, outcome=rejected)
        assert (await sandbox.bulk("0244000001", "233200000002")).code == "371"

        assert await sandbox.sms_balance() == 500
        assert (await sandbox.history()).data == []
        assert (await sandbox.bulk("0244000001")).code == "370"
        # An accepting code does not change an SMS that is accepted anyway.
        await override(sandbox, match={"operation": "sms"}, outcome={"response_code": "237"})
        accepted = {"response_code": "370"}
        await override(sandbox, match={"operation": "sms"}, outcome=accepted, times=1)
        assert [(await sandbox.sms()).code for _ in range(2)] == ["370", "237"]
