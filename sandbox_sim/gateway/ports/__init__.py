"""The ports: what the gateway needs from outside, one in each module.

Time, identifiers, the state with its units of work, other servers, and the network that callbacks
go over. Adapters implement them.
"""

from sandbox_sim.gateway.ports.answer_gate import AnswerGate
from sandbox_sim.gateway.ports.callback_sender import CallbackSender
from sandbox_sim.gateway.ports.clock import Clock
from sandbox_sim.gateway.ports.errors import STORE_PAUSE_S, JobLost, StoreError, StoreInUse
from sandbox_sim.gateway.ports.ids import Ids
from sandbox_sim.gateway.ports.payment_processor import (
    Accepted,
    PaymentProcessor,
    PaymentRequest,
    Rejected,
)
from sandbox_sim.gateway.ports.relay import Relay
from sandbox_sim.gateway.ports.store import Store
from sandbox_sim.gateway.ports.topic import Topic
from sandbox_sim.gateway.ports.unit import Unit

__all__ = [
    "STORE_PAUSE_S",
    "Accepted",
    "AnswerGate",
    "CallbackSender",
    "Clock",
    "Ids",
    "JobLost",
    "PaymentProcessor",
    "PaymentRequest",
    "Rejected",
    "Relay",
    "Store",
    "StoreError",
    "StoreInUse",
    "Topic",
    "Unit",
]
