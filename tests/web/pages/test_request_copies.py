"""The texts of "Copy as curl" and "Copy as pytest" run for each operation, with the same code."""

import asyncio
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from html import unescape
from itertools import pairwise
from typing import Any

import pytest
import requests

from sandbox_sim.operations import Operation
from tests.conftest import Sandbox
from tests.web.control_api import listed, post
from tests.web.pages.dashboard_pages import page

# The last two are declined, and one is of a service with low balances.
CASES: list[tuple[Operation, dict[str, Any]]] = [
    *((operation, {}) for operation in Operation),
    (Operation.CARD, {"nw": "MAS", "customer_number": "5555555555554444"}),
    (Operation.CARD, {"customer_number": "4000000000000002"}),
    (Operation.COLLECT, {"customer_number": "0244000009", "reference": 'Ama\'s "shop" $HOME'}),
    (Operation.PAYOUT, {"service_id": 59, "amount": 5.01}),
]


def named(case: Any) -> str:
    return case.value if isinstance(case, Operation) else " ".join(case)


async def copied(sandbox: Sandbox, operation: Operation, fields: dict[str, Any]) -> dict[str, str]:
    """Send a request; returns what its timeline offers to copy, and the code of the answer."""
    body = operation.sample(
        55,
        f"{sandbox.url}/_sandbox/inbox",
        transaction_id="T1",
        callback_url=sandbox.inbox_url("orders"),
        request_time="2026-01-01 09:00",
    )
    answer = await sandbox.post(operation.row.path, body | fields)
    await sandbox.advance(seconds=5)
    newest, *_ = await listed(sandbox, "requests")
    shown = await page(sandbox, f"?view=requests&open=r:{newest['id']}")
    copies = re.findall(r'data-copy="([^"]*)"', shown)
    curl = next(unescape(each) for each in copies if each.startswith("curl "))
    test = next((unescape(each) for each in copies if each.startswith("import ")), "")
    return {"curl": curl, "pytest": test, "code": answer.code}


async def curl(sandbox: Sandbox, command: str) -> str:
    """The response code that the command gets; without curl, `requests` sends its request."""
    words: Sequence[str] = shlex.split(command)
    if shutil.which("curl"):
        words = (*words, "--silent", "--include", "--max-time", "10")
        ran = await asyncio.to_thread(subprocess.run, words, capture_output=True, check=True)
        text = ran.stdout.decode()
    else:
        options = dict(pairwise(words))
        user, _, key = options["-u"].partition(":")
        sent = await asyncio.to_thread(
            requests.post,
            words[1],
            data=options["--data-raw"].encode(),
            auth=(user, key),
            headers={"Content-Type": "application/json"},
            timeout=10,
        )
        text = sent.text
    (code,) = re.findall(r'"response_code": ?"(\w+)"', text)
    return str(code)


@pytest.mark.parametrize(("operation", "fields"), CASES, ids=named)
async def test_a_copy_gets_the_same_code(
    sandbox: Sandbox,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    operation: Operation,
    fields: dict[str, Any],
) -> None:
    if operation is Operation.STATUS:
        await sandbox.collect(transaction_id="T1")
        fields = {"transaction_id": "T1"}

    copies = await copied(sandbox, operation, fields)

    assert await curl(sandbox, copies["curl"]) == copies["code"]
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading takes half of the time
    pytester.makeini("[pytest]\naddopts = -p sandbox_sim.pytest_plugin")
    pytester.makepyfile(test_copied=copies["pytest"])
    run = await asyncio.to_thread(pytester.runpytest_inprocess)
    run.assert_outcomes(passed=1)


async def test_a_copied_test_names_its_card_inbox_and_override(sandbox: Sandbox) -> None:
    card = (await copied(sandbox, Operation.CARD, {}))["pytest"]
    assert 'VIS_TEST_CARD = "4111111111111111"' in card
    assert '"customer_number": VIS_TEST_CARD,' in card
    assert '"callback_url": sandbox_gateway.inbox_url(),' in card

    match = {"operation": "collect"}
    await post(sandbox, "overrides", match=match, outcome={"response_code": "402"})
    overridden = (await copied(sandbox, Operation.COLLECT, {}))["pytest"]
    assert 'sandbox_gateway.override(response_code="402")' in overridden

    for status in (429, 500):
        await post(sandbox, "faults", match=match, fault={"status": status}, times=1)
        assert (await copied(sandbox, Operation.COLLECT, {}))["pytest"] == ""
