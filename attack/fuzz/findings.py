"""The findings of a fuzzer, with the exact bytes that repeat them."""

from dataclasses import dataclass, field
from pathlib import Path

_SHOWN_BYTES = 2_000
_MOST_KEPT = 20


@dataclass(frozen=True)
class Finding:
    """A problem, and the bytes of the connection that showed it."""

    problem: str
    sent: bytes

    def shown(self, directory: Path, number: int) -> str:
        """The problem and the bytes as Python writes them; long ones are in a file only."""
        file = directory / f"finding-{number}.bin"
        file.write_bytes(self.sent)
        sent = repr(self.sent) if len(self.sent) <= _SHOWN_BYTES else f"{len(self.sent)} bytes"
        return f"{self.problem}\n        sent: {sent}\n        again: {file}"


@dataclass
class Report:
    """The number of tries, and the findings; only the first ones are kept."""

    name: str
    tried: int = 0
    found: int = 0
    kept: list[Finding] = field(default_factory=list)

    def add(self, problem: str, sent: bytes = b"") -> None:
        """Note a problem."""
        self.found += 1
        if len(self.kept) < _MOST_KEPT:
            self.kept.append(Finding(problem, sent))

    @property
    def holds(self) -> bool:
        """Whether there were tries and no findings."""
        return self.found == 0 and self.tried > 0

    def lines(self, directory: Path) -> list[str]:
        """The line for this fuzzer, and its findings."""
        verdict = "held:" if self.holds else "FAIL "
        first = f"{verdict} {self.name}: {self.found:,} problems in {self.tried:,} tried (bound 0)"
        shown = (each.shown(directory, number) for number, each in enumerate(self.kept))
        return [first, *(f"    {line}" for line in shown)]
