"""What a run needs of its network, which is also the judge of each payment."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from chaos.production.observations import BadAnswers, Charges, Purchase
from chaos.servers import Server

# Seconds, gateway time. A payment that is open for longer waits for a person.
GIVES_UP_AFTER_S: Final = 15.0


class NetworkSide(Protocol):
    """The network of a run, behind a real socket.

    configuration: the tables of our gateway's file that lead to it.
    name: in the configuration of our gateway.
    timeout_s: how long our gateway waits for an answer of it, as the configuration says.
    repeats_within_s: how long our gateway takes "not found" for a proof, as the configuration
    says; None if the network forgets nothing.
    numbers: the phone numbers that pay, each with its weight.
    forgets_after_s: how long it knows a payment.
    servers: its processes; empty where it runs in ours.
    """

    name: str
    timeout_s: float
    repeats_within_s: float | None
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

    async def recorded(self, purchase: Purchase) -> str | None:
        """The status of a payment in the records that its people see; None if it never took it."""

    async def charges(self, services: Collection[int]) -> dict[tuple[int, str], Charges]:
        """What it did with every payment of these services, when nothing is under way."""

    async def away(self, seconds: float) -> None:
        """Take no connection for a while."""

    async def silent(self, seconds: float) -> None:
        """Take connections for a while, and answer nothing."""

    async def never_answer(self, purchase: Purchase) -> None:
        """Take a payment and never answer its submit, nor the first question about it.

        No callback is sent for it either.
        """

    def failing(self) -> AbstractAsyncContextManager[None]:
        """Within the block, answer an HTTP 5xx to every submit and every question."""
        ...

    async def forget(self) -> None:
        """Know nothing any more of the payments so far, but in the records that its people see."""

    async def bad_answers(self) -> BadAnswers:
        """What it did not answer as it should."""
        ...

    async def stop(self) -> None:
        """Stop it at the end of a run."""
