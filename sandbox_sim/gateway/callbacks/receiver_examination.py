"""Examines a receiver as the control API asks for it: as this gateway sends its callbacks.

The samples go where callbacks may go (the setting `callback_hosts`), by the same rewrites, with the
same additional headers, signed with the key of a client of mode S. Source: D27, D29, D30.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final, NamedTuple

from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.callbacks.callbacks import ReceiverResponse, choose_profile
from sandbox_sim.domain.callbacks.receiver_checks import Finding
from sandbox_sim.domain.callbacks.rewrites import CallbackRoutes
from sandbox_sim.domain.clients import Client, ServiceMode
from sandbox_sim.gateway.callbacks.doctor import Doctor, Receiver
from sandbox_sim.gateway.payments.settlement import CallbackSettings
from sandbox_sim.gateway.ports import CallbackSender, Clock, Ids, Store

# Seconds of real time for all samples together.
LONGEST_S: Final = 120.0


class Examined(NamedTuple):
    """A receiver, whose key signed the samples, and the findings.

    owner: a client key; None where callbacks are not signed.
    complete: whether all checks were made before the time was over.
    """

    receiver: Receiver
    owner: str | None
    findings: Sequence[Finding]
    complete: bool


class Addressee(NamedTuple):
    """The address of a receiver with its secrets, and the service whose callbacks it gets."""

    url: str
    service_id: int


class ReceiverExamination:
    """Sends the samples of the doctor. timeout: real time for one callback."""

    def __init__(
        self,
        store: Store,
        sender: CallbackSender,
        clock: Clock,
        ids: Ids,
        clients: Iterable[Client],
        callback_settings: CallbackSettings,
        routes: CallbackRoutes,
        timeout: timedelta,
    ) -> None:
        self._store = store
        self._doctor = Doctor(_RoutedSender(sender, routes), clock, ids)
        self._clock = clock
        self._clients = [client for client in clients if client.mode is ServiceMode.SANDBOX]
        self._settings = callback_settings
        self._timeout = timeout

    async def receiver_of(self, callback_id: str) -> Addressee | None:
        """Where a callback goes, and its service; None where there is no such callback."""
        callback = await self._store.run(lambda unit: unit.callback(None, callback_id))
        return None if callback is None else Addressee(callback.address, callback.service_id)

    async def examine(
        self, url: str, service_id: int | None, profiles: Sequence[Profile]
    ) -> Examined | None:
        """Examine a receiver; None where no client of mode S may use the service.

        service_id: whose key signs the samples; None for that of the first client. profiles: the
        only ones to send; if empty, all are sent, and the one of the configuration is judged.
        """
        client = next((each for each in self._clients if _fits(each, service_id)), None)
        if client is None:
            return None
        default = Profile(client.callback_profile or self._settings.profile)
        configured = choose_profile(url, self._settings.profiles, default)
        key = client.secret_key if self._settings.signed else None
        receiver = Receiver.configured_for(url, key, configured, self._timeout, profiles)
        findings: list[Finding] = []
        complete = False
        with suppress(TimeoutError):
            async with self._clock.timeout(LONGEST_S):
                async for finding in self._doctor.examine(receiver):
                    findings.append(finding)  # noqa: PERF401 -- those before the end are kept
                complete = True
        owner = client.client_key if self._settings.signed else None
        return Examined(receiver, owner, findings, complete)


def _fits(client: Client, service_id: int | None) -> bool:
    return service_id is None or client.may_use(service_id)


class _RoutedSender:
    """Sends samples by the settings `callback_rewrites` and `callback_headers`."""

    def __init__(self, sender: CallbackSender, routes: CallbackRoutes) -> None:
        self._sender = sender
        self._routes = routes

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeout: timedelta,
        on_status: Callable[[], None] = lambda: None,
    ) -> ReceiverResponse:
        """Send one sample to its target."""
        target = self._routes.target(url)
        merged = {**self._routes.headers_to(target), **headers}
        return await self._sender.send(target, merged, body, timeout, on_status)
