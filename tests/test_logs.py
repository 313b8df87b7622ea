"""The log: one line for each record, the reason of each refusal, and no secrets."""

import json
import logging
import re
import sys
from typing import Any

import pytest

from sandbox_sim import logs
from sandbox_sim.logs import JsonFormatter, TextFormatter
from tests.conftest import Sandbox, StartSandbox, basic

NOISE = "a\nb\r\x1b[31mred\x00\x7f\x85c\u2028\u2029\u202e\ud83d"


def record(message: str, *values: object, **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord("sandbox_sim.requests", logging.INFO, "", 0, message, values, None)
    made.__dict__.update(extra)
    return made


class TestText:
    def test_control_characters_are_escaped(self) -> None:
        """A client cannot forge a line, and other scripts stay readable."""
        line = TextFormatter().format(record("transaction %s", NOISE))

        assert line.endswith(r"transaction a\nb\r\x1b[31mred\x00\x7f\x85c\u2028\u2029\u202e\ud83d")
        assert line.isprintable()
        for sent in ("\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"):
            forged = f"T1{sent}12:00:00 INFO    make_payment: 202"
            assert len(TextFormatter().format(record("%s", forged)).splitlines()) == 1
        assert TextFormatter().format(record("Ɛyɛ, 你好, 🙂")).endswith("Ɛyɛ, 你好, 🙂")

    def test_control_characters_in_a_traceback_are_escaped(self) -> None:
        made = record("failed", exc_info=(ValueError, ValueError("\x1b[2J\x9b\u2028\ud83d"), None))

        first, *lines = TextFormatter().format(made).split("\n")

        assert lines == [r"ValueError: \x1b[2J\x9b\u2028\ud83d"]
        assert first.endswith("failed")


class TestJson:
    def test_a_record_is_one_line_of_json_with_its_facts(self) -> None:
        facts = {"code": "019", "rule": "sandbox.1", "service_id": 55, "transaction_id": None}

        line = JsonFormatter().format(record("transaction %s", NOISE, facts=facts))

        assert line.isprintable()
        document = json.loads(line)
        assert document.pop("at")
        assert document == {
            "level": "info",
            "logger": "sandbox_sim.requests",
            "message": f"transaction {NOISE}",
            **facts,
        }

    def test_a_traceback_is_a_field(self) -> None:
        try:
            int("ours")
        except ValueError:
            made = record("a job failed", exc_info=sys.exc_info())

        traceback = json.loads(JsonFormatter().format(made))["traceback"]
        assert "ValueError: invalid literal" in traceback


@pytest.mark.usefixtures("logging_as_before")
class TestConfigure:
    LEVELS = ("debug", "info", "warning", "error")

    @pytest.mark.parametrize("level", LEVELS)
    def test_records_of_the_level_and_above_go_to_stderr(
        self, capsys: pytest.CaptureFixture[str], level: str
    ) -> None:
        logs.configure(level, "text")
        for each in self.LEVELS:
            getattr(logging.getLogger("sandbox_sim.jobs"), each)("this is %s", each)

        out, err = capsys.readouterr()
        assert out == ""
        expected = self.LEVELS[self.LEVELS.index(level) :]
        assert tuple(line.split()[-1] for line in err.splitlines()) == expected

    def test_other_loggers_write_only_warnings(self, capsys: pytest.CaptureFixture[str]) -> None:
        logs.configure("debug", "json")
        logging.getLogger("sandbox_sim.jobs").info("one")
        logging.getLogger("asyncio").info("chatter")
        logging.getLogger("asyncio").warning("trouble")

        lines = capsys.readouterr().err.splitlines()
        assert [json.loads(line)["message"] for line in lines] == ["one", "trouble"]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The log records of level info and above, as by default."""
    caplog.set_level("INFO", logger="sandbox_sim.requests")
    return caplog


class TestRequests:
    async def test_each_request_is_one_line_with_the_reason(
        self, sandbox: Sandbox, log: pytest.LogCaptureFixture
    ) -> None:
        answer = await sandbox.collect(customer_number="0240000000")
        await sandbox.post("/make_payment", {}, Authorization=basic("sandbox_key", "wrong-s3same"))
        accepted = await sandbox.collect()

        line, unauthorized, last = log.records
        message = line.getMessage()
        assert (line.levelno, line.name) == (logging.INFO, "sandbox_sim.requests")
        for fact in ("make_payment", "service 55", "transaction T1", "019", "rule sandbox.1"):
            assert fact in message
        assert "'0240000000' is not allowlisted" in message
        facts = getattr(line, "facts", {})
        assert facts["request_id"] == answer.headers["X-Sandbox-Request-Id"]
        assert (facts["code"], facts["rule"], facts["service_id"]) == ("019", "sandbox.1", 55)
        assert "'0240000000' is not allowlisted" in facts["why"]

        assert "100" in unauthorized.getMessage()
        assert "the secret key does not belong to it" in unauthorized.getMessage()
        assert "s3same" not in unauthorized.getMessage()

        assert last.levelno == logging.INFO
        assert last.getMessage() == (
            "/make_payment service 55 transaction T1: 202 Request successfully received for "
            "processing, by rule sandbox.3: allowlisted number, last digit 0 to 8 "
            f"[{accepted.headers['X-Sandbox-Request-Id']}]"
        )

    async def test_many_requests_at_once_share_a_line(
        self, sandbox: Sandbox, log: pytest.LogCaptureFixture
    ) -> None:
        for number in range(80):
            await sandbox.collect(transaction_id=f"T{number}")
        await sandbox.stop()

        lines = [line.getMessage() for line in log.records]
        together = [line for line in lines if line.startswith("without a line of their own")]
        counts = [int(word) for line in together for word in re.findall("([0-9]+) requests", line)]
        assert len(lines) - len(together) + sum(counts) == 80
        assert counts

    async def test_quiet_omits_accepted_requests(
        self, start_sandbox: StartSandbox, log: pytest.LogCaptureFixture
    ) -> None:
        sandbox = await start_sandbox(quiet=True)
        await sandbox.collect()
        await sandbox.balance()
        assert log.records == []

        await sandbox.collect(customer_number="0240000000")
        assert len(log.records) == 1
        log.clear()

        log.set_level("DEBUG", logger="sandbox_sim.requests")
        await sandbox.balance()

        (line,) = log.records
        assert line.levelno == logging.DEBUG
        assert "rule sandbox.9" in line.getMessage()


async def test_secret_keys_are_never_logged(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="sandbox_sim")

    await sandbox.collect()
    await sandbox.collect(amount=0)
    await sandbox.post("/make_payment", {}, Authorization=basic(secret_key="wrong"))
    await sandbox.post("/make_payment", {}, **{"User-Agent": " "})
    await sandbox.advance(seconds=5)

    assert len(caplog.records) >= 4
    for secret in ("sandbox_secret", basic().split()[1], basic(secret_key="wrong").split()[1]):
        assert secret not in caplog.text


@pytest.mark.decision("D38")
@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_a_traceback_does_not_show_a_secret(formatter: logging.Formatter) -> None:
    error = ValueError("4111 1111 1111 1111 for http://ama:s3same@shop.test")
    failed = logging.makeLogRecord({"msg": "a fault", "exc_info": (ValueError, error, None)})

    line = formatter.format(failed)

    assert "ValueError: 4111 11** **** 1111 for http://***@shop.test" in line
