"""Text that UTF-8 cannot encode, half an emoji or a byte of another charset, is shown escaped."""

import json
import re
from html import unescape

from tests.cli.asking import as_json, control, printed
from tests.conftest import Sandbox
from tests.kit.requests import OPERATIONS
from tests.web.events import listening
from tests.web.pages.dashboard_pages import VIEWS, page
from tests.web.wire import exchange, request_bytes

HALF = '{"note": "half \\ud83d of it", "\\udc00": "name"}'
HALF_EMOJI = "\ud83d"
SHOWN = "\\ud83d"


async def send_in_every_field(sandbox: Sandbox) -> None:
    """Send each operation once for each of its fields, with half an emoji in that field."""
    for operation in OPERATIONS.values():
        for field in operation.body:
            body = json.dumps({**operation.body, field: f"x{HALF_EMOJI}"}).encode()
            agent = b"User-Agent: caf\xe9"
            request = request_bytes(operation.path, body, agent, agent=False)
            assert (await exchange(sandbox, request)).status != 500


async def test_a_delivery_is_shown_by_page_api_feed_and_cli(sandbox: Sandbox) -> None:
    """It has half an emoji in its body, and a byte that is not ASCII in a header."""
    async with listening(sandbox) as listener:
        delivery = request_bytes("/_sandbox/inbox/orders", HALF.encode(), b"X-Odd: caf\xe9")
        assert (await exchange(sandbox, delivery)).status == 200
        event = await listener.next()

    shown = await page(sandbox, "inbox/orders")
    (given,) = json.loads(await control(sandbox, "inbox/orders/messages"))["messages"]
    lines = await printed(sandbox, "inbox", "show", "orders")
    (read,) = (await as_json(sandbox, "inbox", "show", "orders"))["messages"]

    assert f"half {SHOWN} of it" in shown
    assert "caf\\udce9" in shown
    assert SHOWN in "".join(lines)
    for delivered in (event.data, given, read):
        assert delivered["json"]["note"] == f"half {HALF_EMOJI} of it"


async def test_every_view_and_every_timeline_shows_the_text(sandbox: Sandbox) -> None:
    await send_in_every_field(sandbox)
    requests = json.loads(await control(sandbox, "requests?limit=1000"))["requests"]

    for view in VIEWS:
        await page(sandbox, f"?view={view}")
    timelines = [await page(sandbox, f"?view=requests&open=r:{each['id']}") for each in requests]

    assert any(SHOWN in repr(each["request"]) for each in requests)
    assert len(timelines) > 60
    assert all(SHOWN in timeline for timeline in timelines)
    async with sandbox.session.get(f"{sandbox.url}/_sandbox/metrics") as answer:
        assert answer.status == 200


async def test_a_copied_command_has_the_text(sandbox: Sandbox) -> None:
    body = json.dumps({"service_id": 55, "reference": f"a{HALF_EMOJI}"})
    await sandbox.session.post(f"{sandbox.url}/make_payment", data=body, headers=sandbox.headers)

    shown = unescape(await page(sandbox, "?view=requests"))

    command = re.search(r"--data-raw '([^']*)'", shown)
    assert command is not None
    assert json.loads(command[1])["reference"] == f"a{HALF_EMOJI}"
