"""Keeps one bound connection to an SMSC: binds again when it has ended, each time later."""

import asyncio
import logging
import ssl
from typing import Final

from sandbox_sim.adapters.networks.smpp import pdus, statuses
from sandbox_sim.adapters.networks.smpp.connection import NoAnswer, NotWritten, SmscConnection
from sandbox_sim.adapters.networks.smpp.deliveries import Deliveries
from sandbox_sim.adapters.networks.smpp.pauses import Pauses
from sandbox_sim.adapters.networks.smpp.settings import SmppSettings
from sandbox_sim.gateway.ports import Clock, Ids

# Pauses are longer by up to this share, so that several servers do not all bind at once.
JITTER: Final = 0.1
# How long, in real time, the end of TLS may take.
TLS_END_S: Final = 1.0
NOT_OPEN: Final = "the network is not open"

log = logging.getLogger("sandbox_sim.networks")


class BindRefused(Exception):
    """The SMSC does not take our account; the text says why."""


class Link:
    """The bind of one network.

    name: of the network, for the log.
    within_s: how long a connection, a bind or an answer may take, in real time.
    problem: why there is no bind; is_transport: whether that is because of the connection.
    """

    def __init__(
        self,
        name: str,
        settings: SmppSettings,
        clock: Clock,
        ids: Ids,
        deliveries: Deliveries,
        within_s: float,
    ) -> None:
        self._name = name
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._deliveries = deliveries
        self._within_s = within_s
        self._connection: SmscConnection | None = None
        self._bound, self._lost, self._tried = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._tried.set()
        self._outlives_at = 0.0
        self._running: asyncio.Task[None] | None = None
        self.problem, self.is_transport = NOT_OPEN, False

    def open(self) -> None:
        """Begin to bind; does not wait for it."""
        self._tried.clear()
        self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Unbind, and bind no more."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        self.problem, self.is_transport = NOT_OPEN, False
        self._tried.set()

    async def bound(self) -> SmscConnection | None:
        """The bound connection, after the bind that is under way; None where it failed.

        None at once in a pause between two binds.
        """
        await self._tried.wait()
        return self._connection

    async def bound_within(self, seconds: float) -> SmscConnection | None:
        """The bound connection, waiting for it for so much real time; None where none came."""
        try:
            async with self._clock.timeout(seconds):
                await self._bound.wait()
        except TimeoutError:
            return None
        return self._connection

    async def _run(self) -> None:
        """Bind again and again. A bind that lasted longer than the pause is followed at once."""
        failures = 0
        while True:
            pause = self._pause(failures)
            self._outlives_at = self._clock.monotonic() + pause
            await self._bind()
            if self._connection is not None:
                await self._lost.wait()
            if not self._tried.is_set():
                failures = 0
                continue
            failures += 1
            await Pauses(self._clock).wait(pause)
            self._tried.clear()

    def _pause(self, failures: int) -> float:
        """Seconds until the next bind, after so many that failed before the last one."""
        longest = self._settings.reconnect_at_most_s
        pause = min(self._settings.reconnect_after_s * 2.0 ** min(failures, 30), longest)
        return pause * (1 + JITTER * self._ids.draw())

    async def _bind(self) -> None:
        """Bind, or say why not in `problem`."""
        settings = self._settings
        try:
            connection = await self._connected()
        except BindRefused as refusal:
            self.problem, self.is_transport = str(refusal), False
        except (NoAnswer, NotWritten, OSError, ValueError) as error:
            why = str(error) or type(error).__name__
            self.problem = f"no bind at {settings.host}:{settings.port}: {why}"
            self.is_transport = True
        else:
            log.info("network %s is bound as %s", self._name, settings.system_id)
            connection.on_end = self._ended
            connection.enquire_each(settings.enquire_link_s)
            self._connection = connection
            self._lost.clear()
            self._bound.set()
        if self._connection is None:
            log.warning("network %s: %s", self._name, self.problem)
        self._tried.set()

    async def _connected(self) -> SmscConnection:
        """A connection on which the SMSC has taken our bind."""
        settings, tls = self._settings, self._settings.tls
        async with self._clock.timeout(self._within_s):
            streams = await asyncio.open_connection(
                settings.host,
                settings.port,
                ssl=ssl.create_default_context() if tls else None,
                ssl_shutdown_timeout=TLS_END_S if tls else None,
            )
        connection = SmscConnection(*streams, self._clock, self._deliveries, self._within_s)
        try:
            await self._ask_to_bind(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _ask_to_bind(self, connection: SmscConnection) -> None:
        settings = self._settings
        account = settings.system_id, settings.password.get_secret_value(), settings.system_type
        answer = await connection.ask(lambda number: pdus.bind_transceiver(number, *account))
        if (answer.command, answer.status) != (pdus.BOUND, statuses.OK):
            raise BindRefused(f"the SMSC refuses the bind: {statuses.name_of(answer.status)}")
        if connection.has_ended:
            raise NoAnswer(connection.problem)

    def _ended(self) -> None:
        """The connection has ended: until the next bind is tried, there is none."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self.problem, self.is_transport = connection.problem, True
            log.warning("network %s: %s", self._name, self.problem)
        if self._clock.monotonic() >= self._outlives_at:
            self._tried.clear()  # the next bind follows at once
        self._bound.clear()
        self._lost.set()
