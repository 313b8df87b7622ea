"""Gateway time as the control API shows it."""

from sandbox_sim.domain.timestamps import iso
from sandbox_sim.gateway.ports import Clock


def shown(clock: Clock) -> dict[str, object]:
    """What it is, and how many seconds it was moved away from the machine's."""
    return {"now": iso(clock.now()), "shift_s": clock.shift.total_seconds()}
