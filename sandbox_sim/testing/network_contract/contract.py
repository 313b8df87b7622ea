"""The contract of network adapters: all proofs, how a proof runs, and its verdict."""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import iscoroutinefunction, signature
from typing import Final, NamedTuple

from sandbox_sim.adapters import process
from sandbox_sim.adapters.clock_and_ids import SystemClock
from sandbox_sim.ports.tasks import NotEnded, result_within
from sandbox_sim.testing.network_contract import proofs
from sandbox_sim.testing.network_contract.bench import Disproved, NotProven
from sandbox_sim.testing.network_contract.peer import Fault, Peer, PeerFactory

# The longest real time of a proof: more than `bench.TIMEOUT`, which an adapter may wait for.
PROOF_LIMIT_S: Final = 20.0

# The time that an adapter gets to end when its proof is cancelled.
_MARGIN_S: Final = 2.0


class Proof(NamedTuple):
    """A check of one property of an adapter; `run` raises `Disproved` or `NotProven`, or passes."""

    name: str
    run: Callable[[Peer], Awaitable[None]]


# Every public coroutine function of `proofs` that takes only the peer, and those for each value.
PROOFS: Final[Sequence[Proof]] = (
    *(
        Proof(name, run)
        for name, run in vars(proofs).items()
        if iscoroutinefunction(run)
        and not name.startswith("_")
        and len(signature(run).parameters) == 1
    ),
    *(
        Proof(f"the_{field}_arrives", partial(proofs.the_field_arrives, field=field))
        for field in proofs.FIELDS
    ),
    *(
        Proof(f"{run.__name__.removesuffix('fault')}{fault}", partial(run, fault=fault))
        for run in (proofs.submit_under_fault, proofs.status_under_fault)
        for fault in Fault
    ),
)


async def prove(proof: Proof, factory: PeerFactory) -> None:
    """Run a proof with the other side from the factory.

    Raises:
        Disproved: the adapter breaks the contract, or the proof did not end in time.
        NotProven: the proof does not apply to the adapter.
    """
    task = asyncio.create_task(_run(proof, factory), name=proof.name)
    try:
        await result_within(task, PROOF_LIMIT_S, SystemClock())
    except NotEnded:
        why = f"{proof.name} did not end within {PROOF_LIMIT_S:g} s"
        raise Disproved(f"{why}, or the adapter cancelled it; give every wait a limit") from None


def run(proof: Proof, factory: PeerFactory) -> None:
    """As `prove`, in a new event loop; it also ends if the adapter blocks that loop."""
    with _signal_after(PROOF_LIMIT_S + 2 * _MARGIN_S, f"{proof.name}: the event loop is blocked"):
        process.run(prove(proof, factory))


async def _run(proof: Proof, factory: PeerFactory) -> None:
    async with factory as peer:
        await proof.run(peer)


@contextmanager
def _signal_after(seconds: float, sentence: str) -> Iterator[None]:
    """Raise `Disproved` with the sentence after `seconds`, even if the main thread is blocked.

    Only a signal can end a blocking call. Without SIGALRM, outside the main thread, or if a shorter
    timer is set, this does nothing. A longer timer, such as that of pytest-timeout, is restored.
    """

    def end(*_: object) -> None:
        raise Disproved(sentence)

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "SIGALRM"):
        yield
        return
    earlier_timer, _ = signal.getitimer(signal.ITIMER_REAL)
    if 0 < earlier_timer <= seconds:
        yield
        return
    handler = signal.signal(signal.SIGALRM, end)
    # Repeated, because an adapter may catch the exception as an error of its network.
    signal.setitimer(signal.ITIMER_REAL, seconds, _MARGIN_S)
    try:
        yield
    finally:
        unused_time, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if earlier_timer:
            signal.setitimer(signal.ITIMER_REAL, earlier_timer - seconds + unused_time)


PROVED: Final = "proved"

NOT_PROVEN: Final = "not proven"

DISPROVED: Final = "disproved"

VERDICTS: Final = (PROVED, NOT_PROVEN, DISPROVED)


class ProofVerdict(NamedTuple):
    """The result of a proof.

    word: one of `VERDICTS`.
    reason: why it is not proven, or what the adapter did wrong; empty if it is proved.
    """

    word: str
    reason: str = ""


async def verdict(proof: Proof, factory: PeerFactory) -> ProofVerdict:
    """Run a proof as `prove` does, and return its verdict; every exception becomes a verdict."""
    try:
        await prove(proof, factory)
    except NotProven as reason:
        return ProofVerdict(NOT_PROVEN, str(reason))
    except Disproved as found:
        return ProofVerdict(DISPROVED, str(found))
    except Exception as error:  # no proof expects it, so the adapter breaks the contract
        return ProofVerdict(DISPROVED, f"{type(error).__name__}: {error}")
    return ProofVerdict(PROVED)
