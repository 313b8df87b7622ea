"""Named snapshots restore the records of one service or of all, with the time that was left.

A reset deletes records, with their pending work.
"""

import asyncio
from typing import Any

from aiohttp import web

from tests.conftest import Sandbox, Seen, StartSandbox
from tests.turns import idle
from tests.web.conftest import Receiver, kept_callback
from tests.web.control_api import ask, assert_error, get, only, post


async def save(sandbox: Sandbox, name: object = "before", **fields: object) -> Seen:
    return await post(sandbox, "snapshots", name=name, **fields)


async def restore(sandbox: Sandbox, name: str = "before") -> Seen:
    return await ask(sandbox, "POST", f"/_sandbox/snapshots/{name}/restore")


async def shown(sandbox: Sandbox, service_id: int = 55) -> dict[str, Any]:
    """All that the control API shows of a service."""
    kinds = ("requests", "transactions", "callbacks", "sms", "ledger")
    return {kind: await get(sandbox, f"{kind}?service_id={service_id}") for kind in kinds}


async def test_a_restore_brings_all_records_back(sandbox: Sandbox) -> None:
    """A successful and a pending payment, an SMS that is sent, and one that is refunded."""
    await sandbox.collect(transaction_id="T1")
    await sandbox.sms()
    await sandbox.sms(customer_number="0244000009")
    await sandbox.advance(seconds=2)
    await sandbox.collect(transaction_id="T2")
    before = await shown(sandbox)

    saved = await save(sandbox)
    await ask(sandbox, "POST", "/_sandbox/reset")
    restored = await restore(sandbox)

    assert (saved.status, restored.status) == (201, 200)
    assert saved.body == restored.body
    assert saved.body == {
        "name": "before",
        "service_id": None,
        "taken_at": "2026-01-01T09:00:02.000Z",
        "records": {
            "transactions": 2,
            "checkouts": 0,
            "callbacks": 1,
            "jobs": 1,
            "transfers": 4,
            "messages": 2,
            "requests": 4,
            "rules": 0,
            "inbox": 1,
        },
    }
    assert await shown(sandbox) == before
    assert len(await sandbox.inbox()) == 1
    assert await sandbox.sms_balance() == 499


async def test_a_callback_in_flight_does_not_overwrite_the_restored_one(
    start_sandbox: StartSandbox, receiver: Receiver
) -> None:
    """The restored callback is sent again, and has only the attempt after the restore."""
    sandbox = await start_sandbox(settle_delay_ms=0)
    refuse = asyncio.Event()

    async def answer(_request: web.Request) -> web.StreamResponse:
        if len(receiver.deliveries) == 1:
            await refuse.wait()
            return web.Response(status=500)
        return web.Response()

    receiver.answer = answer
    await sandbox.collect(callback_url=receiver.url)
    await receiver.arrival()
    await save(sandbox)

    await restore(sandbox)
    await post(sandbox, "callbacks/wait", match={"state": "delivered"})
    refuse.set()
    await idle(sandbox.gateway.deliveries)

    callback = await kept_callback(sandbox)
    assert [attempt.status_code for attempt in callback.attempts] == [200]
    assert len(receiver.deliveries) == 2
    assert await sandbox.gateway.store.run(lambda unit: unit.next_due()) is None


async def test_snapshots_are_listed_newest_first_and_in_pages(sandbox: Sandbox) -> None:
    for name, service_id in (("a", None), ("b", 55), ("c", None), ("a", 56)):
        await save(sandbox, name, service_id=service_id)

    for query, names, next_page in (
        ("", ["a", "c", "b"], None),
        ("limit=2", ["a", "c"], "c"),
        ("after=c", ["b"], None),
        ("service_id=56", ["a"], None),
    ):
        page = await get(sandbox, f"snapshots?{query}")
        assert [each["name"] for each in page["snapshots"]] == names
        assert page["next"] == next_page


async def test_a_bad_and_an_unknown_name_of_a_snapshot_are_refused(sandbox: Sandbox) -> None:
    for name in ["", ".", "..", "-a", "a b", "A" * 256, "a/b", "é", "a\n", "a\0", 5, None, ["a"]]:
        assert_error(await save(sandbox, name), 400, "name must be 1 to 255 characters")
    for fields, named in (
        *(({"service_id": "55"}, "service_id"), ({"service_id": 0}, "service_id")),
        ({"service": 55}, "'service'"),
    ):
        assert_error(await save(sandbox, **fields), 400, named)
    assert_error(await ask(sandbox, "POST", "/_sandbox/snapshots"), 400)
    assert_error(await ask(sandbox, "GET", "/_sandbox/snapshots?limit=0"), 400, "limit")
    assert (await get(sandbox, "snapshots"))["snapshots"] == []

    await save(sandbox)
    before = "/_sandbox/snapshots/before"
    wrong = await ask(sandbox, "POST", f"{before}/restore", b'{"service_id": 55}')
    assert_error(wrong, 400, "'service_id'")
    assert (await ask(sandbox, "DELETE", before)).body == {"deleted": 1}
    for name in ["before", "never", "%20", "%00", "%ff", "a%2Fb", "A" * 256]:
        deleted = await ask(sandbox, "DELETE", f"/_sandbox/snapshots/{name}")
        for answer in (await restore(sandbox, name), deleted):
            assert_error(answer, 404, *(["before"] if name == "before" else []))
    assert await get(sandbox, "snapshots") == {"snapshots": [], "next": None}


async def test_a_reset_of_a_service_does_not_affect_other_services(sandbox: Sandbox) -> None:
    for service_id in (55, 56):
        await sandbox.sms(service_id=service_id)
        await sandbox.collect(service_id=service_id)
    assert_error(await post(sandbox, "reset", service_id="55"), 400, "service_id")
    assert_error(await post(sandbox, "reset", service=55), 400, "service")
    assert await sandbox.sms_balance() == 499

    answer = await post(sandbox, "reset", service_id=55)
    await sandbox.advance(seconds=1)

    assert (answer.status, answer.body) == (200, {"service_id": 55, "kept": ["snapshots"]})
    assert await sandbox.sms_balance(55) == 500
    assert await sandbox.sms_balance(56) == 499
    assert (await sandbox.status("T1")).code == "027"
    assert (await sandbox.status("T1", 56)).data["status"] == "000"
    assert (await sandbox.callback())["trans_ref"] == "T1"
    assert (await only(sandbox, "requests", "operation=collect"))["service_id"] == 56
