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
    """A merchant's server. It records callbacks, and answers none while `go_on` is not set."""

    def __init__(self) -> None:
        self.go_on = Event()
        self.go_on.set()
        self.server: Other

    @property
    def url(self) -> str:
        return f"{self.server.url}/callback"

    def called_for(self) -> str:
        """The payment of the next callback."""
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


def words(path: Path, **settings: object) -> tuple[object, ...]:
    """The arguments that start a server on this file."""
    flags = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return ("--json", "serve", "--port", 0, "--store", f"sqlite:{path}", *flags)


@contextmanager
def serving(path: Path, **settings: object) -> Iterator[Server]:
    with running(*words(path, **settings)) as process:
        yield Server(process)


def collect(server: Server, shop: Shop, transaction_id: str = "T1") -> int:
    """Send a collection; returns the HTTP status of the answer."""
    body = collection(transaction_id, callback_url=shop.url)
    return server.post("/make_payment", mode="S", **body)[0]


def status(server: Server, transaction_id: str = "T1") -> str:
    _, body = server.post("/get_transaction_status", mode="S", transaction_id=transaction_id)
    return str(body["response_data"]["status"])


def kill(server: Server) -> None:
    """Kill a server: no handler runs, and nothing is flushed."""
    server.process.send_signal(signal.SIGKILL)
    assert server.process.wait(SOON) == -signal.SIGKILL


def stop(server: Server) -> str:
    """End a server as a service manager does; returns what it wrote to stderr."""
    code, _, err = end(server.process, signal.SIGTERM)
    assert code == 0
    return err


def test_after_its_log_was_removed_it_acknowledges_nothing_and_a_stop_saves_the_rest(
    path: Path, shop: Shop
) -> None:
    ids = [f"T{number}" for number in range(20)]
    with serving(path) as server:
        assert [collect(server, shop, each) for each in ids] == [202] * 20
        path.with_name(f"{path.name}-wal").unlink()
        assert [collect(server, shop, "refused") for _ in ids] == [500] * 20
        assert server.ask("GET", "/_sandbox/readyz")[0] == 503
        stop(server)

    with serving(path) as server:
        for each in ids:
            assert status(server, each) in {"000", "002"}
        stop(server)


def test_a_frozen_clock_is_frozen_at_the_same_moment_after_a_kill(path: Path) -> None:
    with serving(path) as server:
        _, frozen = server.ask("POST", "/_sandbox/clock/freeze")
        kill(server)

    with serving(path) as server:
        assert server.ask("GET", "/_sandbox/clock") == (200, frozen)
        assert server.ask("POST", "/_sandbox/clock/resume")[1]["frozen"] is False


class TestCtrlC:
    @pytest.mark.spec("service.8")
    def test_the_first_says_what_it_waits_for_and_the_second_ends_it_at_once(
        self, path: Path, shop: Shop
    ) -> None:
        shop.go_on.clear()
        with serving(path, settle_delay_ms=0, log_level="warning") as server:
            collect(server, shop)
            assert shop.called_for() == "T1"

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
            assert shop.called_for() == "T1"

    def test_it_says_nothing_where_nothing_is_waited_for(self, path: Path) -> None:
        with serving(path) as server:
            assert server.ask("GET", "/_sandbox/livez")[0] == 200

            assert end(server.process, signal.SIGINT) == (130, "", "")
