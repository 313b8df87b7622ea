"""`sandbox-sim requests | transactions | callbacks | sms` over real HTTP."""

import asyncio
import json

import pytest

from tests.cli.asking import as_json, columns, on, printed
from tests.cli.receivers import UNREACHABLE
from tests.conftest import Sandbox, StartSandbox


@pytest.fixture
async def paid(sandbox: Sandbox) -> Sandbox:
    """A gateway with two payments, one of them with a callback, a declined one, and two SMS."""
    await sandbox.collect(transaction_id="T1")
    await sandbox.sms()
    await sandbox.bulk("0244000009", service_id=56)
    await sandbox.advance(seconds=1)
    await sandbox.collect(transaction_id="T2", service_id=56, amount=7)
    await sandbox.collect(transaction_id="T3", customer_number="0244000009")
    return sandbox


class TestList:
    async def test_a_list_has_a_line_for_each_record_newest_first(self, paid: Sandbox) -> None:
        head, *lines = await printed(paid, "transactions", "list")

        assert columns(head)[:3] == ["time", "service", "transaction"]
        assert [columns(line)[1:] for line in lines] == [
            ["55", "T3", "collect", "10.5 GHS", "MTN", "0244000009", "001 failed"],
            ["56", "T2", "collect", "7.0 GHS", "MTN", "0244000001", "002 pending"],
            ["55", "T1", "collect", "10.5 GHS", "MTN", "0244000001", "000 successful"],
        ]
        assert len({line.index("collect") for line in lines}) == 1

    async def test_a_list_is_filtered_by_options(self, paid: Sandbox) -> None:
        rows: list[tuple[tuple[object, ...], list[str]]] = [
            (("--service-id", 56), ["T2"]),
            (("--status", "000"), ["T1"]),
            (("--status", "failed"), ["T3"]),
            (("--transaction-id", "T2"), ["T2"]),
            (("--operation", "card"), []),
            (("--where", "party=0244000009"), ["T3"]),
            (("--where", "nw=MTN", "--where", "service_id=55"), ["T3", "T1"]),
        ]
        for words, transactions in rows:
            found = await as_json(paid, "transactions", "list", *words)

            assert [each["transaction_id"] for each in found["transactions"]] == transactions

    async def test_the_next_page_begins_after_the_last_record_of_a_page(
        self, paid: Sandbox
    ) -> None:
        *_, last = await printed(paid, "transactions", "list", "--limit", 2)
        assert last.startswith("more: --after ")

        lines = await printed(paid, "transactions", "list", *last.removeprefix("more: ").split())

        assert [columns(line)[2] for line in lines[1:]] == ["T1"]

    async def test_an_empty_list_says_so(self, sandbox: Sandbox) -> None:
        for kind, words in (
            ("requests", "requests"),
            ("callbacks", "callbacks"),
            ("sms", "messages"),
        ):
            assert await printed(sandbox, kind, "list") == [f"no {words}"]

    async def test_a_request_is_listed_with_its_code_and_rule(self, paid: Sandbox) -> None:
        (_, line) = await printed(paid, "requests", "list", "--code", "015", "--status", 200)

        shown = ["55", "S", "/make_payment", "T3", "200", "015", "sandbox.3"]
        assert columns(line)[2:-1] == shown

    async def test_a_callback_and_a_message_are_listed_with_their_state(
        self, paid: Sandbox
    ) -> None:
        (_, called) = await printed(paid, "callbacks", "list", "--status", "delivered")
        (_, sent) = await printed(paid, "sms", "list", "--customer-number", "233244000009")

        attempts = ["1", "acknowledged with HTTP 200", paid.inbox_url("orders")]
        assert columns(called)[2:] == ["55", "T1", "delivered", *attempts]
        assert columns(sent)[2:] == ["56", "233244000009", "REFUNDED", "1", "Shop", "Sale today"]


class TestShow:
    async def test_a_callback_is_shown_with_its_attempts_and_verdicts(self, paid: Sandbox) -> None:
        (found,) = (await as_json(paid, "callbacks", "list"))["callbacks"]

        lines = await printed(paid, "callbacks", "show", found["id"])

        attempt = columns(lines[lines.index("attempts") + 2])
        assert (attempt[0], attempt[2]) == ("1", "200")
        assert "acknowledged with HTTP 200" in attempt
        assert '{"status": "received"}' in attempt
        assert ["trans_status", "000/SUCCESS"] in [columns(line) for line in lines]

    async def test_an_unknown_id_is_named(self, sandbox: Sandbox) -> None:
        rows: list[tuple[object, ...]] = [
            ("transactions", "show", 55, "no/such"),
            ("callbacks", "show", "no such"),
            ("sms", "show", "../requests"),
            ("requests", "show", "?"),
            ("callbacks", "resend", "C?"),
            ("transactions", "settle", 55, "T9", "001"),
        ]
        for words in rows:
            result = await on(sandbox, *words)

            assert (result.exit_code, result.stdout) == (1, "")
            name = words[3] if words[0] == "transactions" else words[2]
            plural = words[0]
            assert result.stderr == f"there is no {name!r} among the {plural}, or it was deleted\n"


