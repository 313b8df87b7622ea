"""README.md is true: its commands give the output below them, its tables are what happens."""

import asyncio
import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sandbox_sim.cli import main
from sandbox_sim.config import defaults
from sandbox_sim.domain.callbacks.receiver_checks import FIRST_CHECK, FURTHER_CHECKS
from sandbox_sim.domain.payments.billers import BILL_PRODUCTS
from sandbox_sim.web.control.overrides import BehaviourBody
from tests.conftest import Sandbox, StartSandbox, basic
from tests.web.events import listening

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
ADDRESS = "http://127.0.0.1:8233"
# What differs from run to run: addresses, versions, times, ids, signatures, tokens.
VARYING = re.compile(
    r"127\.0\.0\.1:[0-9]+|(?<=sandbox_sim/)[0-9.]+|2[0-9]{3}-[0-9-]{5}T[0-9:.]+Z"
    r"|\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b|\b[0-9]{11}\b"
    r"|(?<=/pay/)[\w-]{22}|(?<=\"accept-encoding\": \")[^\"]+"
)

Json = dict[str, Any]
Row = tuple[str, ...]


def section(title: str) -> str:
    """What stands below a heading, up to the next one."""
    match = re.search(
        rf"^##+ {re.escape(title)}\n(.*?)(?=^##+ |\Z)", README, re.MULTILINE | re.DOTALL
    )
    assert match, f"README.md has no section {title}"
    return match[1]


def table(title: str) -> list[Row]:
    """The rows of a section's only table, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines[2:]]


def fields(cell: str) -> Json:
    """Members of a JSON object in a code span."""
    members: Json = json.loads("{" + cell.strip("`") + "}")
    return members


def code(cell: str) -> str:
    return cell.strip("`")


def curls(title: str) -> list[tuple[list[str], str]]:
    """Each curl command of a section as its words, with the output that stands below it."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section(title), re.MULTILINE | re.DOTALL)
    return [
        (shlex.split(text.replace("\\\n", " ")), output)
        for (kind, text), (_, output) in pairwise(blocks)
        if kind == "sh" and text.startswith("curl ")
    ]


async def run(sandbox: Sandbox, words: list[str]) -> str:
    """What curl prints: with -i the status line and the headers stand before the body."""
    words = words[: words.index("|")] if "|" in words else words
    (address,) = (word for word in words if word.startswith(ADDRESS))
    options = dict(pairwise(words))
    data = options.get("-d", "").replace(ADDRESS, sandbox.url)
    headers = {"User-Agent": "curl/8"}
    if "-H" in options:
        name, _, value = options["-H"].partition(": ")
        headers[name] = value
    if "-u" in options:
        headers["Authorization"] = basic(*options["-u"].split(":"))
    method = "POST" if data else "GET"
    url = address.replace(ADDRESS, sandbox.url)
    async with sandbox.session.request(method, url, data=data or None, headers=headers) as answer:
        body = await answer.text()
        head = [f"HTTP/1.1 {answer.status} {answer.reason}"]
        head += [f"{name}: {value}" for name, value in answer.headers.items()]
    return "\n".join([*head, "", body]) if "-i" in words else body


async def control(sandbox: Sandbox, path: str, body: Json) -> None:
    """Have the control API do something that it can do."""
    async with sandbox.session.post(f"{sandbox.url}/_sandbox/{path}", json=body) as answer:
        assert answer.ok, await answer.text()


def shape(output: str) -> list[str]:
    """An output without what differs from run to run; headers sorted, JSON a member a line."""
    *head, body = output.strip().split("\n\n")
    skipped = ("Date: ", "Server: ", "X-Sandbox-Request-Id: ")
    kept = [line for line in "\n".join(head).splitlines() if not line.startswith(skipped)]
    lines = json.dumps(json.loads(body), ensure_ascii=False, indent=1).splitlines()
    return [VARYING.sub("*", line) for line in sorted(kept) + lines]


