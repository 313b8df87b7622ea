"""Delivery receipts: their states, their messages, and the answers to them (D39)."""

import asyncio
import logging
from typing import Any

import pytest

from sandbox_sim.networks.smpp import connection
from sandbox_sim.ports.network import Notification, UnreadableNotification
from sandbox_sim.records.reports import Outcome
from tests.live_records import raw_notification
from tests.networks.fakes import KeptEvents, query
from tests.networks.smpp.network import Esme, esme_at_fake, until
from tests.turns import turns

pytestmark = pytest.mark.decision("D39")

ARRIVED, FAILED, WAITING = Outcome.SUCCEEDED, Outcome.FAILED, Outcome.PENDING
TEMPORARY_ERROR, PERMANENT_ERROR = 0x64, 0x65


class HeldEvents(KeptEvents):
    """Events that are saved only after `may_save` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.may_save = asyncio.Event()

    async def notified(self, notification: Notification) -> None:
        await self.may_save.wait()
        await super().notified(notification)


class BrokenEvents(KeptEvents):
    async def notified(self, notification: Notification) -> None:
        raise RuntimeError("an internal error")


async def test_the_state_of_a_receipt_decides_the_outcome(esme: Esme) -> None:
    rows = [
        ("DELIVRD", ARRIVED, ""),
        ("UNDELIV", FAILED, "UNDELIV, err 000"),
        ("EXPIRED", FAILED, "EXPIRED, err 000"),
        ("DELETED", FAILED, "DELETED, err 000"),
        ("REJECTD", FAILED, "REJECTD, err 000"),
        ("ENROUTE", WAITING, ""),
        ("ACCEPTD", WAITING, ""),
        ("UNKNOWN", Outcome.UNKNOWN, ""),
        ("SKIPPED", Outcome.UNKNOWN, ""),
        ("delivrd", ARRIVED, ""),
    ]
    for state, outcome, reason in rows:
        assert await esme.smsc.receipt("7f", state) == 0

        notification = esme.events.notifications[-1]
        assert (notification.outcome, notification.part_id) == (outcome, "7f")
        assert notification.reason == reason
    assert len(esme.events.notifications) == len(rows)


async def test_the_text_and_the_parameters_of_a_receipt_are_read(esme: Esme) -> None:
    rows: list[tuple[str, dict[str, Any], Outcome, str]] = [
        ("", {"message_id": b"7F", "state": 2}, ARRIVED, "7f"),
        ("", {"message_id": b"7F", "state": 5}, FAILED, "7f"),
        ("", {"message_id": b"7F", "state": 1}, WAITING, "7f"),
        ("", {"message_id": b"7F"}, Outcome.UNKNOWN, "7f"),
        ("", {"message_id": b"7F", "state": 99}, Outcome.UNKNOWN, "7f"),
        ("id:1 stat:DELIVRD", {"message_id": b"7F"}, ARRIVED, "7f"),
        ("id:1 stat:DELIVRD", {"state": 2}, ARRIVED, "1"),
        ("id:1 stat:DELIVRD", {"state": 5}, Outcome.UNKNOWN, "1"),
        ("", {"payload": b"id:1 stat:UNDELIV"}, FAILED, "1"),
        ("id:1 text:id:2 stat:DELIVRD", {}, Outcome.UNKNOWN, "1"),
        ("ID:1 Stat:DELIVRD", {}, ARRIVED, "1"),
    ]
    for text, tlvs, outcome, part_id in rows:
        assert await esme.smsc.deliver(text, **tlvs) == 0

        assert esme.reports[-1] == (outcome, part_id)
    assert len(esme.reports) == len(rows)


_TO_SHOP = b"CMT\0\x01\x01233244000001\0\x05\x00Shop\0"


async def test_a_receipt_may_come_in_a_data_sm(esme: Esme) -> None:
    kind, id_7f, arrived = b"\x04\0\0", b"\0\x1e\0\x037F\0", b"\x04\x27\0\x01\x02"
    text = b"id:1 stat:UNDELIV err:00A"
    payload = b"\x04\x24" + len(text).to_bytes(2, "big") + text

    assert await esme.smsc.data(_TO_SHOP + kind + id_7f + arrived) == 0
    assert await esme.smsc.data(b"\0\0\0\0\0\0\0" + kind + payload) == 0
    assert esme.reports == [(ARRIVED, "7f"), (FAILED, "1")]
    assert esme.smsc.came.count(0x80000103) == 2

    assert await esme.smsc.data(_TO_SHOP + b"\0\0\0" + payload) == 0  # a message of a phone
    assert len(esme.reports) == 2


@pytest.mark.parametrize("body", [b"", _TO_SHOP, _TO_SHOP + b"\x04\0"])
async def test_a_data_sm_that_is_cut_off_gets_a_permanent_error(esme: Esme, body: bytes) -> None:
    assert await esme.smsc.data(body) == PERMANENT_ERROR

    assert esme.reports == []
    assert "1 receipts could not be read" in (await esme.adapter.health()).detail


async def test_a_receipt_that_quotes_a_message_in_ucs_2_is_read(esme: Esme) -> None:
    written = "id:7F sub:001 stat:DELIVRD err:000 text:"
    quoted = "Y\u025bma wo \U0001f600".encode("utf-16-be")
    ucs2, header = written.encode("utf-16-be") + quoted, b"\x06\x08\x04\x00\x01\x01\x01"
    rows = [
        (ucs2, 0x04, "7f"),
        (header + ucs2, 0x44, "7f"),
        ("id:\u0254 stat:DELIVRD".encode("utf-16-be"), 0x04, "?"),
        # Some SMSCs repeat the data_coding of the message, and write only its text in UCS-2.
        (written.encode() + quoted, 0x04, "7f"),
        (written.encode(), 0x04, "7f"),
    ]
    for octets, esm_class, part_id in rows:
        assert await esme.smsc.deliver(octets, esm_class, data_coding=8) == 0
        assert esme.reports[-1] == (ARRIVED, part_id)
    assert len(esme.reports) == len(rows)


@pytest.mark.parametrize(
    ("form", "answered", "written", "same"),
    [
        ("same", "1a2b", "1A2B", True),
        ("same", "0000123", "123", True),
        ("same", "a-B_c", "a-B_c", True),
        *(("same", *ids, False) for ids in (("10", "16"), ("16", "10"), ("12", "120"))),
        ("decimal_of_hex", "1A2B", "6699", True),
        ("decimal_of_hex", "10", "0000000016", True),
        ("hex_of_decimal", "6699", "1a2b", True),
        ("decimal_of_hex", "no-number", "no-number", True),
    ],
)
async def test_an_id_is_compared_in_the_number_form_of_the_setting(
    form: str, answered: str, written: str, *, same: bool
) -> None:
    async with esme_at_fake(receipt_ids=form) as esme:
        esme.smsc.ids.append(answered)
        await esme.send()
        await esme.smsc.receipt(written)
        await esme.smsc.deliver("", message_id=answered.encode(), state=2)

    (part,) = esme.events.parts
    (by_text, of_text), by_parameter = esme.reports[0], esme.reports[1]
    assert (by_text, of_text == part.network_id) == (ARRIVED, same)
    assert by_parameter == (ARRIVED, part.network_id)


async def test_a_receipt_is_answered_only_after_it_is_saved(esme: Esme) -> None:
    events = esme.adapter._events = HeldEvents()
    answered = esme.smsc.receipt("1")
    await turns(50)
    # Other work of the bind goes on meanwhile.
    assert (await esme.send()).outcome is WAITING
    assert not answered.done()

    events.may_save.set()
    assert await answered == 0

    assert len(events.notifications) == 1


async def test_a_receipt_is_saved_even_if_its_bind_drops_before(esme: Esme) -> None:
    events = esme.adapter._events = HeldEvents()
    esme.smsc.receipt("1")
    await until(lambda: esme.adapter._deliveries._tasks)
    esme.smsc.drop()
    await until(lambda: not esme.adapter._link._connection)

    events.may_save.set()
    await until(lambda: events.notifications)


async def test_a_receipt_that_cannot_be_saved_gets_a_temporary_error(
    esme: Esme, caplog: pytest.LogCaptureFixture
) -> None:
    esme.adapter._events = BrokenEvents()

    assert await esme.smsc.receipt("1") == TEMPORARY_ERROR

    assert "a delivery could not be processed" in caplog.text


async def test_a_receipt_above_the_limit_of_saves_at_once_gets_a_temporary_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "MOST_AT_ONCE", 2)
    async with esme_at_fake() as esme:
        events = esme.adapter._events = HeldEvents()
        first = [esme.smsc.receipt("1"), esme.smsc.receipt("2")]
        assert await esme.smsc.receipt("3") == TEMPORARY_ERROR

        events.may_save.set()
        assert await asyncio.gather(*first) == [0, 0]
        assert await esme.smsc.receipt("3") == 0


async def test_a_receipt_may_come_before_the_answer_twice_and_out_of_order(esme: Esme) -> None:
    esme.smsc.ids.append("9")
    submitting = await esme.begin_unanswered()
    for state in ("DELIVRD", "ENROUTE", "DELIVRD"):
        assert await esme.smsc.receipt("9", state) == 0
    esme.smsc.answer_late()

    assert (await submitting).outcome is WAITING

    assert esme.reports == [(ARRIVED, "9"), (WAITING, "9"), (ARRIVED, "9")]


@pytest.mark.parametrize("text", ["Hello", "id:1 sub:001 dlvrd:001 stat:DELIVRD err:000"])
async def test_a_message_of_a_phone_or_without_an_id_is_not_a_receipt(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An intermediate notification is a receipt, and decides nothing."""
    caplog.set_level(logging.DEBUG)
    async with esme_at_fake() as esme:
        assert await esme.smsc.deliver(text, esm_class=0) == 0
        assert await esme.smsc.deliver("stat:DELIVRD") == 0
        assert esme.events.notifications == []
        assert "without an identifier" in caplog.text
        assert text not in caplog.text

        await esme.smsc.deliver("id:1 stat:UNDELIV", esm_class=0x20)
        assert esme.reports == [(WAITING, "1")]


