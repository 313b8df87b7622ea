"""The tables of README.md and docs/ agree with the behaviour."""

import asyncio
import json
from typing import Any

import pytest

from sandbox_sim.callbacks.receiver_checks import FIRST_CHECK, FURTHER_CHECKS
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.settings.schema import Settings, defaults
from sandbox_sim.values.response_codes import CATALOGUE
from sandbox_sim.web.control.overrides_and_faults import BehaviourBody
from tests.conftest import Sandbox
from tests.docs.commands import curl
from tests.docs.pages import Page, Row, code, fields

README = Page("README.md")
PAYMENTS = Page("docs/payments.md")
SMS = Page("docs/sms.md")
OVERRIDES = Page("docs/overrides-and-faults.md")
CODES = README.table("Payments: which code, and what to do")
BUTTONS = Page("docs/cards.md").table("Collect from a card")
PAYMENT_ROWS = PAYMENTS.table("Values") + Page("docs/cards.md").table("Test cards")


def named(row: Row) -> str:
    return f"{row[0]} {row[1]}"


async def control(sandbox: Sandbox, path: str, body: dict[str, Any]) -> None:
    """Send a request to the control API, which must accept it."""
    async with sandbox.session.post(f"{sandbox.url}/_sandbox/{path}", json=body) as answer:
        assert answer.ok, await answer.text()


def test_the_codes_are_in_the_catalogue() -> None:
    codes = [each for row in CODES for each in row[0].split(", ")]

    assert [each for each in codes if each not in CATALOGUE] == []
    assert len(codes) == len(set(codes)) > 10


@pytest.mark.parametrize("row", [row for row in CODES if "`" in row[3]], ids=lambda row: row[0])
async def test_the_fields_of_a_row_cause_its_code(sandbox: Sandbox, row: Row) -> None:
    assert (await sandbox.collect(**fields(row[3]))).code == row[0]


@pytest.mark.parametrize("row", PAYMENT_ROWS, ids=named)
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


async def test_balances_are_those_of_the_table(sandbox: Sandbox) -> None:
    (_, *rich), (_, *poor) = Page("docs/interface.md").table("sandbox.9: Balances")
    names = ("collection_balance", "payout_balance", "sms_balance", "airtime_balance")

    found = [(await sandbox.balance(service)).data for service in (55, 59)]

    assert [[str(each[name]) for name in names] for each in found] == [rich, poor]


@pytest.mark.parametrize(
    ("choice", "row"), list(zip(("pay", "fail", "cancel"), BUTTONS, strict=True))
)
async def test_a_button_of_the_card_page_acts_as_the_table_says(
    sandbox: Sandbox, choice: str, row: Row
) -> None:
    button, status, callback, then = row
    landing_page = sandbox.inbox_url("thanks")
    page = (await sandbox.card(landing_page=landing_page)).body["redirect_url"]

    async with sandbox.session.get(page) as shown:
        assert button in await shown.text()
    async with sandbox.session.post(page, data={"choice": choice}) as answer:
        body = await answer.text()
        assert str(answer.url) == (landing_page if "the browser goes" in then else page)
    await sandbox.advance(seconds=5)

    assert "link" not in then or landing_page in body
    assert (await sandbox.status()).data["status"] == status
    statuses = [message["json"]["trans_status"] for message in await sandbox.inbox()]
    assert statuses == [code(callback)] * (callback != "none")


@pytest.mark.parametrize("row", SMS.table("Values"), ids=named)
async def test_a_message_ends_as_the_table_says(sandbox: Sandbox, row: Row) -> None:
    request, values, response_code, status, units, _ = row
    given = fields(values)

    answer = await (sandbox.sms if request == "SMS" else sandbox.bulk)(**given)
    await sandbox.advance(milliseconds=800)

    history = await sandbox.history(**{k: v for k, v in given.items() if k == "service_id"})
    assert answer.code == response_code
    assert ({item["status"] for item in history.data} or {"none"}) == {status}
    assert await sandbox.sms_balance(given.get("service_id")) == int(units)


def test_every_callback_profile_is_in_the_table() -> None:
    assert [code(row[0]) for row in Page("docs/callbacks.md").table("Bodies")] == list(Profile)


def test_the_checks_are_those_of_the_table() -> None:
    rows = Page("docs/receivers.md").table("What it sends")

    found = [(code(name), sends) for name, sends, _ in rows]
    assert found == [(check.name, check.sends) for check in (FIRST_CHECK, *FURTHER_CHECKS)]


def test_every_field_of_an_override_is_in_the_table() -> None:
    named = [code(name) for name, _ in OVERRIDES.table("Overrides")]

    manner = [f"callback.{name}" for name in BehaviourBody.model_fields]
    outcome = ["outcome.status", "outcome.response_code"]
    assert sorted(named) == sorted(["match", *outcome, "delay_ms", *manner, "times"])


async def test_a_request_with_a_fault_is_processed_as_the_table_says(
    sandbox: Sandbox,
) -> None:
    (example,) = (
        command
        for command in OVERRIDES.commands()
        if command.program == "curl" and "faults" in command.words[2]
    )
    assert await curl(sandbox, example.words)
    assert (await sandbox.collect()).headers["Retry-After"] == "2"

    for number, (fault, _, request) in enumerate(OVERRIDES.table("Faults"), 1):
        name = f"R{number}"
        await control(sandbox, "faults", {"fault": json.loads(code(fault)), "times": 1})
        attempt = asyncio.create_task(sandbox.collect(transaction_id=name))
        await control(sandbox, "requests/wait", {"match": {"transaction_id": name}})
        attempt.cancel()
        await asyncio.gather(attempt, return_exceptions=True)

        processed = (await sandbox.status(name)).code == "000"
        assert processed is (request == "is processed"), fault


def test_every_setting_is_in_a_table() -> None:
    page = Page("docs/configuration.md")
    frequent = [code(row[0]) for row in page.table("Frequent settings")]
    others = [code(name) for row in page.table("All other settings") for name in row[1].split(", ")]

    assert sorted([*frequent, *others]) == sorted(Settings.model_fields)


def test_defaults_are_those_of_the_table() -> None:
    rows = Page("docs/configuration.md").table("Frequent settings")

    shown = {name: "unset" if value is None else value for name, value in defaults().items()}
    for name, default in [(code(name), code(default)) for name, default, _ in rows]:
        actual = shown[name]
        assert default == (actual if actual == "unset" else json.dumps(actual))
