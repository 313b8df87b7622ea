"""The plan of a run: its size, its seed, and the folder of its servers."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

from attack.results import Result

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """full: use the numbers of the report that found the faults, else smaller ones."""

    full: bool
    seed: int
    directory: Path

    def pick(self, reduced: T, full: T) -> T:
        """The number for this size of run."""
        return full if self.full else reduced

    def random(self, name: str) -> Random:
        """A random generator for one attack, so `--only` repeats what a whole run did."""
        return Random(f"{self.seed} {name}")


Attack = Callable[[Plan], Awaitable[Sequence[Result]]]