BAD_IDS = [b"1" * 5000, b"f" * 12_000, b"1\x01", "Ä1".encode("latin-1")]


@pytest.mark.parametrize("form", ["same", "decimal_of_hex", "hex_of_decimal"])
@pytest.mark.parametrize("message_id", BAD_IDS, ids=["digits", "12 kB", "control", "not ASCII"])
async def test_a_receipt_with_an_invalid_id_gets_a_permanent_error(
    form: str, message_id: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with esme_at_fake(receipt_ids=form) as esme:
        written = b"id:" + message_id + b" stat:DELIVRD"
        assert await esme.smsc.deliver(payload=written) == PERMANENT_ERROR
        assert await esme.smsc.deliver(message_id=message_id, state=2) == PERMANENT_ERROR
        health = await esme.adapter.health()
        assert await esme.smsc.receipt("7") == 0

    assert esme.reports == [(ARRIVED, "7")]
    assert health.detail.endswith("; 2 receipts could not be read")
    assert len(caplog.text) < 2000


async def test_a_reason_is_cut_and_has_no_control_characters(esme: Esme) -> None:
    text = f"id:1\0 stat:UNDELIV\0 err:0\x01{'9' * 5000}"
    assert await esme.smsc.deliver(payload=text.encode()) == 0
    long = f"id:1 stat:UNDELIV err:{'9' * 5000}"
    assert await esme.smsc.deliver(payload=long.encode()) == 0

    assert esme.reports == [(FAILED, "1")] * 2
    assert [len(said.reason) for said in esme.events.notifications] == [14, 38]


async def test_smpp_takes_no_notification_by_http_and_has_no_status_query(esme: Esme) -> None:
    raw = raw_notification(network="testnet")
    assert not esme.adapter.verify(raw)
    with pytest.raises(UnreadableNotification):
        esme.adapter.parse(raw)
    assert (await esme.adapter.status(query())).outcome is Outcome.UNKNOWN

    assert esme.smsc.submits == []
