"""Overrides that force a response code, of payments and of every other operation."""

import pytest

from tests.conftest import Sandbox
from tests.web.overriding import OTHERS, PAYMENTS, REFUSED, override, pay, query


class TestResponseCodes:
    @pytest.mark.spec("codes")
    @pytest.mark.decision("D7")
    async def test_a_payment_is_rejected_and_leaves_nothing(self, sandbox: Sandbox) -> None:
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
    async def test_a_simulated_decline_keeps_its_record(self, sandbox: Sandbox) -> None:
        for operation in PAYMENTS:
            await override(sandbox, outcome={"response_code": "015"})

            assert (await pay(sandbox, operation, transaction_id=operation)).code == "015"
            await sandbox.advance(seconds=5)

            assert (await sandbox.status(operation)).data["status"] == "001"
            assert await sandbox.inbox() == []

    async def test_acceptance_is_that_of_the_operation(self, sandbox: Sandbox) -> None:
        for operation in PAYMENTS:
            for code in ("000", "202"):
                name = f"{operation} {code}"
                await override(sandbox, outcome={"response_code": code})

                answer = await pay(sandbox, operation, transaction_id=name, **REFUSED[operation])
                await sandbox.advance(seconds=5)

                assert answer.code == ("000" if operation == "card" else "202")
                assert (await sandbox.status(name)).data["status"] == "000"

    async def test_code_is_short_for_it(self, sandbox: Sandbox) -> None:
        made = await override(sandbox, outcome={"code": "402"})

        assert made["outcome"] == {"response_code": "402"}
        assert (await sandbox.collect()).code == "402"

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
