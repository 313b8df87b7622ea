"""The bind: made again when it is lost, watched with enquire_link, and its health (D39)."""

import logging
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
import trustme

from sandbox_sim.records.reports import Outcome
from tests.networks.smpp.fake_smsc import ENQUIRE_LINK, RTHROTTLED, UNBIND, FakeSmsc, written
from tests.networks.smpp.network import TIMEOUT_S, Esme, esme_at, esme_at_fake, until
from tests.turns import turns

pytestmark = pytest.mark.decision("D39")


async def test_a_bind_that_fails_is_tried_again_after_pauses_that_double() -> None:
    smsc = FakeSmsc()
    smsc.bind_status = 0x0D
    async with smsc.running(), esme_at(smsc, reconnect_at_most_s=5) as esme:
        pauses = [await esme.pass_pause() for _ in range(4)]
        await until(lambda: esme.clock.waiting)
        smsc.bind_status = 0
        pauses.append(await esme.pass_pause())
        await esme.bound()

        assert (await esme.send()).outcome is Outcome.PENDING

    # Up to a tenth is added at random.
    assert [int(pause / 1.1 + 1) for pause in pauses] == [1, 2, 4, 5, 5]
    assert len(smsc.binds) == 6


async def test_a_lost_bind_that_lasted_is_made_again_at_once_and_a_message_waits_for_it(
    esme: Esme,
) -> None:
    esme.clock.advance(5)
    await esme.adapter.health()
    esme.smsc.drop()
    await until(lambda: not esme.adapter._link._connection)

    result = await esme.send()

    assert result.outcome is Outcome.PENDING
    assert len(esme.smsc.binds) == 2


async def test_binds_dropped_at_once_are_repeated_after_longer_pauses(esme: Esme) -> None:
    pauses = []
    for number in range(3):
        await until(lambda number=number: len(esme.smsc.binds) == number + 1)  # type: ignore[misc]
        await esme.bound()
        esme.smsc.drop()
        pauses.append(round(await esme.pass_pause()))

    assert pauses == [1, 2, 4]


async def test_a_message_between_two_binds_is_not_sent_and_does_not_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The health and the log show the state of the bind."""
    caplog.set_level(logging.INFO, "sandbox_sim.networks")
    async with esme_at_fake() as esme:
        bound = await esme.adapter.health()
        esme.smsc.drop()
        await until(lambda: any(seconds < 30 for seconds in esme.clock.waiting))
        result, dropped = await esme.send(), await esme.adapter.health()
        await esme.pass_pause()
        await esme.bound()

    assert bound == (True, f"bound at 127.0.0.1:{esme.smsc.port} as shop")
    assert dropped == (False, "the SMSC ended the connection")
    assert (result.outcome, result.network_fault) == (Outcome.NOT_SENT, True)
    assert result.reason == "the SMSC ended the connection"
    assert [record.message for record in caplog.records] == [
        "network testnet is bound as shop",
        "network testnet: the SMSC ended the connection",
        "network testnet is bound as shop",
    ]


async def test_moving_the_gateways_clock_ends_neither_the_bind_nor_a_pause(esme: Esme) -> None:
    for _ in range(3):
        esme.clock.move_to(esme.clock.now() + timedelta(days=1))
        assert (await esme.send()).outcome is Outcome.PENDING
    assert (len(esme.smsc.binds), ENQUIRE_LINK in esme.smsc.came) == (1, False)

    esme.smsc.replies.append(RTHROTTLED)
    submitting = esme.begin()
    await until(lambda: 1 in esme.clock.waiting)
    esme.clock.move_to(esme.clock.now() + timedelta(days=1))
    await turns(50)
    assert len(esme.smsc.submits) == 4
    await esme.pass_pause()
    assert (await submitting).outcome is Outcome.PENDING


async def test_an_answered_enquire_link_keeps_the_bind() -> None:
    async with esme_at_fake(enquire_link_s=40) as esme:
        for number in range(3):
            await until(lambda: 40 in esme.clock.waiting)
            esme.clock.advance(40)
            await until(lambda n=number: esme.smsc.came.count(ENQUIRE_LINK) > n)  # type: ignore[misc]

        assert (await esme.send()).outcome is Outcome.PENDING

    assert len(esme.smsc.binds) == 1


async def test_an_unanswered_enquire_link_causes_a_new_bind() -> None:
    async with esme_at_fake(enquire_link_s=40) as esme:
        esme.smsc.is_silent = True
        submitting = await esme.begin_unanswered()
        await until(lambda: 40 in esme.clock.waiting)
        esme.clock.advance(TIMEOUT_S)
        assert (await submitting).outcome is Outcome.UNKNOWN
        esme.clock.advance(40)
        await until(lambda: ENQUIRE_LINK in esme.smsc.came and esme.clock.limits)
        esme.clock.advance(TIMEOUT_S)
        await until(lambda: len(esme.smsc.binds) == 2)

        assert "enquire_link" in esme.adapter._link.problem


async def test_smsc_requests_are_answered_and_unexpected_answers_ignored(esme: Esme) -> None:
    esme.smsc.send(written(0x80000004, 0, 999, b"1\0"))
    esme.smsc.ask(ENQUIRE_LINK)
    esme.smsc.ask(0x0003)  # query_sm, which only an SMSC answers
    await until(lambda: len(esme.smsc.came) >= 3)

    assert esme.smsc.came[1:3] == [ENQUIRE_LINK | 0x80000000, 0x80000000]
    assert (await esme.send()).outcome is Outcome.PENDING
    assert len(esme.smsc.binds) == 1


async def test_an_unbind_of_the_smsc_is_answered_and_causes_a_new_bind(esme: Esme) -> None:
    esme.smsc.ask(UNBIND)
    await until(lambda: UNBIND | 0x80000000 in esme.smsc.came)
    await esme.pass_pause()
    await esme.bound()

    assert len(esme.smsc.binds) == 2


@pytest.mark.parametrize(
    "octets", [written(0, 0, 1)[:4].replace(b"\x10", b"\x03") + b"\0" * 12, b"\xff" * 16]
)
async def test_octets_that_are_not_a_pdu_end_the_connection(esme: Esme, octets: bytes) -> None:
    esme.smsc.send(octets)
    await esme.pass_pause()
    await esme.bound()

    assert (await esme.send()).outcome is Outcome.PENDING

    assert len(esme.smsc.binds) == 2


async def test_the_certificate_of_the_smsc_is_checked_with_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, theirs = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(theirs)
    async with FakeSmsc().running(theirs) as smsc:
        async with esme_at(smsc, tls=True) as esme:
            unknown = await esme.send()
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        async with esme_at(smsc, tls=True) as esme:
            known = await esme.send()

    assert (unknown.outcome, known.outcome) == (Outcome.NOT_SENT, Outcome.PENDING)
    assert "certificate verify failed" in unknown.reason


async def test_a_connection_that_takes_too_long_is_reported_with_its_limit() -> None:
    # An SMSC without TLS takes the first octets for a PDU, and waits for its rest.
    async with FakeSmsc().running() as smsc, esme_at(smsc, tls=True) as esme:
        sent = esme.begin()
        await until(lambda: smsc.came)
        esme.clock.advance(TIMEOUT_S)

        result = await sent

    assert result.outcome is Outcome.NOT_SENT
    assert result.reason == f"no bind at 127.0.0.1:{smsc.port}: no TLS connection within 10 s"
