"""The gateway of a run, on a fixed port, with a file for its state so that it can restart."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sandbox_sim.adapters.ids import RandomIds
from sandbox_sim.certify.configuration import Configuration
from sandbox_sim.certify.files import FileError
from sandbox_sim.settings.loading import settings_from
from sandbox_sim.settings.schema import Settings
from sandbox_sim.testing import SandboxGateway
from sandbox_sim.values.hosts import client_host

# Clients get ports above these for their connections.
_FIRST_PORT: Final = 20_000
_PORTS: Final = 10_000


class CertifyBench:
    """A gateway, and the application under test that uses it."""

    def __init__(self, configuration: Configuration, folder: Path) -> None:
        """Raises `ConfigError` if the settings of the gateway are wrong."""
        values = dict(configuration.gateway_settings(folder / "certify.db"))
        values["port"] = values["port"] or _free_port()  # a restart must find it again
        self.configuration = configuration
        self.settings: Settings = settings_from({**values, "quiet": True}, "certify.toml")
        self.gateway = SandboxGateway(**values)
        host = client_host(self.settings.host, self.settings.port)
        self.gateway_url = f"{self.settings.scheme}://{host}"
        self._running = ExitStack()

    def start(self) -> None:
        """Start the gateway. Raises `OSError` where the port is taken."""
        self._running.enter_context(self.gateway)

    def stop(self) -> None:
        """Stop the gateway; what it knows stays in its file."""
        self._running.close()


def _free_port() -> int:
    """A port that no connection of a client takes while the gateway restarts."""
    while True:
        port = _FIRST_PORT + int(RandomIds().record_id(), 16) % _PORTS
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@contextmanager
def open_bench(configuration: Configuration) -> Iterator[CertifyBench]:
    """A bench whose gateway runs. Raises `ConfigError`, and `FileError` where the port is taken."""
    with TemporaryDirectory(prefix="sandbox-sim-certify-") as folder:
        bench = CertifyBench(configuration, Path(folder))
        try:
            bench.start()
        except OSError as error:
            raise FileError(
                f"gateway.port: the gateway cannot start: {error.strerror or error}; "
                "end what listens there, or choose another port"
            ) from None
        try:
            yield bench
        finally:
            bench.stop()
