"""The other side of a comparison: a second sandbox gateway."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sandbox_sim.testing import SandboxGateway
from sandbox_sim.testing.service_gateway import send

# It settles at once and its clock runs, so no test waits; a comparison ignores its times.
AT_ONCE = {"settle_delay_ms": 0, "sms_transition_ms": 0, "card_auto_complete_ms": 1}


@contextmanager
def other_gateway(**settings: Any) -> Iterator[SandboxGateway]:
    """A running gateway with these settings."""
    with SandboxGateway(**{**AT_ONCE, **settings}) as gateway:
        send("POST", f"{gateway.url}/_sandbox/clock/resume", {}, None)
        yield gateway
