"""`upstream` records payments at a sandbox gateway, and replays them without a gateway."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sandbox_sim.adapters.clock_and_ids import VirtualClock
from sandbox_sim.networks.upstream.adapter import UpstreamNetwork, upstream
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import NetworkConfigError, SubmitRequest
from sandbox_sim.records.callbacks import SIGNATURE_HEADER
from sandbox_sim.records.exchanges import RawNotification
from sandbox_sim.records.reports import Outcome
from tests.conftest import Sandbox
from tests.docs.pages import Page
from tests.networks.fakes import KeptEvents, environment, query, request
from tests.records.samples import NOON

pytestmark = pytest.mark.decision("D39")

ACCOUNT = {"client_key": "sandbox_key", "secret_key": "sandbox_secret"}


class Opened:
    """An open adapter with its clock and the events that it reported."""

    def __init__(self, settings: dict[str, Any]) -> None:
        surroundings = environment()
        network = upstream(settings, surroundings)
        assert isinstance(network, UpstreamNetwork)
        assert isinstance(surroundings.clock, VirtualClock)
        self.network, self.clock, self.events = network, surroundings.clock, KeptEvents()

    async def advance(self) -> None:
        """Move the clock by one second, and let the adapter send what is due."""
        self.clock.move_to(self.clock.now() + timedelta(seconds=1))
        for _ in range(10):
            await self.clock.pause(0)


@asynccontextmanager
async def opened(**settings: Any) -> AsyncIterator[Opened]:
    found = Opened(settings)
    await found.network.open(found.events)
    yield found
    await found.network.close()


async def record(sandbox: Sandbox, folder: Path, asked: SubmitRequest) -> None:
    """Record a payment with two status queries and its callback."""
    async with opened(base_url=sandbox.url, record=str(folder), **ACCOUNT) as upstream_:
        await upstream_.network.submit(asked)
        await upstream_.network.status(query(asked))
        await sandbox.advance(seconds=1)
        await upstream_.advance()
        await upstream_.network.status(query(asked))
        for message in await sandbox.inbox(asked.attempt_id):
            signature = {SIGNATURE_HEADER.lower(): message["headers"][SIGNATURE_HEADER.lower()]}
            body = message["body"].encode()
            raw = RawNotification("testnet", "POST", "A1", "", signature, body, NOON)
            # A callback that comes twice is recorded once.
            upstream_.network.parse(raw)
            upstream_.network.parse(raw)


def cassettes_in(folder: Path) -> dict[str, str]:
    """The texts of the cassette files, sorted by file name."""
    return {file.name: file.read_text("utf-8") for file in sorted(folder.iterdir())}


def paid(sandbox: Sandbox, **fields: Any) -> SubmitRequest:
    """A payment request whose callback goes to an inbox of the sandbox."""
    values = {"party": "0244123450", "nickname": "Ama Mensah", **fields}
    return request(notification_url=sandbox.inbox_url("A1"), **values)


async def test_a_payment_is_one_readable_file_without_secrets(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    await record(sandbox, tmp_path, paid(sandbox))

    ((name, text),) = cassettes_in(tmp_path).items()
    cassette = json.loads(text)
    assert name == "0001-payment.json"
    for seen in ("sandbox_secret", "0244123450", "233244123450", "Ama Mensah", sandbox.url):
        assert seen not in text
    assert cassette["request"]["customer_number"] == "0244000010"
    assert cassette["answer"]["status"] == 202
    assert [each["body"]["response_data"]["status"] for each in cassette["statuses"]] == [
        *("002", "000")
    ]
    (callback,) = cassette["callbacks"]
    assert (callback["after_ms"], callback["body"]["customer_number"]) == (1000, "233244000010")
    ids = {callback["body"]["trans_id"]} | {
        each["body"]["response_data"]["network_transaction_id"] for each in cassette["statuses"]
    }
    assert len(ids) == 1


async def test_a_recording_that_fails_is_logged_and_changes_nothing(
    sandbox: Sandbox, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "recorded"
    async with opened(base_url=sandbox.url, record=str(folder), **ACCOUNT) as each:
        folder.rmdir()
        taken = await each.network.submit(paid(sandbox))
        asked = await each.network.status(query(paid(sandbox)))
        folder.write_text("a file in place of the folder")
        again = await each.network.submit(paid(sandbox, reference="R2", transaction_id="R2"))

    assert (taken.outcome, asked.outcome, again.outcome) == (Outcome.PENDING,) * 3
    ours = (each for each in caplog.records if each.name == "sandbox_sim.networks")
    lines = [each.getMessage() for each in ours]
    assert lines == [
        f"an exchange is not recorded in {folder}: No such file or directory",
        f"an exchange is not recorded in {folder}: No such file or directory",
        f"an exchange is not recorded in {folder}: Not a directory",
    ]


async def test_a_bad_callback_in_one_cassette_does_not_end_the_others(
    sandbox: Sandbox, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await record(sandbox, tmp_path, paid(sandbox))
    ((name, text),) = cassettes_in(tmp_path).items()
    file, cassette = tmp_path / name, json.loads(text)
    bad = {"after_ms": 10, "body": "no JSON"}
    file.write_text(json.dumps({**cassette, "callbacks": [bad, *cassette["callbacks"]]}), "utf-8")

    async with opened(replay=str(tmp_path)) as replay:
        await replay.network.submit(paid(sandbox))
        await replay.advance()

    (notification,) = replay.events.notifications
    assert notification.outcome is Outcome.SUCCEEDED
    (line,) = (each.getMessage() for each in caplog.records if each.levelname == "ERROR")
    assert line.startswith("a callback of 0001-payment.json is not replayed: the callback is not")


async def test_a_recorded_payment_is_replayed_without_the_network(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    await record(sandbox, tmp_path, paid(sandbox))
    again = request(
        attempt_id="A2", reference="R2", transaction_id="R2", party="0244777770", nickname="Kofi"
    )

    async with opened(replay=str(tmp_path)) as replay:
        taken = await replay.network.submit(again)
        pending = await replay.network.status(query(again))
        assert replay.events.notifications == []
        await replay.advance()
        decided = await replay.network.status(query(again))
        (notification,) = replay.events.notifications
        # A callback by HTTP proves nothing in a replay.
        raw = RawNotification("testnet", "POST", "A1", "", {}, b"{}", NOON)
        assert not replay.network.verify(raw)

    assert (taken.outcome, pending.outcome) == (Outcome.PENDING, Outcome.PENDING)
    assert decided.outcome is notification.outcome is Outcome.SUCCEEDED
    assert decided.echo.reference == notification.reference == notification.echo.reference == "R2"
    assert (notification.attempt_id, notification.echo.amount) == ("A2", Decimal("10.50"))
    assert [each.purpose for each in replay.events.exchanges] == ["submit", "status", "status"]


@pytest.mark.parametrize(
    "other",
    [
        {"amount": Decimal("10.51")},
        {"nw": "VOD"},
        {"party": "0244123451"},
        {"party": "0200123450"},
        {"operation": Operation.PAYOUT},
        {"operation": Operation.AIRTIME},
    ],
    ids=repr,
)
async def test_a_request_that_no_cassette_has_is_not_sent(
    sandbox: Sandbox, tmp_path: Path, other: dict[str, Any]
) -> None:
    await record(sandbox, tmp_path, paid(sandbox))

    async with opened(replay=str(tmp_path)) as replay:
        result = await replay.network.submit(paid(sandbox, **other))

    assert (result.outcome, result.network_fault) == (Outcome.NOT_SENT, False)
    assert result.reason.startswith(f"no cassette in {tmp_path} has POST /")
    assert "0244123450" not in result.reason


async def test_equal_requests_are_answered_in_the_order_of_the_recording(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    await record(sandbox, tmp_path, paid(sandbox, party="0244123459", reference="R1"))
    (text,) = cassettes_in(tmp_path).values()
    (tmp_path / "0002-payment.json").write_text(text.replace('"015"', '"402"'), "utf-8")

    async with opened(replay=str(tmp_path)) as replay:
        codes = [
            (await replay.network.submit(request(party="0244999999", reference=f"R{n}"))).code
            for n in range(3)
        ]

    assert codes == ["015", "402", "402"]


async def test_a_lost_answer_is_lost_again_in_the_replay(tmp_path: Path) -> None:
    async with opened(base_url="http://127.0.0.1:9", record=str(tmp_path), **ACCOUNT) as away:
        first = await away.network.submit(request())
    async with opened(replay=str(tmp_path)) as replay:
        second = await replay.network.submit(request())
        missing = await replay.network.status(query())
        health = await replay.network.health()

    assert first.outcome is second.outcome is Outcome.NOT_SENT
    assert second.network_fault
    assert (missing.outcome, missing.found) == (Outcome.UNKNOWN, True)
    assert health == (True, f"replays 1 cassettes of {tmp_path}")


async def test_a_second_recording_goes_on_in_the_same_folder(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    await record(sandbox, tmp_path, paid(sandbox))
    await record(sandbox, tmp_path, paid(sandbox, party="0244888880", reference="R2"))

    recorded = {name: json.loads(text) for name, text in cassettes_in(tmp_path).items()}
    assert {name: each["request"]["customer_number"] for name, each in recorded.items()} == {
        "0001-payment.json": "0244000010",
        "0002-payment.json": "0244000020",
    }


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "base_url, client_key, secret_key: must be set unless replay is"),
        ({"replay": "nowhere"}, "replay: nowhere has no cassette"),
        ({"replay": "a", "record": "b"}, "record and replay: only one of them can be set"),
        ({"base_url": "http://127.0.0.1:9", **ACCOUNT, "record": "/dev/null/x"}, "record: "),
    ],
)
def test_settings_that_cannot_work_are_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(NetworkConfigError, match=says):
        upstream(settings, environment())


async def test_the_cassette_of_the_docs_page_is_replayed(tmp_path: Path) -> None:
    (text,) = Page("docs/recording.md").blocks("json")
    (tmp_path / "0001-payment.json").write_text(text, "utf-8")

    async with opened(replay=str(tmp_path)) as replay:
        taken = await replay.network.submit(request(party="0244123450"))
        decided = await replay.network.status(query())

    assert (taken.outcome, decided.outcome) == (Outcome.PENDING, Outcome.SUCCEEDED)
