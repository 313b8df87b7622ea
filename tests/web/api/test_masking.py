"""What the gateway masks, and what still works: callback passwords, lookups, matches, lengths."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.conftest import Sandbox, StartSandbox
from tests.sqlite_files import killed
from tests.web.conftest import Receiver
from tests.web.control_api import ask, listed, only, post
from tests.web.wire import exchange, request_bytes

pytestmark = pytest.mark.decision("D38")

CARD = "4111111111111111"
MASKED = "411111******1111"
SPACED, SPACED_MASKED = "4111 1111 1111 1111", "4111 11** **** 1111"


async def search(sandbox: Sandbox, plural: str, **match: Any) -> list[dict[str, Any]]:
    return list((await post(sandbox, f"{plural}/find", match=match)).body[plural])


def signed_in(url: str) -> str:
    return url.replace("//", "//ama:s3same@")


class TestAddresses:
    async def test_an_address_is_used_with_its_password_and_shown_masked(
        self, sandbox: Sandbox, receiver: Receiver
    ) -> None:
        url = f"{signed_in(receiver.url)}?c={CARD}"

        await sandbox.collect(callback_url=url)
        pending = await only(sandbox, "transactions")
        await sandbox.advance(seconds=1)

        assert receiver.delivery.headers["Authorization"] == "Basic YW1hOnMzc2FtZQ=="
        assert receiver.delivery.path == f"/callbacks?c={CARD}"
        shown = receiver.url.replace("//", "//***@") + f"?c={MASKED}"
        callback = await only(sandbox, "callbacks")
        assert [callback["url"], callback["attempts"][0]["sent_to"]] == [shown, shown]
        for transaction in (pending, await only(sandbox, "transactions")):
            assert transaction["callback_url"] == shown
        assert (await only(sandbox, "requests"))["request"]["callback_url"] == shown

        landing = f"http://ama:s3same@shop.example/thanks?order={CARD}"
        page = (await sandbox.card(landing_page=landing)).body["redirect_url"]
        paid = await sandbox.session.post(page, data={"choice": "pay"}, allow_redirects=False)
        assert paid.headers["Location"] == landing
        assert f'href="{landing}"' in await (await sandbox.session.get(page)).text()

    @pytest.mark.parametrize("stopped_by", ["stop", "kill"])
    async def test_a_retry_after_a_restart_uses_the_password(
        self, start_sandbox: StartSandbox, receiver: Receiver, tmp_path: Path, stopped_by: str
    ) -> None:
        path = tmp_path / "state.sqlite3"
        receiver.answer_in_turn(500, 200)
        sandbox = await start_sandbox(store=f"sqlite:{path}")
        await sandbox.collect(callback_url=signed_in(receiver.url))
        await sandbox.advance(seconds=1)
        if stopped_by == "kill":
            path = killed(path, tmp_path / "after the kill")
        await sandbox.stop()

        again = await start_sandbox(store=f"sqlite:{path}")
        await again.advance(seconds=301)

        first, second = receiver.deliveries
        assert second.headers["Authorization"] == first.headers["Authorization"]

    async def test_a_restored_or_resent_callback_uses_the_password(
        self, sandbox: Sandbox, receiver: Receiver
    ) -> None:
        await sandbox.collect(callback_url=signed_in(receiver.url))
        await post(sandbox, "snapshots", name="pending")
        await post(sandbox, "reset")
        await post(sandbox, "snapshots/pending/restore")
        await sandbox.advance(seconds=1)
        assert "s3same" not in json.dumps(await listed(sandbox, "snapshots"))

        await sandbox.collect(transaction_id="T2")
        await sandbox.advance(seconds=1)
        await post(sandbox, "callbacks/T2/resend", url=signed_in(receiver.url))
        await sandbox.advance(seconds=1)
        again = await post(sandbox, "callbacks/T2/resend")
        await sandbox.advance(seconds=1)

        assert again.body["url"] == receiver.url.replace("//", "//***@")
        assert ["Authorization" in each.headers for each in receiver.deliveries] == [True] * 3


class TestTransactionIds:
    """A transaction_id that looks like a card number still works as a key, and is shown masked."""

    async def test_answers_and_callbacks_have_the_id_and_lists_show_it_masked(
        self, sandbox: Sandbox, receiver: Receiver
    ) -> None:
        await sandbox.collect(transaction_id=CARD, callback_url=receiver.url)
        await sandbox.advance(seconds=1)

        assert (await sandbox.status(CARD)).data["transaction_id"] == CARD
        assert receiver.delivery.body["trans_ref"] == CARD
        callback = await only(sandbox, "callbacks")
        assert (callback["transaction_id"], callback["body"]["trans_ref"]) == (MASKED, MASKED)
        assert (await only(sandbox, "transactions"))["transaction_id"] == MASKED
        status, collected = await listed(sandbox, "requests")
        assert collected["transaction_id"] == collected["request"]["transaction_id"] == MASKED
        assert status["answer"]["response_data"]["transaction_id"] == MASKED

    @pytest.mark.decision("D14")
    async def test_the_id_and_its_masked_form_find_records(
        self, start_sandbox: StartSandbox
    ) -> None:
        """The unmasked id also finds a duplicate, and the payment to settle."""
        sandbox = await start_sandbox(duplicates="reject")
        similar = "4111110205021111"
        await sandbox.collect(transaction_id=CARD, amount=1)
        await sandbox.collect(transaction_id=similar, amount=2)
        assert (await sandbox.collect(transaction_id=CARD, amount=3)).code == "219"
        settled = await post(sandbox, f"transactions/55/{CARD}/settle", status="001")
        assert (settled.body["transaction_id"], settled.body["status"]) == (MASKED, "001")
        assert (await sandbox.status(CARD)).data["status"] == "001"
        await sandbox.advance(seconds=1)

        one = await ask(sandbox, "GET", f"/_sandbox/transactions/55/{CARD}")
        exact = await search(sandbox, "transactions", transaction_id=CARD)
        masked = await search(sandbox, "transactions", transaction_id=MASKED)
        callbacks = await search(sandbox, "callbacks", transaction_id=similar)
        match = {"json.trans_ref": CARD}
        inbox = await post(sandbox, "inbox/orders/wait", match=match, count=2)

        assert one.body["amount"] == "1.0"
        assert [each["amount"] for each in exact] == ["1.0"]
        assert [each["amount"] for each in masked] == ["2.0", "1.0"]
        assert [each["body"]["amount"] for each in callbacks] == ["2"]
        requests = await search(sandbox, "requests", **{"request.transaction_id": CARD})
        assert len(requests) == 4
        assert inbox.status == 200

    async def test_an_id_of_thirteen_digits_is_not_masked(self, sandbox: Sandbox) -> None:
        name = "1767258000123"
        await sandbox.collect(transaction_id=name, reference="0244000001 200000000001")

        assert (await only(sandbox, "transactions"))["transaction_id"] == name
        entry = await only(sandbox, "requests")
        assert entry["request"]["reference"] == "0244000001 200000000001"
        assert (await search(sandbox, "requests", transaction_id=name)) == [entry]

    async def test_a_mistyped_card_number_of_a_payment_is_masked(self, sandbox: Sandbox) -> None:
        """An id of thirteen digits beside it is not masked."""
        await sandbox.card(customer_number="4111111111111112", transaction_id="1767258000123")
        await sandbox.payout(customer_number="1111 1111 1111 1112", payment_option="CRD", nw="VIS")

        payout, card = [each["request"] for each in await listed(sandbox, "requests")]
        assert card["customer_number"] == "411111******1112"
        assert card["transaction_id"] == "1767258000123"
        assert payout["customer_number"] == "1111 11** **** 1112"


class TestOverrides:
    async def test_a_card_number_in_a_match_is_masked_and_matches(self, sandbox: Sandbox) -> None:
        for number in (CARD, SPACED, "\uff14111111111111111"):
            match = {"customer_number": number}
            added = await post(
                sandbox, "overrides", match=match, outcome={"status": "000"}, times=1
            )
            kept, *_ = await sandbox.gateway.store.run(lambda unit: unit.user_rules())

            answer = await sandbox.collect(customer_number=number)

            assert (answer.code, answer.rule) == ("202", "override")
            shown = added.body["match"]["customer_number"]
            assert kept.match.customer_number == shown
            assert shown.count("*") == 6
            await ask(sandbox, "DELETE", "/_sandbox/overrides")

    async def test_a_card_number_is_masked_in_any_payment_that_an_override_accepts(
        self, sandbox: Sandbox, receiver: Receiver
    ) -> None:
        await post(sandbox, "overrides", match={"service_id": 55}, outcome={"status": "000"})

        for send in ("collect", "deposit", "payout", "airtime", "bill"):
            name = "account_number" if send == "bill" else "customer_number"
            await getattr(sandbox, send)(**{name: SPACED}, callback_url=receiver.url)
            await sandbox.advance(seconds=1)

            assert receiver.deliveries[-1].body["customer_number"] == SPACED_MASKED
            assert (await listed(sandbox, "transactions"))[0]["party"] == SPACED_MASKED


async def test_length_and_cost_of_an_sms_are_those_of_the_unmasked_text(sandbox: Sandbox) -> None:
    text = "\uff14111111111111111".ljust(71, ".")  # UCS-2, two pages

    sent = (await sandbox.sms(msg_body=text, sender_id=CARD)).data

    assert (sent["encoding"], sent["char_count"], sent["page_count"]) == ("UNICODE", 71, 2)
    assert await sandbox.sms_balance() == 498
    (message,) = (await sandbox.history()).data
    assert message["message"] == "\uff1411111******1111".ljust(71, ".")
    assert (message["sender_id"], message["char_count"]) == (MASKED, 71)


async def test_the_journal_masks_the_path_and_stores_no_headers(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="sandbox_sim")
    headers = b"User-Agent: " + CARD.encode(), b"X-Card: " + CARD.encode()
    for path in ("/pay/4111%201111%2D%311111111", f"/pay/{CARD}?card={CARD}"):
        await exchange(sandbox, request_bytes(path, b"{}", *headers, agent=False))

    entries = await listed(sandbox, "requests")
    assert [each["path"] for each in entries] == [f"/pay/{MASKED}", "/pay/4111 11**-****1111"]
    assert CARD[:10] not in json.dumps(entries)
    assert CARD not in caplog.text


async def test_the_messages_and_the_name_of_an_inbox_are_masked(sandbox: Sandbox) -> None:
    url = sandbox.inbox_url(CARD)
    bodies = (SPACED, f"{'4 ' * 20_000}; {SPACED}")
    for body in bodies:
        async with sandbox.session.post(url, data=body, headers={"X-Card": CARD}) as answer:
            assert answer.status == 200

    short, long = await sandbox.inbox(CARD)

    assert short["body"] == SPACED_MASKED
    assert short["headers"]["x-card"] == MASKED
    assert len(long["body"]) == len(bodies[1])
    assert long["body"].endswith(f"; {SPACED_MASKED}")
    assert await sandbox.inbox(MASKED) == [short, long]
    assert (await ask(sandbox, "DELETE", f"/_sandbox/inbox/{CARD}")).body == {"deleted": 2}


async def test_errors_mask_card_numbers(sandbox: Sandbox) -> None:
    seen = await ask(sandbox, "GET", f"/_sandbox/transactions/55/{CARD}")
    assert seen.status == 404
    assert MASKED in json.dumps(seen.body)
    assert CARD not in json.dumps(seen.body)

    await sandbox.sms(customer_number=SPACED)
    entry = await only(sandbox, "requests")
    assert entry["code"] == "S002"
    assert entry["why"].startswith(f"customer_number '{SPACED_MASKED}' is not ten digits")


async def test_the_answer_of_a_receiver_is_masked(sandbox: Sandbox, receiver: Receiver) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        return web.Response(text=f"got {await request.text()}", status=500)

    receiver.answer = echo
    await sandbox.collect(transaction_id=CARD, callback_url=receiver.url)
    await sandbox.advance(seconds=1)

    (attempt,) = (await only(sandbox, "callbacks"))["attempts"]
    assert MASKED in attempt["response_body"]
    assert CARD not in attempt["response_body"]
