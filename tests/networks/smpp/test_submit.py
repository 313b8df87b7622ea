"""Sending over SMPP: the outcome of each answer, and what is not sent twice (D39)."""

import asyncio
import json
import logging

import pytest

from sandbox_sim.networks.smpp import connection
from sandbox_sim.records.exchanges import MessagePart
from sandbox_sim.records.reports import Outcome
from tests.networks.smpp.fake_smsc import (
    RINVDSTADR,
    RMSGQFUL,
    RSYSERR,
    RTHROTTLED,
    Broken,
    FakeSmsc,
)
from tests.networks.smpp.network import (
    PASSWORD,
    TIMEOUT_S,
    Esme,
    esme_at,
    esme_at_fake,
    long_sms,
    sms,
    until,
)
from tests.turns import turns

pytestmark = pytest.mark.decision("D39")


async def test_a_message_is_sent_once_requests_a_receipt_and_keeps_its_id(esme: Esme) -> None:
    esme.smsc.ids.append("0001F")

    result = await esme.send()

    (submit,) = esme.smsc.submits
    assert (result.outcome, result.network_id) == (Outcome.PENDING, "0001F")
    assert esme.smsc.binds == [("shop", PASSWORD, "")]
    assert (submit.source_addr, submit.source_addr_ton, submit.source_addr_npi) == ("Shop", 5, 0)
    assert (submit.destination_addr, submit.dest_addr_ton) == ("233244000001", 1)
    assert (submit.short_message, submit.data_coding, submit.esm_class) == (b"Hello", 0, 0)
    assert submit.registered_delivery == 1
    assert esme.events.parts == [MessagePart("testnet", "A1", 1, 1, "1f")]


@pytest.mark.parametrize("message_id", ["9" * 12_000, "1\x01", "é"])
@pytest.mark.parametrize("form", ["same", "decimal_of_hex", "hex_of_decimal"])
async def test_an_invalid_id_is_not_kept_and_frees_the_window(form: str, message_id: str) -> None:
    async with esme_at_fake(window=1, receipt_ids=form) as esme:
        esme.smsc.ids.extend([message_id, "7"])

        first, second = await esme.send(), await esme.send()

    assert (first.outcome, first.network_id) == (Outcome.PENDING, "")
    assert (second.outcome, second.network_id) == (Outcome.PENDING, "7")
    assert [part.network_id for part in esme.events.parts] == ["7"]
    assert all(len(exchange.answer_body) < 100 for exchange in esme.events.exchanges)


async def test_the_parts_of_a_long_message_are_sent_in_order_and_once(esme: Esme) -> None:
    result = await esme.adapter.submit(long_sms(3))

    headers = [submit.short_message[:6] for submit in esme.smsc.submits]
    reference = headers[0][3]
    assert headers == [bytes([5, 0, 3, reference, 3, number]) for number in (1, 2, 3)]
    assert b"".join(submit.short_message[6:] for submit in esme.smsc.submits) == b"abc" * 153
    assert {submit.esm_class for submit in esme.smsc.submits} == {0x40}
    assert (result.outcome, result.network_id) == (Outcome.PENDING, "1")
    assert [part.network_id for part in esme.events.parts] == ["1", "2", "3"]


async def test_messages_under_way_at_once_have_different_references(esme: Esme) -> None:
    await asyncio.gather(*(esme.adapter.submit(long_sms(2)) for _ in range(20)))

    assert len({submit.short_message[3] for submit in esme.smsc.submits}) == 20


@pytest.mark.parametrize(
    ("reply", "outcome", "code", "reason", "is_fault"),
    [
        (RINVDSTADR, Outcome.REFUSED, "019", "ESME_RINVDSTADR", False),
        (0x0A, Outcome.REFUSED, "216", "ESME_RINVSRCADR", False),
        (0x45, Outcome.REFUSED, "371", "ESME_RSUBMITFAIL", False),
        (Broken.NACK, Outcome.REFUSED, "371", "ESME_RINVCMDID", False),
        (RSYSERR, Outcome.UNKNOWN, "", "ESME_RSYSERR", True),
        (0x64, Outcome.UNKNOWN, "", "ESME_RX_T_APPN", True),
        (0xFF, Outcome.UNKNOWN, "", "ESME_RUNKNOWNERR", True),
        (0x412, Outcome.UNKNOWN, "", "status 0x00000412", False),
        (Broken.ANOTHER_COMMAND, Outcome.UNKNOWN, "", "the SMSC sent an unexpected answer", False),
    ],
)
async def test_only_a_definite_error_of_the_smsc_is_a_refusal(
    esme: Esme, reply: int | Broken, outcome: Outcome, code: str, reason: str, *, is_fault: bool
) -> None:
    esme.smsc.replies.append(reply)

    result = await esme.send()

    assert (result.outcome, result.code, result.reason) == (outcome, code, reason)
    assert result.network_fault is is_fault
    assert len(esme.smsc.submits) == 1
    assert esme.events.parts == []


