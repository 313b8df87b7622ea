"""The ports: the interfaces that adapters, stores and networks implement.

`network` is imported from its own module, so that a server starts without what only production
needs.
"""

from sandbox_sim.ports.callbacks import AnswerGate, CallbackSender
from sandbox_sim.ports.clock import Clock
from sandbox_sim.ports.ids import Ids
from sandbox_sim.ports.store import (
    STORE_PAUSE_S,
    DataRefused,
    FileStore,
    JobLost,
    Relay,
    Store,
    StoreError,
    StoreInUse,
    run_until_saved,
)
from sandbox_sim.ports.tasks import RunningTasks
from sandbox_sim.ports.unit import Topic, Unit

__all__ = [
    "STORE_PAUSE_S",
    "AnswerGate",
    "CallbackSender",
    "Clock",
    "DataRefused",
    "FileStore",
    "Ids",
    "JobLost",
    "NetworkConfigError",
    "Relay",
    "RunningTasks",
    "Store",
    "StoreError",
    "StoreInUse",
    "Topic",
    "Unit",
    "run_until_saved",
]


class NetworkConfigError(ValueError):
    """The settings of a network are invalid; the text names each and what is wrong with it."""
