"""The settings that rule each other out, and those that make a start unsafe."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sandbox_sim.adapters.stores.postgres.postgres_url import is_postgres
from sandbox_sim.adapters.tls import TlsError, from_files
from sandbox_sim.config_networks import problems_of_networks

if TYPE_CHECKING:
    from sandbox_sim.config import Settings


def problems_of(settings: "Settings") -> Iterator[str]:
    """A line `name: problem` for each setting that cannot be together with the others."""
    keys = [entry.client_key for entry in settings.credentials]
    if len(set(keys)) < len(keys):
        yield "credentials: each client_key must be there once only"
    if not settings.loopback and settings.token is None:
        yield (
            f"control_token: must be set because host {settings.host} is not loopback, "
            "so others could steer the sandbox"
        )
    if settings.workers > 1 and not is_postgres(settings.store):
        needed = "processes need a store that they can share, postgresql://USER@HOST/DATABASE"
        yield f"workers: {settings.workers} {needed}; store is {settings.store}"
    yield from _problems_of_tls(settings)
    yield from problems_of_networks(settings)


def _problems_of_tls(settings: "Settings") -> Iterator[str]:
    if settings.tls and (settings.cert or settings.key):
        yield "tls: makes a certificate of its own; give either tls, or cert and key"
    elif settings.cert and settings.key:
        try:
            from_files(settings.cert, settings.key)
        except TlsError as error:
            yield f"cert: {error}"
    elif settings.cert:
        yield "cert: needs key too, the file with its private key"
    elif settings.key:
        yield "key: needs cert too, the file with its certificate"