@pytest.mark.parametrize("reply", [Broken.CLOSE, Broken.RESET, Broken.HALF_ANSWER])
async def test_a_lost_answer_is_unknown_and_the_message_is_never_sent_again(
    esme: Esme, reply: Broken
) -> None:
    esme.smsc.replies.append(reply)

    result = await esme.send()
    assert (result.outcome, result.network_fault) == (Outcome.UNKNOWN, True)
    await esme.pass_pause()
    await until(lambda: len(esme.smsc.binds) > 1)
    await esme.bound()

    assert len(esme.smsc.submits) == 1


async def test_a_lost_connection_is_one_network_fault_for_all_waiting_submits(esme: Esme) -> None:
    esme.smsc.replies.extend([Broken.SILENCE] * 6)
    submitting = [esme.begin() for _ in range(6)]
    await until(lambda: esme.smsc.silences == 6)
    esme.smsc.drop()
    results = await asyncio.gather(*submitting)

    assert {result.outcome for result in results} == {Outcome.UNKNOWN}
    assert [result.network_fault for result in results].count(True) == 1


async def test_a_late_answer_is_unknown_and_still_counts_when_it_comes(esme: Esme) -> None:
    submitting = await esme.begin_unanswered()
    esme.clock.advance(TIMEOUT_S)
    result = await submitting
    assert (result.outcome, result.reason) == (Outcome.UNKNOWN, "no answer within 10 s")
    assert esme.events.parts == []

    esme.smsc.ids.append("77")
    esme.clock.advance(5)
    esme.smsc.answer_late()
    await until(lambda: esme.events.parts)

    assert esme.events.parts == [MessagePart("testnet", "A1", 1, 1, "77")]
    assert len(esme.smsc.submits) == 1
    journal = [(exchange.duration_ms, exchange.answer_body) for exchange in esme.events.exchanges]
    assert journal == [(10_000, ""), (15_000, "ESME_ROK 77")]


