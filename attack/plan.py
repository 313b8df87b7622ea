"""What a run of the attacks is: its size, its seed, and where its servers keep their files."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

from attack.results import Result

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """full: with the numbers of the issue that reported the faults, else smaller ones."""

    full: bool
    seed: int
    directory: Path

    def pick(self, reduced: T, full: T) -> T:
        """The number for this size of run."""
        return full if self.full else reduced

    def random(self, name: str) -> Random:
        """A generator of its own for each attack: `--only` repeats what it did in a whole run."""
        return Random(f"{self.seed} {name}")


Attack = Callable[[Plan], Awaitable[Sequence[Result]]]
