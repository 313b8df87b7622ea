"""A property that must hold."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that states the property with its counts, and the evidence against it."""

    sentence: str
    violations: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether no violation was found."""
        return not self.violations


def claim(sentence: str, violations: Iterable[str]) -> Claim:
    """Make a claim and collect its violations."""
    return Claim(sentence, tuple(violations))
