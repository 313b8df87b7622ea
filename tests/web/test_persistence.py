"""A gateway that stops, or is killed, and starts again on the same SQLite file."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sandbox_sim.records.callbacks import DeliveryState as State
from tests.conftest import Sandbox, Seen, StartSandbox
from tests.sqlite_files import killed
from tests.web.conftest import Receiver, kept_callback
from tests.web.control_api import ask
from tests.web.hosted_page import choose, look, redirect, status
from tests.web.overriding import override
from tests.web.pages.dashboard_pages import page, words


@pytest.fixture
def path(in_memory: Path) -> Path:
    return in_memory / "state.sqlite3"


@pytest.fixture
async def sandbox(start_sandbox: StartSandbox, path: Path) -> Sandbox:
    """The first gateway on the file."""
    return await start_sandbox(store=f"sqlite:{path}")


@pytest.mark.decision("D29")
async def test_a_callback_whose_credentials_are_removed_is_listed_and_not_sent_unsigned(
    sandbox: Sandbox, start_sandbox: StartSandbox, path: Path, receiver: Receiver
) -> None:
    await sandbox.collect(callback_url=receiver.url)
    await sandbox.stop()
    other = {"client_key": "other_key", "secret_key": "other_secret"}
    again = await start_sandbox(store=f"sqlite:{path}", credentials=[other])

    await again.advance(seconds=1)

    assert receiver.deliveries == []
    unsent = await kept_callback(again)
    assert unsent.state is State.FAILED
    problem = "not sent: the credentials 'sandbox_key' that sign it are not in the configuration"
    assert unsent.attempts[0].verdict.startswith(problem)
    shown = words(await page(again))
    assert f"1 callback to {receiver.url} was {problem}" in shown
    assert "Send again" in shown


Restart = Callable[[], Awaitable[Sandbox]]


@pytest.fixture
def restart(start_sandbox: StartSandbox, path: Path) -> Restart:
    """Starts a second gateway on the file that a kill at this moment leaves.

    A stop leaves the same records: tests/stores/sqlite compares the two for every kind of write.
    """

    async def started() -> Sandbox:
        left = killed(path, path.parent / "after the kill")
        return await start_sandbox(store=f"sqlite:{left}")

    return started


async def down_for(sandbox: Sandbox, **time: float) -> None:
    """Let this much gateway time pass between the end of the gateway and the next start."""
    later = sandbox.gateway.clock.state.moved(timedelta(**time))
    await sandbox.gateway.store.run(lambda unit: unit.save_clock(later))


@pytest.mark.decision("D18")
async def test_ids_do_not_repeat_after_a_restart(sandbox: Sandbox, restart: Restart) -> None:
    """Every start has the same seed."""
    before = await given_ids(sandbox, "before")

    again = await restart()
    since = await given_ids(again, "since")

    assert len({*before, *since}) == len(before) + len(since)


@pytest.mark.spec("sandbox.10")
@pytest.mark.decision("D22")
async def test_a_restart_keeps_an_empty_sms_balance(
    start_sandbox: StartSandbox, path: Path
) -> None:
    """A balance opens once; a later change of the setting does not change it."""
    sandbox = await start_sandbox(store=f"sqlite:{path}", sms_initial_units=1)
    assert [(await sandbox.sms()).code for _ in range(2)] == ["370", "237"]
    await sandbox.stop()

    again = await start_sandbox(store=f"sqlite:{path}", sms_initial_units=500)

    assert (await again.sms()).code == "237"
    assert await again.sms_balance() == 0


@pytest.mark.decision("D18", "D29", "D30")
async def test_a_callback_attempt_without_an_answer_is_made_again_after_a_restart(
    sandbox: Sandbox, restart: Restart, receiver: Receiver
) -> None:
    go_on = receiver.hang()
    await sandbox.collect(callback_url=receiver.url)
    network_id = (await sandbox.status()).data["network_transaction_id"]
    clock = asyncio.create_task(sandbox.advance(seconds=1))
    await receiver.arrival()
    receiver.arrived.clear()

    again = await restart()
    await receiver.arrival()
    go_on.set()
    await again.advance(seconds=0)

    first, second = receiver.deliveries
    assert first.raw == second.raw
    assert first.signature == second.signature
    assert second.body["trans_id"] == network_id
    assert [attempt.number for attempt in (await kept_callback(again)).attempts] == [1]
    await clock


@pytest.mark.spec("service.8")
@pytest.mark.decision("D15", "D16")
@pytest.mark.parametrize("pay", [Sandbox.collect, Sandbox.card, Sandbox.bill])
@pytest.mark.parametrize("days", [0, 400])
async def test_an_acknowledged_payment_sends_its_callback_after_any_downtime(
    sandbox: Sandbox,
    restart: Restart,
    receiver: Receiver,
    pay: Callable[..., Awaitable[Seen]],
    days: int,
) -> None:
    """The gateway ends between its answer and the settlement. After 400 days the status expired."""
    await pay(sandbox, callback_url=receiver.url)
    network_id = (await sandbox.status()).data["network_transaction_id"]
    await down_for(sandbox, days=days)

    again = await restart()
    before = await again.status()
    assert (before.code, "response_data" in before.body) == (
        ("027", False) if days else ("000", True)
    )
    await again.advance(seconds=0 if days else 3)
    await receiver.arrival()

    assert receiver.delivery.body["trans_id"] == network_id
    assert receiver.delivery.body["trans_status"] == "000/SUCCESS"
    after = await again.status()
    assert after.code == "027" if days else after.data["status"] == "000"


@pytest.mark.spec("sandbox.8", "limits")
@pytest.mark.decision("D15")
async def test_a_restart_keeps_the_expiry_of_a_status(sandbox: Sandbox, restart: Restart) -> None:
    await sandbox.collect()
    await sandbox.collect(transaction_id="T9", customer_number="0244000009")
    await sandbox.advance(minutes=10)
    before = [await sandbox.status(transaction_id) for transaction_id in ("T1", "T9")]

    again = await restart()
    await again.advance(minutes=4, seconds=59)
    after = [await again.status(transaction_id) for transaction_id in ("T1", "T9")]
    await again.advance(seconds=1)

    assert [answer.data["status"] for answer in before] == ["000", "001"]
    assert [answer.body for answer in after] == [answer.body for answer in before]
    assert [(await again.status(each)).code for each in ("T1", "T9")] == ["027", "027"]


@pytest.mark.spec("endpoint.2", "sandbox.6")
@pytest.mark.decision("D20")
async def test_a_card_page_opens_and_is_paid_after_a_restart(
    sandbox: Sandbox, restart: Restart, receiver: Receiver
) -> None:
    before = await redirect(sandbox, callback_url=receiver.url)

    again = await restart()
    here = again.url + urlsplit(before).path
    code, html = await look(again, here)
    assert (code, "GHS 10.5" in html) == (200, True)
    assert (await choose(again, here, "pay")).status == 303
    await receiver.arrival()

    assert await status(again) == "000"
    assert receiver.delivery.body["trans_status"] == "000/SUCCESS"


async def given_ids(sandbox: Sandbox, name: str) -> list[str]:
    """Make a record of each kind and return their ids; the payments are named after `name`."""
    rule = await override(sandbox, callback={"duplicate": 2})
    page = await redirect(sandbox, transaction_id=f"card of {name}")
    payment = await sandbox.collect(transaction_id=name)
    single = await sandbox.sms()
    bulk = await sandbox.bulk("0244000001", "0244000002")
    await sandbox.advance(seconds=3)
    assert (payment.code, single.code, bulk.code) == ("202", "370", "370")
    payments = [await sandbox.status(each) for each in (f"card of {name}", name)]
    callbacks = await ask(sandbox, "GET", "/_sandbox/callbacks?limit=4")
    messages = (await sandbox.history(limit=3)).data
    return [
        *(each.headers["X-Sandbox-Request-Id"] for each in (payment, single, bulk)),
        *(each.data["network_transaction_id"] for each in payments),
        *(each["id"] for each in callbacks.body["callbacks"]),
        *(each["processing_id"] for each in messages),
        bulk.data["batch_id"],
        page.rpartition("/")[2],
        rule["id"],
    ]
