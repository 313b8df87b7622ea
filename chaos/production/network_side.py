"""What a run needs of its network, which is also the judge of each payment."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from chaos.production.observations import Charges, Purchase
from chaos.servers import Server


class NetworkSide(Protocol):
    """The network of a run, behind a real socket.

    configuration: the tables of our gateway's file that lead to it.
    timeout_s: how long our gateway waits for an answer of it, as the configuration says.
    numbers: the phone numbers that pay, each with its weight.
    forgets_after_s: it knows a payment for so long.
    servers: its processes; empty where it runs in ours.
    """

    timeout_s: float
    numbers: Mapping[str, int]
    forgets_after_s: float
    servers: Sequence[Server]

    @property
    def configuration(self) -> str: ...

    async def prepare(self, services: Sequence[int]) -> None:
        """Make it ready for payments of these services."""

    async def delay_answer(self, purchase: Purchase, seconds: float) -> None:
        """Let it process a payment at once and answer late."""

    async def has(self, purchase: Purchase, within_s: float) -> bool:
        """Wait until it has a payment; False when the time is over."""

    async def refuses(self, purchase: Purchase) -> bool:
        """Whether it has said no to every submit of a payment."""

    async def charges(self, services: Collection[int]) -> dict[tuple[int, str], Charges]:
        """What it did with every payment of these services, when nothing is under way."""

    async def away(self, seconds: float) -> None:
        """Take no connection for a while."""

    async def silent(self, seconds: float) -> None:
        """Take connections for a while, and answer nothing."""

    async def stop(self) -> None:
        """Stop it at the end of a run."""