@pytest.mark.parametrize(
    ("title", "count"),
    [
        ("Thirty seconds to a first payment", 3),
        ("SMS units used up", 2),
        ("What an answer tells you", 1),
        ("Any outcome you like", 1),
        ("The card page", 1),
    ],
)
async def test_a_command_prints_what_stands_below_it(
    sandbox: Sandbox, title: str, count: int
) -> None:
    commands = curls(title)
    assert len(commands) == count

    for words, output in commands:
        assert shape(await run(sandbox, words)) == shape(output)
        await sandbox.advance(seconds=1)


async def test_the_live_feed_tells_what_stands_below_it(sandbox: Sandbox) -> None:
    ((words, output),) = curls("As it happens")
    varying = re.compile(VARYING.pattern + r"|(?<=id: )\S+(?=-[0-9]+\n)")

    async with listening(sandbox, "?" + words[-1].partition("?")[2]) as feed:
        await sandbox.collect(transaction_id="T1001", reference="Order 1001")
        first = await feed.block()
        await sandbox.advance(seconds=1)
        heard = ["retry: 1000\n", first, await feed.block()]

    assert varying.sub("*", "\n".join(heard)) == varying.sub("*", output)


async def test_the_signature_example_knows_a_genuine_callback(sandbox: Sandbox) -> None:
    await sandbox.collect(nickname="Ɛsi")
    await sandbox.advance(seconds=1)
    (message,) = await sandbox.inbox()
    example = re.search(r"```python\n(.*?)```", section("Signature"), re.DOTALL)
    assert example
    names: Json = {}

    exec(example[1], names)  # noqa: S102 -- our own README

    body, signature = message["body"].encode(), message["headers"]["x-service-signature"]
    assert names["is_genuine"](body, signature, "sandbox_secret")
    assert not names["is_genuine"](body + b" ", signature, "sandbox_secret")


