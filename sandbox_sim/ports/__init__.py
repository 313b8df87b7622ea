"""The ports: what the gateway needs from outside, one in each module.

Time, identifiers, the state with its units of work, other servers, and the network that callbacks
go over. Adapters implement them.
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
)
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
    "Relay",
    "Store",
    "StoreError",
    "StoreInUse",
    "Topic",
    "Unit",
]
