"""The gateway of a run or of one case, on a port that stays the same when it restarts."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from sandbox_sim.adapters.clock_and_ids import RandomIds
from sandbox_sim.certify.configuration import CertifyTerms, Configuration
from sandbox_sim.certify.files import FileError
from sandbox_sim.settings.loading import settings_from
from sandbox_sim.settings.schema import Settings
from sandbox_sim.values.hosts import client_host

if TYPE_CHECKING:
    from sandbox_sim.testing import SandboxGateway

# Makes a gateway; the second argument is the gateway that passes requests on to it, if any.
MakeGateway = Callable[[Settings, "SandboxGateway | None"], "SandboxGateway"]
# The system gives clients higher ports for their connections.
_FIRST_PORT: Final = 20_000
_PORTS: Final = 10_000
# After an order the cases move the clock by this time before they expect it to be paid.
_LONGEST_DELAY_MS: Final = 2000


class CertifyBench:
    """The gateway that the application under test uses, and the terms of the run."""

    def __init__(self, terms: CertifyTerms, gateway: "SandboxGateway", url: str) -> None:
        """url: the base URL, also while the gateway does not run.

        Raises `FileError` for a gateway that settles payments earlier or later than the cases need.
        """
        self.terms = terms
        self.settings = gateway.settings
        delay_ms = self.settings.settle_delay_ms
        if not 0 < delay_ms <= _LONGEST_DELAY_MS:
            raise FileError(
                f"settle_delay_ms of the gateway must be from 1 to {_LONGEST_DELAY_MS} for "
                f"certify, not {delay_ms}: the cases look at an order before its payment is "
                f"settled, and {_LONGEST_DELAY_MS // 1000} s later"
            )
        self.gateway = gateway
        self.gateway_url = url
        self._running = ExitStack()

    @property
    def can_restart(self) -> bool:
        """Whether the gateway has its records again after a restart."""
        return not self.settings.store.startswith("memory")

    def start(self) -> None:
        """Start the gateway. Raises `OSError` if the port is taken."""
        self._running.enter_context(self.gateway)

    def stop(self) -> None:
        """Stop the gateway; its records stay in its file."""
        self._running.close()


@contextmanager
def free_port() -> Iterator[int]:
    """A free port for a gateway that restarts.

    It is below the ports of client connections. Its UDP port stays bound, so that other runs do not
    choose it.
    """
    with ExitStack() as stack:
        while True:
            udp = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            address = ("127.0.0.1", _FIRST_PORT + int(RandomIds().record_id(), 16) % _PORTS)
            with suppress(OSError):
                udp.bind(address)
                socket.create_server(address).close()
                break
        yield address[1]


@contextmanager
def open_bench(
    configuration: Configuration,
    make: MakeGateway,
    *,
    restarts: bool = True,
    cases: int = 0,
    port: int | None = None,
    front: CertifyBench | None = None,
) -> Iterator[CertifyBench]:
    """Start a gateway for cases. Raises `ConfigError`, and `FileError` if the port is taken.

    make: makes the gateway. restarts: whether a case restarts it; if so, its state is in a file,
    otherwise in memory, which is faster. cases: how many may run behind it. port: replaces the port
    of certify.toml; 0 is a free one. front: the bench whose gateway passes requests on to this one.
    """
    with ExitStack() as stack:
        store = "memory:"
        if restarts:
            folder = stack.enter_context(TemporaryDirectory(prefix="sandbox-sim-certify-"))
            store = f"sqlite:{folder}/certify.db"
        values = dict(configuration.gateway_settings(store, cases))
        if port is not None:
            values["port"] = port
        values["port"] = values["port"] or stack.enter_context(free_port())
        settings = settings_from({**values, "quiet": True}, f"[gateway] of {configuration.file}")
        own_url = f"{settings.scheme}://{client_host(settings.host, settings.port)}"
        gateway = make(settings, front.gateway if front else None)
        bench = CertifyBench(configuration, gateway, front.gateway_url if front else own_url)
        try:
            bench.start()
        except OSError as error:
            place, why = f"{configuration.file}: gateway.port", error.strerror or error
            raise FileError(
                f"{place}: the gateway cannot start: {why}; "
                "end what listens there, or choose another port"
            ) from None
        stack.callback(bench.stop)
        yield bench