class TestFindAndWait:
    async def test_find_matches_nested_fields_and_says_that_more_may_match(
        self, paid: Sandbox
    ) -> None:
        rows: list[tuple[tuple[object, ...], list[str]]] = [
            (("--match", "request.amount=7"), ["T2"]),
            (("--match", "answer.response_code=202"), ["T2", "T1"]),
            (("--match", "transaction_id=T1", "--service-id", 55), ["T1"]),
            (("--match-json", '{"request.amount": 10.5, "code": "015"}'), ["T3"]),
            (("--match-json", '{"request.amount": "7"}'), []),
            (("--match", "operation=collect", "--limit", 1), ["T3"]),
        ]
        for words, transactions in rows:
            found = await as_json(paid, "requests", "find", *words)

            assert [each["transaction_id"] for each in found["requests"]] == transactions
        *_, last = await printed(paid, "requests", "find", "--limit", 1)
        assert last == "more may match; raise --limit"

    async def test_wait_returns_once_enough_records_match(self, sandbox: Sandbox) -> None:
        match = ("--match", "body.trans_ref=T1", "--status", "delivered", "--timeout", 15)
        waiting = asyncio.create_task(on(sandbox, "--json", "callbacks", "wait", *match))
        await sandbox.collect()
        await sandbox.advance(seconds=1)

        result = await waiting

        assert result.exit_code == 0
        (found,) = json.loads(result.stdout)["callbacks"]
        assert found["transaction_id"] == "T1"

    async def test_a_wait_that_times_out_says_how_many_records_came(self, paid: Sandbox) -> None:
        for kind in ["requests", "callbacks", "sms"]:
            words = ("--service-id", 55, "--count", 5, "--timeout", 0)

            result = await on(paid, kind, "wait", *words)

            matched = {"requests": 3, "callbacks": 1, "sms": 1}[kind]
            assert (result.exit_code, result.stdout) == (1, "")
            assert result.stderr == f"{matched} of 5 came within 0 s\n"

    async def test_find_and_wait_print_a_line_for_each_record(self, paid: Sandbox) -> None:
        found = await printed(paid, "transactions", "find", "--match", "amount=7.0")
        matched = await printed(paid, "transactions", "wait", "--status", "failed", "--timeout", 0)
        messages = await printed(paid, "sms", "wait", "--count", 2, "--timeout", 0)

        assert [columns(line)[2] for line in (found[1], matched[1])] == ["T2", "T3"]
        assert [columns(line)[4] for line in messages[1:]] == ["REFUNDED", "SENT"]


class TestActions:
    async def test_clear_deletes_the_requests_of_one_service_or_of_all(self, paid: Sandbox) -> None:
        assert await printed(paid, "requests", "clear", "--service-id", 56) == ["2 deleted"]
        assert await printed(paid, "requests", "clear") == ["3 deleted"]

    async def test_settle_sets_the_final_status(self, sandbox: Sandbox) -> None:
        for status, becomes in (
            ("000", "000 successful"),
            ("001", "001 failed"),
            ("cancelled", "003 cancelled"),
        ):
            name = f"a/{status}"
            await sandbox.collect(transaction_id=name)

            lines = await printed(sandbox, "transactions", "settle", 55, name, status)

            assert lines == [f"{name} is {becomes}"]
            assert (await sandbox.status(name)).data["status"] == becomes[:3]

    async def test_resend_sends_a_callback_to_another_receiver(self, paid: Sandbox) -> None:
        (found,) = (await as_json(paid, "callbacks", "list"))["callbacks"]
        url = paid.inbox_url("again")

        lines = await printed(paid, "callbacks", "resend", found["id"], "--url", url)
        await paid.advance(seconds=0)

        assert lines == [f"{found['id']} goes to {url} again"]
        assert len(await paid.inbox("again")) == 1

    async def test_resend_failed_sends_every_failed_callback(
        self, start_sandbox: StartSandbox
    ) -> None:
        sandbox = await start_sandbox(settle_delay_ms=0, callback_attempts=1)
        for number in range(3):
            await sandbox.collect(transaction_id=f"T{number}", callback_url=UNREACHABLE)
        await sandbox.collect(transaction_id="T3", service_id=56, callback_url=UNREACHABLE)
        await sandbox.collect(transaction_id="good")
        await sandbox.advance(seconds=1)
        url = sandbox.inbox_url("again")

        of_one = await printed(
            sandbox, "callbacks", "resend", "--failed", "--service-id", 56, "--url", url
        )
        await sandbox.advance(seconds=0)
        of_all = await as_json(sandbox, "callbacks", "resend", "--failed", "--url", url)
        await sandbox.advance(seconds=0)

        assert len(of_one) == 1
        resent = [each["transaction_id"] for each in of_all["callbacks"]]
        assert sorted(resent) == ["T0", "T1", "T2"]
        assert len(await sandbox.inbox("again")) == 4
        nothing = await printed(sandbox, "callbacks", "resend", "--failed")
        assert nothing == ["no callbacks failed"]


@pytest.mark.parametrize(
    "words",
    [
        ("overrides", "clear", ""),
        ("faults", "clear", " "),
        ("callbacks", "resend", ""),
        ("callbacks", "retry", ""),
        ("transactions", "show", ""),
        ("transactions", "settle", "", "000"),
        ("sms", "show", ""),
        ("inbox", "clear", ""),
        ("snapshot", "delete", ""),
    ],
    ids=" ".join,
)
async def test_an_empty_id_such_as_that_of_an_unset_variable_is_named(
    sandbox: Sandbox, words: tuple[str, ...]
) -> None:
    result = await on(sandbox, *words)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "the id or name that was given is empty\n"
