"""`sandbox-sim trigger`: every operation, what it shows, and how it ends."""

import asyncio
import json
import re
from functools import partial

import pytest

from sandbox_sim.cli.client import CommandFailed, RunningGateway
from tests.cli.asking import control, on, printed
from tests.conftest import Sandbox, StartSandbox
from tests.production import client
from tests.production.settings import STAGING

CREDENTIALS = ("sandbox_key", "sandbox_secret")
PAYMENTS = ("collect", "card", "deposit", "payout", "bill", "airtime")
MOBILE = ("collect", "deposit", "payout", "airtime", "bill")


@pytest.fixture
async def prompt(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway that settles at once, so that no test needs to wait."""
    return await start_sandbox(settle_delay_ms=0)


@pytest.mark.parametrize("operation", [*PAYMENTS, "sms", "bulk-sms"])
async def test_every_operation_is_well_formed(prompt: Sandbox, operation: str) -> None:
    result = await on(prompt, "--json", "trigger", operation, "--no-wait")

    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert document["accepted"]
    request = json.loads(await control(prompt, "requests"))["requests"][0]
    assert request["operation"] == operation
    assert request["id"] == document["answer"]["request_id"]
    assert (document["callback"], document["messages"], document["status"]) == (None,) * 3


@pytest.mark.parametrize("number", ["0244000001", "0540000001"])
async def test_a_rejected_repeat_shows_no_status_of_the_older_payment(
    start_sandbox: StartSandbox, number: str
) -> None:
    sandbox = await start_sandbox(duplicates="reject", settle_delay_ms=0)
    await sandbox.collect(transaction_id="T1")
    await sandbox.advance(seconds=1)

    fields = ("--set", "transaction_id=T1", "--set", f"customer_number={number}")
    result = await on(sandbox, "trigger", "collect", *fields)

    assert result.exit_code == 1
    assert "rejected: " in result.stderr
    assert "final status" not in result.stdout


async def test_the_json_output_has_request_answer_callback_and_status(prompt: Sandbox) -> None:
    result = await on(prompt, "--json", "trigger", "payout", "--service-id", 56)

    document = json.loads(result.stdout)
    body = document["request"]["body"]
    assert re.fullmatch(r"TRIGGER-[0-9a-f]{8}", body["transaction_id"])
    assert body["service_id"] == 56
    assert document["request"]["url"] == f"{prompt.url}/make_payment"
    assert document["answer"]["http_status"] == 202
    assert document["answer"]["why"].startswith("allowlisted number, last digit 0 to 8")
    assert document["answer"]["body"]["response_code"] == "202"
    assert document["callback"]["state"] == "delivered"
    assert document["status"]["status"] == "000"


@pytest.mark.parametrize(
    ("operation", "code", "status"),
    [*((operation, "015", "001") for operation in MOBILE), ("card", "019", None)],
)
async def test_fail_makes_a_payment_that_is_rejected(
    prompt: Sandbox, operation: str, code: str, status: str | None
) -> None:
    result = await on(prompt, "--json", "trigger", operation, "--fail")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"rejected: {code} ")
    document = json.loads(result.stdout)
    assert not document["accepted"]
    assert (document["status"] or {}).get("status") == status


@pytest.mark.parametrize(("operation", "statuses"), [("sms", 1), ("bulk-sms", 2)])
async def test_fail_makes_a_message_that_is_accepted_and_refunded(
    sandbox: Sandbox, operation: str, statuses: int
) -> None:
    triggered = asyncio.create_task(on(sandbox, "trigger", operation, "--fail"))
    await control(sandbox, "sms/wait", {"count": statuses, "timeout_s": 15})
    await sandbox.advance(seconds=1)

    result = await triggered

    assert (result.exit_code, result.stderr) == (0, "")
    assert len(re.findall("REFUNDED|SENT", result.stdout)) == statuses
    assert "REFUNDED" in result.stdout


async def test_set_keeps_the_types_of_fields_and_wins_over_fail(prompt: Sandbox) -> None:
    rows: list[tuple[tuple[str, ...], dict[str, object]]] = [
        (("--set", "amount=7", "--set", "reference=1001"), {"amount": 7, "reference": "1001"}),
        (("--set", "service_id=56", "--set", "extra=5"), {"service_id": 56, "extra": 5}),
        (("--set", "landing_page=x=y"), {"landing_page": "x=y"}),
        (("--set", 'recipients=["0244000003"]'), {"recipients": ["0244000003"]}),
        (("--fail", "--set", "customer_number=0270000001"), {"customer_number": "0270000001"}),
    ]
    for words, fields in rows:
        result = await on(prompt, "--json", "trigger", "collect", *words, "--no-wait")

        body = json.loads(result.stdout)["request"]["body"]
        assert {name: body[name] for name in fields} == fields

    wrong = await on(prompt, "trigger", "collect", "--set", 'service_id="55"')
    assert wrong.exit_code == 1
    assert "rejected: 400 Bad request: service_id must be an integer" in wrong.stderr


async def test_credentials_come_by_option_or_environment(start_sandbox: StartSandbox) -> None:
    credentials = [{"client_key": "shop", "secret_key": "s3same"}]
    shop = await start_sandbox(settle_delay_ms=0, credentials=credentials)
    keys = {"SANDBOX_SIM_CLIENT_KEY": "shop", "SANDBOX_SIM_SECRET_KEY": "s3same"}

    given = await on(shop, "trigger", "collect", "--client-key", "shop", "--secret-key", "s3same")
    assert given.exit_code == 0
    assert "s3same" not in given.output
    assert (await on(shop, "trigger", "collect", **keys)).exit_code == 0

    wrong = await on(shop, "trigger", "collect")
    assert wrong.exit_code == 1
    assert "HTTP 401" in wrong.stdout
    assert wrong.stderr.startswith("rejected: 100 ")


class TestMissingOutcome:
    async def test_a_missing_callback_is_explained_by_the_frozen_clock(
        self, sandbox: Sandbox
    ) -> None:
        """The clock of this gateway is frozen, so the payment stays pending."""
        result = await on(sandbox, "trigger", "collect", "--timeout", 0)

        assert result.exit_code == 0
        assert "final status 002: Transaction Pending" in result.stdout
        assert result.stderr == (
            "no callback within 0 s: the clock is frozen; move it, for example with "
            "`sandbox-sim clock advance 5`\n"
        )

    async def test_an_unsent_message_is_explained_by_the_frozen_clock(
        self, sandbox: Sandbox
    ) -> None:
        result = await on(sandbox, "trigger", "sms", "--timeout", 0)

        assert (result.exit_code, "ACKNOWLEDGED" in result.stdout) == (0, True)
        assert result.stderr.startswith("no message sent within 0 s: the clock is frozen; move")

    async def test_a_running_clock_is_not_named_as_the_reason(
        self, start_sandbox: StartSandbox
    ) -> None:
        sandbox = await start_sandbox(settle_delay_ms=60_000)
        await printed(sandbox, "clock", "resume")

        result = await on(sandbox, "trigger", "collect", "--timeout", 0)

        assert result.stderr == "no callback within 0 s\n"

    async def test_a_receiver_that_is_down_is_named(self, prompt: Sandbox) -> None:
        result = await on(prompt, "trigger", "collect", "--callback-url", "http://127.0.0.1:9/")

        assert (result.exit_code, result.stderr) == (0, "")
        assert "callback to http://127.0.0.1:9/: not acknowledged: " in result.stdout

    async def test_a_repeat_shows_its_own_callback(self, prompt: Sandbox) -> None:
        words = ("trigger", "collect", "--set", "transaction_id=T1")
        await printed(prompt, *words)

        lines = await printed(prompt, *words, "--set", "amount=7")

        assert lines[-2].split() == ["amount", "7"]

    async def test_the_outcome_is_not_read_without_the_token(
        self, start_sandbox: StartSandbox
    ) -> None:
        sandbox = await start_sandbox(settle_delay_ms=0, control_token="s3same")

        result = await on(sandbox, "trigger", "collect")

        assert result.exit_code == 0
        assert "HTTP 202" in result.stdout
        assert result.stderr.startswith("the outcome cannot be read: ")
        assert "SANDBOX_SIM_TOKEN" in result.stderr


class TestFault:
    """The command reports what a fault did to the answer, because the gateway itself works."""

    @staticmethod
    async def add(sandbox: Sandbox, fault: str, **more: object) -> str:
        document = await control(sandbox, "faults", {"fault": {fault: True}, "times": 1, **more})
        return str(json.loads(document)["id"])

    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            ("connection_reset", "the answer was lost: the connection was reset"),
            (
                "empty_response",
                "the answer was lost: the connection was closed before its first byte",
            ),
            ("malformed_json", "the answer was cut off within its JSON"),
        ],
    )
    @pytest.mark.parametrize("operation", ["collect", "bulk-sms"])
    async def test_a_fault_that_loses_the_answer_is_named(
        self, sandbox: Sandbox, operation: str, fault: str, words: str
    ) -> None:
        rule = await self.add(sandbox, fault)

        result = await on(sandbox, "trigger", operation)

        assert result.exit_code == 1
        assert result.stderr.startswith(f"{words}: fault {rule} affected the answer of rule ")
        assert result.stderr.endswith("; see `sandbox-sim faults list`\n")

    async def test_a_fault_that_stops_the_request_is_named(self, sandbox: Sandbox) -> None:
        rule = await self.add(sandbox, "empty_response", processed=False)

        result = await on(sandbox, "trigger", "card")

        assert f": fault {rule} stopped the processing of the request; see" in result.stderr

    async def test_a_fault_that_never_answers_is_named(self, sandbox: Sandbox) -> None:
        rule = await self.add(sandbox, "timeout")
        call = partial(RunningGateway(sandbox.url).call, timeout_s=0.5)

        with pytest.raises(
            CommandFailed, match=f"stayed open: fault {rule} affected the answer of rule"
        ):
            await asyncio.to_thread(call, "/sms/balance", {"service_id": 55}, CREDENTIALS)

    async def test_a_fault_that_loses_the_final_status_is_named(self, prompt: Sandbox) -> None:
        rule = await self.add(prompt, "malformed_json", match={"operation": "status"})

        result = await on(prompt, "trigger", "collect")

        assert (result.exit_code, "acknowledged with HTTP 200" in result.stdout) == (0, True)
        assert result.stderr.startswith("the outcome cannot be read: the answer was cut off")
        assert f"fault {rule} " in result.stderr

    async def test_a_fault_is_not_named_without_the_token(
        self, start_sandbox: StartSandbox
    ) -> None:
        sandbox = await start_sandbox(control_token="s3same")
        await printed(sandbox, "--token", "s3same", "faults", "add", "--connection-reset")

        result = await on(sandbox, "trigger", "collect")

        assert result.exit_code == 1
        assert result.stderr.startswith("no complete answer, and the journal cannot be read: ")
        assert "SANDBOX_SIM_TOKEN" in result.stderr


async def test_a_card_payment_of_mode_p_is_accepted_and_refuses_fail(
    start_sandbox: StartSandbox,
) -> None:
    sandbox = await client.live(start_sandbox, STAGING)
    keys = ("--client-key", "live_key", "--secret-key", "live_secret", "--no-wait")
    words = ("--json", "trigger", "card", "--mode", "P", *keys)
    accepted, failed = await on(sandbox, *words), await on(sandbox, *words, "--fail")

    assert (accepted.exit_code, accepted.stderr) == (0, "")
    document = json.loads(accepted.stdout)
    assert document["answer"]["body"]["response_code"] == "000"
    assert document["request"]["body"]["nw"] == "CRD"
    assert "customer_number" not in document["request"]["body"]
    assert failed.exit_code == 2
    assert "--fail is for --mode S" in failed.stderr
