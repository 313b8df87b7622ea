"""`sandbox-sim ledger show | audit | topup` and `inbox show | wait | clear`."""

from decimal import Decimal

import pytest

from sandbox_sim.stores.memory.memory_store import MemoryStore
from tests.cli.asking import as_json, columns, on, printed
from tests.conftest import Sandbox
from tests.sample_records import account_of


class TestLedger:
    async def test_topup_prints_the_new_balance(self, sandbox: Sandbox) -> None:
        lines = await printed(sandbox, "ledger", "topup", 59, 100)

        assert lines == ["service 59 has 100 SMS units"]
        assert await as_json(sandbox, "ledger", "topup", 59, 1) == {
            "service_id": 59,
            "sms_balance": 101,
        }

    async def test_show_prints_postings_and_below_them_balances(self, sandbox: Sandbox) -> None:
        assert await printed(sandbox, "ledger", "show") == ["no postings"]
        await sandbox.sms()

        head, *postings, _, names, balance = await printed(sandbox, "ledger", "show")

        assert columns(head)[2:6] == ["service_id", "account", "amount", "reason"]
        assert [columns(line)[4] for line in postings] == ["-1", "500"]
        assert columns(names)[:3] == ["service_id", "account", "balance"]
        assert columns(balance)[:3] == ["55", "sms", "499"]

    @pytest.mark.decision("D39")
    async def test_audit_confirms_every_rule_or_names_the_broken_one(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.sms()
        (line,) = await printed(sandbox, "ledger", "audit")
        assert isinstance(sandbox.gateway.store, MemoryStore)
        kept = sandbox.gateway.store._unit._services[55].balances
        kept[account_of()] = kept[account_of()]._replace(available=Decimal(504))
        broken = await on(sandbox, "ledger", "audit")

        assert line.startswith("2 postings checked: every balance is the sum of its transfers")
        assert broken.exit_code == 1
        assert broken.stdout == (
            "the ledger breaks a rule: a balance is the sum of its transfers: "
            "service/55/sms/SMS of mode S has 504 and its transfers sum to 499\n"
        )

    async def test_show_takes_pages_and_filters(self, sandbox: Sandbox) -> None:
        await sandbox.sms()
        await sandbox.sms(service_id=56)

        of_one = await printed(sandbox, "ledger", "show", "--service-id", 56, "--limit", 1)
        after = await printed(sandbox, "ledger", "show", *of_one[2].removeprefix("more: ").split())
        reason = await as_json(sandbox, "ledger", "show", "--where", "reason=charge")

        assert columns(of_one[1])[2] == "56"
        assert len(after) == 4
        assert [each["service_id"] for each in reason["postings"]] == [56, 55]


class TestInbox:
    async def test_show_takes_pages_and_filters(self, sandbox: Sandbox) -> None:
        for method in ("GET", "POST", "POST"):
            await sandbox.session.request(method, sandbox.inbox_url("orders"))

        first = await printed(sandbox, "inbox", "show", "orders", "--limit", 2)
        after = first[-1].removeprefix("more: ").split()
        second = await printed(sandbox, "inbox", "show", "orders", *after)
        posts = await as_json(sandbox, "inbox", "show", "orders", "--where", "method=POST")

        assert [columns(line)[1] for line in first[1:-1]] == ["POST", "POST"]
        assert [columns(line)[1] for line in second[1:]] == ["GET"]
        assert len(posts["messages"]) == 2

    async def test_clear_deletes_the_deliveries(self, sandbox: Sandbox) -> None:
        await sandbox.collect(callback_url=sandbox.inbox_url("a%20b"))
        await sandbox.advance(seconds=1)

        assert await printed(sandbox, "inbox", "clear", "a b") == ["1 deleted"]
        assert await printed(sandbox, "inbox", "show", "a b") == ["no deliveries"]
