"""The TLS of the server, by its settings. Source: auth.5, D2."""

import ssl

from sandbox_sim.adapters import tls
from sandbox_sim.adapters.clock import SystemClock
from sandbox_sim.config import Settings, authority_folder
from sandbox_sim.domain.hosts import LISTENS_ON_ALL


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """The context of the server; None where it speaks plain HTTP.

    Raises `TlsError` if the certificate cannot be read or made.
    """
    if settings.cert and settings.key:
        return tls.from_files(settings.cert, settings.key)
    if not settings.tls:
        return None
    hosts = [] if settings.host in LISTENS_ON_ALL else [settings.host]
    names = [*hosts, *(each.name for each in settings.listed_hosts())]
    return tls.for_development(authority_folder(), names, SystemClock().now())
