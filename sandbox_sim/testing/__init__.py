"""The gateway inside a test run: `SandboxGateway` and its records."""

from sandbox_sim.testing.expectations import Records
from sandbox_sim.testing.gateway import SandboxGateway
from sandbox_sim.testing.record_views import Callback, Delivery, Request, Sms, Transaction

__all__ = ["Callback", "Delivery", "Records", "Request", "SandboxGateway", "Sms", "Transaction"]