async def test_the_late_answers_of_the_newest_parts_are_awaited(
    esme: Esme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An SMSC that never answers some parts must not use up the room for all later ones."""
    monkeypatch.setattr(connection, "MOST_LATE", 1)
    for count in (1, 2):
        submitting = await esme.begin_unanswered()
        await until(lambda: esme.smsc.silences == count)  # noqa: B023 -- awaited here
        esme.clock.advance(TIMEOUT_S)
        await submitting

    esme.smsc.ids.extend(["76", "77"])
    esme.smsc.answer_late()
    await until(lambda: esme.events.parts)

    assert [part.network_id for part in esme.events.parts] == ["77"]


async def test_a_refusal_that_comes_too_late_fails_the_message(esme: Esme) -> None:
    submitting = await esme.begin_unanswered()
    esme.clock.advance(TIMEOUT_S)
    await submitting

    esme.smsc.answer_late(RINVDSTADR)
    await until(lambda: esme.events.notifications)

    (notification,) = esme.events.notifications
    assert (notification.outcome, notification.attempt_id) == (Outcome.FAILED, "A1")
    assert notification.reason == "ESME_RINVDSTADR"


@pytest.mark.parametrize(
    ("status", "name", "is_fault"),
    [
        (0x0E, "ESME_RINVPASWD", False),
        (RSYSERR, "ESME_RSYSERR", True),
        (0x05, "ESME_RALYBND", True),
        (RTHROTTLED, "ESME_RTHROTTLED", True),
    ],
)
async def test_a_refused_bind_is_a_network_fault_unless_the_account_is_wrong(
    status: int, name: str, *, is_fault: bool
) -> None:
    smsc = FakeSmsc()
    smsc.bind_status = status
    async with smsc.running(), esme_at(smsc) as esme:
        result = await esme.send()

    assert (result.outcome, result.network_fault) == (Outcome.NOT_SENT, is_fault)
    assert result.reason == f"the SMSC refuses the bind: {name}"


@pytest.mark.parametrize("status", [RTHROTTLED, RMSGQFUL])
async def test_a_throttled_message_is_sent_again_after_pauses_that_double(
    esme: Esme, status: int
) -> None:
    esme.smsc.replies.extend([status] * 3)
    submitting = esme.begin()
    pauses = [await esme.pass_pause() for _ in range(3)]
    result = await submitting

    assert result.outcome is Outcome.PENDING
    assert len(esme.smsc.submits) == 4
    assert pauses == [1, 2, 4]


async def test_a_message_that_is_throttled_for_too_long_is_refused() -> None:
    async with esme_at_fake(throttled_for_s=5) as esme:
        esme.smsc.replies.extend([RTHROTTLED] * 3)
        submitting = esme.begin()
        for _ in range(2):
            await esme.pass_pause()
        result = await submitting

    assert (result.outcome, result.code) == (Outcome.REFUSED, "429")
    assert result.reason == "ESME_RTHROTTLED"
    assert len(esme.smsc.submits) == 3


async def test_only_a_throttled_part_of_a_long_message_is_sent_again(esme: Esme) -> None:
    esme.smsc.replies.extend([0, RTHROTTLED])
    submitting = esme.begin(long_sms(3))
    await esme.pass_pause()
    result = await submitting

    assert result.outcome is Outcome.PENDING
    assert [submit.short_message[5] for submit in esme.smsc.submits] == [1, 2, 2, 3]


async def test_a_refused_part_after_others_were_taken_fails_the_message(esme: Esme) -> None:
    esme.smsc.replies.extend([0, RINVDSTADR])

    result = await esme.adapter.submit(long_sms(3))

    assert (result.outcome, result.reason) == (Outcome.FAILED, "part 2 of 3: ESME_RINVDSTADR")
    assert len(esme.smsc.submits) == 2


async def test_a_long_message_whose_bind_drops_is_unknown_and_its_rest_is_sent(esme: Esme) -> None:
    esme.smsc.replies.extend([0, Broken.CLOSE])
    submitting = esme.begin(long_sms(3))
    await esme.pass_pause()
    result = await submitting

    assert [submit.short_message[5] for submit in esme.smsc.submits] == [1, 2, 3]
    assert (result.outcome, result.network_id) == (Outcome.UNKNOWN, "1")
    assert result.reason == "part 2 of 3: the SMSC ended the connection"
    assert [part.number for part in esme.events.parts] == [1, 3]


async def test_a_long_message_whose_rest_cannot_be_sent_fails() -> None:
    async with esme_at_fake(reconnect_after_s=60) as esme:
        esme.smsc.replies.extend([0, RTHROTTLED])
        submitting = esme.begin(long_sms(3))
        await until(lambda: 1 in esme.clock.waiting)
        esme.smsc.drop()
        await until(lambda: any(seconds > 30 for seconds in esme.clock.waiting))
        await esme.pass_pause()
        await until(lambda: esme.clock.limits)
        esme.clock.advance(TIMEOUT_S)
        result = await submitting

    assert result.outcome is Outcome.FAILED
    assert result.reason == "part 2 of 3: the SMSC ended the connection"
    assert [submit.short_message[5] for submit in esme.smsc.submits] == [1, 2]


async def test_at_most_as_many_parts_as_the_window_await_their_answers() -> None:
    async with esme_at_fake(window=2) as esme:
        esme.smsc.replies.extend([Broken.SILENCE] * 2)
        submitting = [esme.begin() for _ in range(5)]
        await until(lambda: esme.smsc.silences == 2)
        await turns(50)
        assert len(esme.smsc.submits) == 2

        esme.smsc.answer_late()
        results = await asyncio.gather(*submitting)

    assert {result.outcome for result in results} == {Outcome.PENDING}
    assert len(esme.smsc.submits) == 5


@pytest.mark.parametrize("sender_id", ["Café", "a\0b", "1" * 30])
async def test_a_sender_that_smpp_cannot_carry_is_not_sent(esme: Esme, sender_id: str) -> None:
    result = await esme.send(sender_id=sender_id)

    assert (result.outcome, result.network_fault) == (Outcome.NOT_SENT, False)
    assert "sender_id has" in result.reason
    assert esme.smsc.submits == []


async def test_the_journal_has_each_part_without_the_text_and_no_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with esme_at_fake() as esme:
        esme.smsc.replies.extend([0, RINVDSTADR])
        await esme.adapter.submit(long_sms(2))

    first, second = esme.events.exchanges
    assert (first.purpose, first.attempt_id, first.method) == ("submit", "A1", "SUBMIT_SM")
    assert json.loads(first.request_body)["part"] == 1
    assert (first.answer_body, second.answer_body) == ("ESME_ROK 1", "ESME_RINVDSTADR")
    assert "abcabc" not in repr(esme.events.exchanges)
    assert PASSWORD not in repr(esme.events.exchanges) + caplog.text + repr(esme.adapter)


async def test_close_unbinds_and_ends_waiting_submits_as_unknown(esme: Esme) -> None:
    submitting = await esme.begin_unanswered()

    await esme.adapter.close()

    assert (await submitting).outcome is Outcome.UNKNOWN
    await until(lambda: 0x06 in esme.smsc.came)
    assert (await esme.adapter.submit(sms())).outcome is Outcome.NOT_SENT
