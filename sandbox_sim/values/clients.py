"""Clients and their credentials. Source: auth.1, auth.3, D2."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


def basic_credentials(user: str, secret: str) -> str:
    """The part of the header `Authorization` after `Basic`, in UTF-8 (RFC 7617).

    Bytes of an argument of the command line that are not UTF-8 are sent as they were typed.
    """
    pair = f"{user}:{secret}".encode(errors="surrogateescape")
    return base64.b64encode(pair).decode()


class ServiceMode(StrEnum):
    """What processes the requests of a credential set: the sandbox rules or real networks."""

    SANDBOX = "S"
    PRODUCTION = "P"


@dataclass(frozen=True, slots=True)
class Client:
    """One credential set; empty `service_ids` means that it may use any service.

    served: whether the server serves its mode; one of mode P is refused without production (D32).
    """

    client_key: str
    secret_key: str = field(repr=False)
    mode: ServiceMode = ServiceMode.SANDBOX
    service_ids: frozenset[int] = frozenset()
    callback_profile: str | None = None
    served: bool = True

    def may_use(self, service_id: int) -> bool:
        """Whether the client may use this service."""
        return not self.service_ids or service_id in self.service_ids


# The client that exists where no credentials are configured.
SANDBOX_CLIENT: Final = Client("sandbox_key", "sandbox_secret")


def is_only_live(clients: Iterable[Client], service_id: int | None) -> bool:
    """Whether clients of mode P may use a service, or any service (None), and no others may."""
    modes = {client.mode for client in clients if service_id is None or client.may_use(service_id)}
    return modes == {ServiceMode.PRODUCTION}
