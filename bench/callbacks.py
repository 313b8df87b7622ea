"""Payments with their callbacks, against bare handlers that make one POST for each request.

`whole_life` counts payments that came to their end. `accepted_callbacks` and `refused_callbacks`
count answers while callbacks go out at full rate.
"""

import re
import statistics
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from bench import load
from bench.figures import NOWHERE, paired, report, serve
from bench.processes import LOAD_CORE, started
from bench.requests import collections
from tests.kit.servers import free_port

_LOOK_AGAIN_S = 0.02
_AT_ONCE = "--set", "settle_delay_ms=0"


def whole_life(rounds: int, lives: int) -> None:
    """Request, settlement and callback, against a handler that makes one POST for each request.

    Payments are settled at once: the usual second would count as work, and more of it the faster
    a machine is.
    """

    def measure(url: str, name: str) -> Callable[[int], load.Run]:
        return lambda number: _lived(url, taker, f"{name}{number}", lives)

    with (
        _receiver() as taker,
        _bare(taker) as bare_url,
        _ours(*_AT_ONCE, "--log-level", "info") as ours_url,
    ):
        for url in (ours_url, bare_url):
            _lived(url, taker, "warm", 2000)
        print(f"whole life, {lives:,} times: request, settlement, callback taken elsewhere")
        rate, _ = paired(rounds, measure(ours_url, "life"), measure(bare_url, "life"))
        report("lives a second, of the bare handler's that posts", rate, ">= 0.75")


def refused_callbacks(rounds: int, seconds: float) -> None:
    """Answers while each payment has a callback that its receiver refuses."""
    _answers("answers while receivers refuse all callbacks", NOWHERE, rounds, seconds)


def accepted_callbacks(rounds: int, seconds: float) -> None:
    """Answers while each payment has a callback that its receiver takes with keep-alive."""
    with _receiver() as taker:
        _answers("answers while a receiver takes all callbacks", taker, rounds, seconds)


def _answers(title: str, receiver: str, rounds: int, seconds: float) -> None:
    """Measure the answers to payments that are settled at once.

    Also how many of their callbacks had been attempted when the last payment was answered: a server
    could put off all callbacks for the sake of its answers.
    """
    shares: list[float] = []
    with ExitStack() as servers:
        bare_url = servers.enter_context(_bare())
        posting_url = servers.enter_context(_bare(receiver))
        ours_url = servers.enter_context(_ours(*_AT_ONCE))

        def ours(name: str) -> Callable[[int], load.Run]:
            return lambda number: measured(f"{name}{number}", seconds=seconds)

        def measured(name: str, *, seconds: float = 0, count: int = 0) -> load.Run:
            before = _attempts(ours_url)
            run = load.run(ours_url, collections(receiver, name), seconds=seconds, count=count)
            shares.append((_attempts(ours_url) - before) / run.answers)
            while _attempts(ours_url) < before + run.answers:
                time.sleep(_LOOK_AGAIN_S)
            return run

        def bare(url: str, name: str) -> Callable[[int], load.Run]:
            return lambda number: load.run(
                url, collections(receiver, f"{name}{number}"), seconds=seconds
            )

        for url in (bare_url, posting_url):
            load.run(url, collections(receiver, "warm"), count=2000)
        measured("warm", count=2000)
        shares.clear()
        print(title)
        rate, _ = paired(rounds, ours("post"), bare(posting_url, "post"))
        report("requests a second, of a bare handler's that posts", rate, ">= 0.60")
        _, tail = paired(rounds, ours("tail"), bare(bare_url, "tail"))
        report("p99, times that of the bare handler that does not", tail, "<= 3.0")
        report("callbacks attempted by then, of the payments", statistics.median(shares), "none")


@contextmanager
def _receiver() -> Iterator[str]:
    """A receiver that takes everything; yields its address for callbacks."""
    port = free_port()
    with started("-m", "bench.receiver", str(port), core=LOAD_CORE):
        yield f"http://127.0.0.1:{port}/callback"


@contextmanager
def _bare(*posts_to: str) -> Iterator[str]:
    """A bare handler, which makes a POST to this address for each request if there is one."""
    port = free_port()
    with started("-m", "bench.yardstick", str(port), *posts_to):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _ours(*options: str) -> Iterator[str]:
    port = free_port()
    with started(*serve(port, *options)):
        yield f"http://127.0.0.1:{port}"


def _lived(url: str, taker: str, name: str, lives: int) -> load.Run:
    """Run this many payments, from the first request until the last callback is acknowledged."""
    expected = _taken(taker) + lives
    before = time.perf_counter()
    run = load.run(url, collections(taker, name), count=lives)
    while _taken(taker) < expected:
        time.sleep(_LOOK_AGAIN_S)
    return load.Run(lives / (time.perf_counter() - before), run.p99_ms, lives)


def _taken(taker: str) -> int:
    with urllib.request.urlopen(taker) as response:
        return int(response.read())


def _attempts(ours: str) -> int:
    """How many attempts at callbacks this server of ours has recorded."""
    with urllib.request.urlopen(f"{ours}/_sandbox/metrics") as response:
        found = re.findall(rb"(?m)^sandbox_sim_callback_attempts_total{.*} (.*)$", response.read())
    return int(sum(map(float, found)))
