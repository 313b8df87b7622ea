"""How a figure is measured and printed: ratios, medians of interleaved rounds."""

import statistics
from collections.abc import Callable

from bench import load

BEYOND_THE_RUN = ("--set", "settle_delay_ms=3600000")
NOWHERE = "http://127.0.0.1:9/callback"


def serve(port: int, *more: str, store: str = "memory:") -> tuple[str, ...]:
    return "-m", "sandbox_sim", "serve", "--port", str(port), "--store", store, *more


def report(name: str, value: float, target: str, *, unit: str = "") -> None:
    print(f"  {name:<58} {value:8.2f}{unit:<4} (target {target})", flush=True)


def paired(
    rounds: int, ours: Callable[[int], load.Run], yardstick: Callable[[int], load.Run]
) -> tuple[float, float]:
    """Medians over the rounds of the ratios of throughput and p99."""
    rates, tails = [], []
    for number in range(rounds):
        bare, own = yardstick(number), ours(number)
        rates.append(own.per_second / bare.per_second)
        tails.append(own.p99_ms / bare.p99_ms)
        print(
            f"    round {number + 1}: {own.per_second:6.0f}/s p99 {own.p99_ms:5.1f} ms,"
            f" yardstick {bare.per_second:6.0f}/s p99 {bare.p99_ms:5.1f} ms",
            flush=True,
        )
    return statistics.median(rates), statistics.median(tails)