async def test_the_command_line_prints_what_stands_below_it(start_sandbox: StartSandbox) -> None:
    sandbox = await start_sandbox(settle_delay_ms=0)
    varying = re.compile(VARYING.pattern + r"|TRIGGER-[0-9a-f]{8}|2[0-9-]{9} [0-9:]{8}")
    environment = {"SANDBOX_SIM_ENDPOINT_URL": sandbox.url, "SANDBOX_SIM_TOKEN": None}
    examples = re.findall(
        r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```$",
        section("The command line"),
        re.MULTILINE | re.DOTALL,
    )
    assert len(examples) == 2

    for command, output in examples:
        words = shlex.split(command)[1:]
        result = await asyncio.to_thread(CliRunner().invoke, main, words, env=environment)

        assert (result.exit_code, result.stderr) == (0, "")
        assert varying.sub("*", result.stdout) == varying.sub("*", output)


async def test_every_fault_of_the_table_can_be_added_and_does_to_the_request_what_it_says(
    sandbox: Sandbox,
) -> None:
    (example,) = re.findall(r"^curl .*$", section("Faults"), re.MULTILINE)
    words = shlex.split(example)
    assert await run(sandbox, words)
    assert (await sandbox.collect()).headers["Retry-After"] == "2"

    for number, (fault, _, request) in enumerate(table("Faults"), 1):
        name = f"R{number}"
        await control(sandbox, "faults", {"fault": json.loads(code(fault)), "times": 1})
        attempt = asyncio.create_task(sandbox.collect(transaction_id=name))
        await control(sandbox, "requests/wait", {"match": {"transaction_id": name}})
        attempt.cancel()
        await asyncio.gather(attempt, return_exceptions=True)

        processed = (await sandbox.status(name)).code == "000"
        assert processed is (request == "is processed"), fault


@pytest.mark.parametrize("title", ["Snapshots", "Made-up people"])
async def test_the_commands_of_a_section_do_what_they_are_told(
    sandbox: Sandbox, title: str
) -> None:
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", section(title), re.MULTILINE | re.DOTALL)
    environment = {"SANDBOX_SIM_ENDPOINT_URL": sandbox.url, "SANDBOX_SIM_TOKEN": None}

    for command in commands.splitlines():
        words = shlex.split(command)[1:]
        result = await asyncio.to_thread(CliRunner().invoke, main, words, env=environment)
        assert (result.exit_code, result.stderr) == (0, "")


async def test_the_doctor_says_of_an_inbox_what_stands_below(sandbox: Sandbox) -> None:
    command, output = re.findall(
        r"^```\w+\n(.*?)^```$", section("Is my receiver right?"), re.MULTILINE | re.DOTALL
    )
    words = shlex.split(command.replace(ADDRESS, sandbox.url))[1:]
    varying = re.compile(r"127\.0\.0\.1:[0-9]+|DOCTOR-[0-9a-f]+|[0-9]+(?: to [0-9]+)? ms")

    result = await asyncio.to_thread(CliRunner().invoke, main, words)

    assert result.exit_code == 1
    assert varying.sub("*", result.output) == varying.sub("*", output)


def test_the_example_of_a_test_suite_passes(pytester: pytest.Pytester) -> None:
    example = re.search(r"```python\n(.*?)```", section("In a test suite"), re.DOTALL)
    assert example
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(example[1])

    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_the_checks_are_those_of_the_table() -> None:
    rows = [(code(name), sends) for name, sends, _ in table("Is my receiver right?")]

    assert rows == [(check.name, check.sends) for check in (FIRST_CHECK, *FURTHER_CHECKS)]


@pytest.mark.parametrize("row", table("Payments"), ids=lambda row: f"{row[0]} {row[1]}")
async def test_a_payment_ends_as_the_table_says(sandbox: Sandbox, row: Row) -> None:
    request, values, response_code, status, callback, _ = row
    send = {
        "collection": sandbox.collect,
        "deposit": sandbox.deposit,
        "airtime": sandbox.airtime,
        "payout": sandbox.payout,
        "bill": sandbox.bill,
        "card": sandbox.card,
    }[request]
    given = fields(values)

    answer = await send(**given)
    await sandbox.advance(seconds=5)

    then = await sandbox.status(service_id=given.get("service_id"))
    assert answer.code == response_code
    assert (then.data["status"] if then.code == "000" else "none") == status
    assert then.code in {"000", "027"}
    assert len(await sandbox.inbox()) == {"yes": 1, "no": 0}[callback]


async def test_every_bill_account_does_what_the_table_says(sandbox: Sandbox) -> None:
    rows = table("Bill accounts")
    assert [code(row[0]) for row in rows] == list(BILL_PRODUCTS)

    for product, _, paid, declined in rows:
        nw = code(product)
        assert (await sandbox.bill(nw=nw, account_number=code(paid))).code == "202"
        assert (await sandbox.bill(nw=nw, account_number=code(declined))).code == "015"


@pytest.mark.parametrize("row", table("SMS"), ids=lambda row: f"{row[0]} {row[1]}")
async def test_a_message_ends_as_the_table_says(sandbox: Sandbox, row: Row) -> None:
    request, values, response_code, status, units, _ = row
    given = fields(values)

    answer = await (sandbox.sms if request == "SMS" else sandbox.bulk)(**given)
    await sandbox.advance(milliseconds=800)

    history = await sandbox.history(**{k: v for k, v in given.items() if k == "service_id"})
    assert answer.code == response_code
    assert ({item["status"] for item in history.data} or {"none"}) == {status}
    assert await sandbox.sms_balance(given.get("service_id")) == int(units)


async def test_balances_are_those_of_the_table(sandbox: Sandbox) -> None:
    rows = {code(name): (rich, poor) for name, rich, poor in table("Services that end in 9")}

    rich, poor = (await sandbox.balance(55)).data, (await sandbox.balance(59)).data

    assert rows == {name: (str(rich[name]), str(poor[name])) for name in rich}


def test_every_field_of_an_override_is_in_the_table() -> None:
    named = [code(name) for name, _ in table("Any outcome you like")]

    manner = [f"callback.{name}" for name in BehaviourBody.model_fields]
    outcome = ["outcome.status", "outcome.response_code"]
    assert sorted(named) == sorted(["match", *outcome, "delay_ms", *manner, "times"])


def test_defaults_are_those_of_the_table() -> None:
    rows = [(code(name), code(default)) for name, default, _ in table("Configuration")]

    shown = {name: "unset" if value is None else value for name, value in defaults().items()}
    for name, default in rows:
        actual = shown[name]
        assert default == (actual if actual == "unset" else json.dumps(actual))


def test_what_is_linked_is_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)

    assert [link for link in links if not (Path(__file__).parent.parent / link).exists()] == []
