"""A gateway for tests: `SandboxGateway`, and the records that a test reads."""

from importlib import import_module
from typing import TYPE_CHECKING

from sandbox_sim.testing.expectations import Records
from sandbox_sim.testing.record_views import Callback, Delivery, Request, Sms, Transaction

__all__ = ["Callback", "Delivery", "Records", "Request", "SandboxGateway", "Sms", "Transaction"]

if TYPE_CHECKING:
    from sandbox_sim.testing.gateway import SandboxGateway
else:

    def __getattr__(name: str) -> object:
        """Import `SandboxGateway` on first use, because it imports every package."""
        if name == "SandboxGateway":
            return import_module("sandbox_sim.testing.gateway").SandboxGateway
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
