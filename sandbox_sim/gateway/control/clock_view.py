"""Gateway time as the control API shows it."""

from sandbox_sim.domain.timestamps import iso
from sandbox_sim.gateway.ports import Clock


def shown(clock: Clock) -> dict[str, object]:
    """The time, whether it is frozen, and how far it was moved, in seconds."""
    state = clock.state
    return {
        "now": iso(clock.now()),
        "frozen": state.frozen_at is not None,
        "shift_s": state.shift.total_seconds(),
    }
