"""Gateway time as the control API shows it."""

from typing import Annotated, TypedDict

from sandbox_sim.domain.timestamps import Timestamp, iso
from sandbox_sim.gateway.ports import Clock


class ClockView(TypedDict):
    """Gateway time."""

    now: Timestamp
    frozen: Annotated[bool, "whether gateway time is frozen"]
    shift_s: Annotated[float, "by how many seconds it was moved from the time of the machine"]


def shown(clock: Clock) -> ClockView:
    """Gateway time, whether it is frozen, and how far it was moved in seconds."""
    state = clock.state
    return {
        "now": iso(clock.now()),
        "frozen": state.frozen_at is not None,
        "shift_s": state.shift.total_seconds(),
    }
