"""A high-fidelity stand-in for a Ghanaian payment, airtime, bill and SMS gateway."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = ["SandboxGateway", "__version__"]
__version__ = "0.1.0"


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Switch the garbage collector off during imports, which leave nothing to collect.

    All objects then count as old, so that the next collection does not look at the imported ones.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # `unfreeze` would return what the user has frozen
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()


def import_without_gc(name: str) -> ModuleType:
    """The module of this name. The first import is made with the garbage collector off."""
    if name in sys.modules:
        return import_module(name)
    with gc_disabled():
        return import_module(name)


if TYPE_CHECKING:
    from sandbox_sim.testing import SandboxGateway
else:

    def __getattr__(name: str) -> object:
        """Import `SandboxGateway` on first use, because it needs the whole package."""
        if name == "SandboxGateway":
            return import_without_gc("sandbox_sim.testing").SandboxGateway
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
