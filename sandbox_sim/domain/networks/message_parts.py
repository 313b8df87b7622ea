"""The parts in which a message went to its network, and what they say together. Source: D39.

A network gives each part an identifier of its own, and reports on each by itself. A part keeps its
first final outcome, so a report that comes twice or late changes nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sandbox_sim.domain.networks.outcomes import FINAL, Outcome


class MessagePart(NamedTuple):
    """One part that a network took.

    number: from 1 to `total`.
    network_id: the network's identifier of the part, in the form in which its reports have it.
    """

    network: str
    attempt_id: str
    number: int
    total: int
    network_id: str
    outcome: Outcome = Outcome.PENDING

    def reported(self, outcome: Outcome) -> "MessagePart":
        """The part after a report; only the first one that is final counts."""
        if self.outcome in FINAL or outcome is Outcome.UNKNOWN:
            return self
        return self._replace(outcome=outcome)


def together(parts: Sequence[MessagePart]) -> Outcome:
    """The outcome of a message: SUCCEEDED if all its parts arrived, FAILED if one never will.

    parts: those that the network is known to have; a part that is missing may still be on its way.
    """
    outcomes = {part.outcome for part in parts}
    if Outcome.FAILED in outcomes:
        return Outcome.FAILED
    arrived = {part.number for part in parts if part.outcome is Outcome.SUCCEEDED}
    if parts and len(arrived) == parts[0].total:
        return Outcome.SUCCEEDED
    return Outcome.PENDING
