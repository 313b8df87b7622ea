"""One property that must hold."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that says what must hold and of how many, and the evidence against it."""

    sentence: str
    violations: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Nothing speaks against it."""
        return not self.violations


def claim(sentence: str, violations: Iterable[str]) -> Claim:
    """A claim whose violations are found now."""
    return Claim(sentence, tuple(violations))
