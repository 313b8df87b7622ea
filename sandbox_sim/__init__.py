"""A high-fidelity stand-in for a Ghanaian payment, airtime, bill and SMS gateway."""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["SandboxGateway", "__version__"]
__version__ = "0.1.0"

if TYPE_CHECKING:
    from sandbox_sim.testing import SandboxGateway
else:

    def __getattr__(name: str) -> object:
        """Import `SandboxGateway` on first use, because it needs the whole package."""
        if name == "SandboxGateway":
            return import_module("sandbox_sim.testing").SandboxGateway
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
