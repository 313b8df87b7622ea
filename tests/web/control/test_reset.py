"""A reset deletes the records of one service or of all, with their pending work."""

import json

from tests.conftest import Sandbox, Seen
from tests.web.control_api import ask, assert_error


async def reset(sandbox: Sandbox, **body: object) -> Seen:
    text = json.dumps(body).encode() if body else b""
    return await ask(sandbox, "POST", "/_sandbox/reset", text)


async def test_a_service_begins_anew_and_another_goes_on(sandbox: Sandbox) -> None:
    for service_id in (55, 56):
        await sandbox.sms(service_id=service_id)
        await sandbox.collect(service_id=service_id)

    answer = await reset(sandbox, service_id=55)
    await sandbox.advance(seconds=1)

    assert (answer.status, answer.body) == (
        200,
        {"service_id": 55, "kept": ["snapshots"]},
    )
    assert await sandbox.sms_balance(55) == 500
    assert await sandbox.sms_balance(56) == 499
    assert (await sandbox.status("T1")).code == "027"
    assert (await sandbox.status("T1", 56)).data["status"] == "000"
    (message,) = await sandbox.inbox()
    requests = await ask(sandbox, "GET", "/_sandbox/requests?operation=collect")
    assert [each["service_id"] for each in requests.body["requests"]] == [56]
    assert message["json"]["trans_ref"] == "T1"


async def test_a_wrong_service_id_resets_nothing(sandbox: Sandbox) -> None:
    await sandbox.sms()

    assert_error(await reset(sandbox, service_id="55"), 400, "service_id")
    assert_error(await reset(sandbox, service=55), 400, "service")

    assert await sandbox.sms_balance() == 499
