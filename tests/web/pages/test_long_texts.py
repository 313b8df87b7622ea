"""A page cuts a long text, says so, and says where the full text is."""

import json
import re
from html import unescape
from operator import methodcaller

from sandbox_sim.records.callbacks import DeliveryAttempt, DeliveryState
from sandbox_sim.records.messages import SmsStatus
from tests.conftest import Sandbox
from tests.sample_records import NOW, callback, message, transaction
from tests.web.pages.dashboard_pages import VIEWS, page, rows

LONG = "abcdefghij" * 90_000
ATTEMPT = DeliveryAttempt(
    1, NOW, 200, 5, "thanks", "acknowledged", "http://shop.test/callback", None
)
BODY = json.dumps({"trans_ref": "T1", "reference": LONG})
MOST = 300_000  # characters of a page


async def long_records(sandbox: Sandbox, count: int, text: str = LONG) -> None:
    """Add records of an older version, which had no limits for texts."""
    body = json.dumps({"trans_ref": "T1", "reference": text})
    run = sandbox.gateway.store.run
    for number in range(count):
        name = f"{number + 1:011}"
        made = transaction(name, transaction_id=f"T{number}", reference=text)
        sent = callback(
            f"C{number}", network_transaction_id=name, body=body, attempts=(ATTEMPT,),
            state=DeliveryState.DELIVERED,
        )  # fmt: skip
        texted = message(f"M{number}", message=text, sender_id=text)
        await run(methodcaller("add_transaction", made))
        await run(methodcaller("save_callback", sent))
        await run(methodcaller("add_messages", [texted]))


async def test_a_list_of_long_records_is_a_short_page(sandbox: Sandbox) -> None:
    """The journal keeps the beginning of a request, and the page shows a part of it."""
    await long_records(sandbox, 60, LONG[:20_000])
    for number in range(5):
        await sandbox.collect(transaction_id=f"R{number}", reference=LONG)

    shown = {view: await page(sandbox, f"?view={view}") for view in VIEWS}

    for view, html in shown.items():
        assert len(html) < MOST, view
        assert all(len(row) < 1_000 for row in rows(html))
    assert "more characters; GET /_sandbox/requests has the full text" in shown["requests"]


async def test_a_timeline_and_a_handset_say_where_the_full_text_is(sandbox: Sandbox) -> None:
    await long_records(sandbox, 1)
    rows = {
        "?view=payments&open=t:55:00000000001": "transactions, requests or callbacks",
        "?view=callbacks&open=c:C0": "callbacks",
        "?view=sms&open=m:M0": "sms",
    }
    for query, where in rows.items():
        shown = unescape(await page(sandbox, query))

        assert len(shown) < MOST
        cut = re.findall(r"… \(([\d,]+) more characters; GET (.*?) has the full text\)", shown)
        assert {path for _, path in cut} == {f"/_sandbox/{where}"}
        assert all(int(left.replace(",", "")) > 880_000 for left, _ in cut)

    texted = message("M1", message=LONG, sender_id=LONG, status=SmsStatus.SENT, sent_at=NOW)
    await sandbox.gateway.store.run(methodcaller("add_messages", [texted]))
    shown = await page(sandbox, "handset/0244000001")
    assert len(shown) < MOST
    assert shown.count("GET /_sandbox/handset/0244000001 has the full text") >= 1


async def test_an_inbox_cuts_long_bodies_and_headers(sandbox: Sandbox) -> None:
    headers = {f"X-{number}": '"' * 400 + "h" * 7_000 for number in range(60)}
    short = "é<" * 5_000
    for name, bodies in (
        ("bodies", [BODY, LONG, "<" * 900_000]),
        ("headers", [f"body {number} {LONG[:20_000]}" for number in range(25)]),
        ("short", [short]),
    ):
        for body in bodies:
            more = headers if name == "headers" else {}
            await sandbox.session.post(sandbox.inbox_url(name), data=body.encode(), headers=more)

    shown = await page(sandbox, "inbox/bodies")
    assert len(shown) < MOST
    assert shown.count("GET /_sandbox/inbox/bodies/messages has the full text") == 3

    shown = await page(sandbox, "inbox/headers")
    assert len(shown) < 3 * MOST  # each quotation mark takes five characters
    assert "GET /_sandbox/inbox/headers/messages has the full text" in shown
    assert all(f"body {number} abc" in shown for number in range(5, 25))

    shown = await page(sandbox, "inbox/short")
    assert short in unescape(shown)
    assert "more characters" not in shown
