"""`serve` on a SQLite file: it is killed and started again, or it refuses the file."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from tests.cli.processes import SOON, end, running
from tests.kit.requests import collection
from tests.production.servers import Answer, Other, Server, other


class Shop:
    """A merchant's server. It records callbacks, and answers them only while `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = Event()
        self.go_on.set()
        self.server: Other

    @property
    def url(self) -> str:
        return f"{self.server.url}/callback"

    def next_payment(self) -> str:
        """Wait for the next callback; returns its payment."""
        return str(self.server.next()[1]["trans_ref"])

    def answer(self, _path: str, _body: object) -> Answer:
        self.go_on.wait(SOON)
        return 200, {}


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()
    with other(shop.answer) as shop.server:
        yield shop
        shop.go_on.set()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite3"


@contextmanager
def serving(path: Path, **settings: object) -> Iterator[Server]:
    """Run a server on this file."""
    flags = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    with running("--json", "serve", "--port", 0, "--store", f"sqlite:{path}", *flags) as process:
        yield Server(process)


def collect(server: Server, shop: Shop, transaction_id: str = "T1") -> int:
    """Send a collection; returns the HTTP status of the answer."""
    body = collection(transaction_id, callback_url=shop.url)
    return server.post("/make_payment", mode="S", **body)[0]


def status(server: Server, transaction_id: str = "T1") -> str:
    _, body = server.post("/get_transaction_status", mode="S", transaction_id=transaction_id)
    return str(body["response_data"]["status"])


def test_a_server_whose_wal_is_removed_refuses_payments_and_saves_the_earlier_ones(
    path: Path, shop: Shop
) -> None:
    ids = [f"T{number}" for number in range(20)]
    with serving(path) as server:
        assert [collect(server, shop, each) for each in ids] == [202] * 20
        path.with_name(f"{path.name}-wal").unlink()
        assert [collect(server, shop, "refused") for _ in ids] == [500] * 20
        assert server.ask("GET", "/_sandbox/readyz")[0] == 503
        assert end(server.process, signal.SIGTERM)[0] == 0

    with serving(path) as server:
        for each in ids:
            assert status(server, each) in {"000", "002"}
        assert end(server.process, signal.SIGTERM)[0] == 0


def test_a_frozen_clock_is_frozen_at_the_same_moment_after_a_kill(path: Path) -> None:
    with serving(path) as server:
        _, frozen = server.ask("POST", "/_sandbox/clock/freeze")
        assert end(server.process, signal.SIGKILL)[0] == -signal.SIGKILL

    with serving(path) as server:
        assert server.ask("GET", "/_sandbox/clock") == (200, frozen)
        assert server.ask("POST", "/_sandbox/clock/resume")[1]["frozen"] is False


class TestCtrlC:
    @pytest.mark.spec("service.8")
    def test_the_first_ctrl_c_names_the_open_callbacks_and_the_second_stops_at_once(
        self, path: Path, shop: Shop
    ) -> None:
        shop.go_on.clear()
        with serving(path, settle_delay_ms=0, log_level="warning") as server:
            collect(server, shop)
            assert shop.next_payment() == "T1"

            server.process.send_signal(signal.SIGINT)
            assert server.process.stderr is not None
            assert server.process.stderr.readline() == (
                f"stopping: waiting for the callbacks to {shop.server.url}, at most 4.5 s for "
                "each; Ctrl-C again stops at once\n"
            )
            code, _, _ = end(server.process, signal.SIGINT)

            assert code == 130
            # A store that was closed properly has no log.
            assert path.with_name(f"{path.name}-wal").exists()
            shop.go_on.set()

        with serving(path) as server:
            assert status(server)
            assert shop.next_payment() == "T1"

    def test_a_stop_without_open_callbacks_prints_nothing(self, path: Path) -> None:
        with serving(path) as server:
            assert server.ask("GET", "/_sandbox/livez")[0] == 200

            assert end(server.process, signal.SIGINT) == (130, "", "")
