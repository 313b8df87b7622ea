"""The circuit breaker of a network: no submit goes to a network that cannot be reached. D39.

CLOSED lets every submit pass. Five network faults in a row open it; an answer of any other kind, a
decline too, starts the count again. OPEN holds every submit back for `OPEN_FOR`. Then one submit
passes, the probe: an answer closes the breaker, a fault opens it again, and if the probe was not
sent for a reason of ours, the next submit is the probe. Status queries and notifications do not use
the breaker.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

OPENS_AFTER: Final = 5

OPEN_FOR: Final = timedelta(seconds=30)

# After this time another probe may be sent: the server of the first one may have died.
PROBE_ENDS_AFTER: Final = timedelta(seconds=60)


class BreakerState(StrEnum):
    """What a breaker does with submits.

    closed: they are sent.
    open: they are not sent.
    probing: one is sent, to find out.
    """

    CLOSED = "closed"
    OPEN = "open"
    PROBING = "probing"


class Breaker(NamedTuple):
    """The state of one network's breaker.

    faults: network faults in a row.
    opened_at: when it opened last; None while it is closed.
    probe_at: when the probe was sent; None if no probe is under way.
    """

    faults: int = 0
    opened_at: datetime | None = None
    probe_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether it holds submits back, except for the probe."""
        return self.opened_at is not None

    @property
    def state(self) -> BreakerState:
        """CLOSED, OPEN, or PROBING while a probe is under way."""
        if self.opened_at is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self.probe_at is None else BreakerState.PROBING

    def admit(self, now: datetime) -> tuple["Breaker", bool]:
        """The breaker afterwards, and whether a submit may be sent now."""
        if self.opened_at is None:
            return self, True
        probing = self.probe_at is not None and _is_within(now, self.probe_at, PROBE_ENDS_AFTER)
        if probing or _is_within(now, self.opened_at, OPEN_FOR):
            return self, False
        return self._replace(probe_at=now), True

    def after_unsent_probe(self) -> "Breaker":
        """The breaker after a probe that ended for a reason of ours before anything was sent."""
        return self._replace(probe_at=None)

    def after_fault(self, now: datetime) -> "Breaker":
        """The breaker after a `SubmitResult.network_fault`."""
        faults = self.faults + 1
        if self.probe_at is None and (self.is_open or faults < OPENS_AFTER):
            # A fault of a submit that left before the breaker opened does not keep it open.
            return self._replace(faults=faults)
        return Breaker(faults, opened_at=now)

    def after_answer(self) -> "Breaker":
        """The breaker after any answer of the network, a decline too."""
        return Breaker()


def _is_within(now: datetime, began: datetime, span: timedelta) -> bool:
    """Whether the span has not ended; it has if the machine's clock was set back before it began.

    Otherwise the breaker would stay open for as long as the clock was set back.
    """
    return began <= now < began + span
