"""The result of an attack: a figure with its bound, printed as one line."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_EXAMPLES = 5


@dataclass(frozen=True)
class Result:
    """A figure, and whether it keeps its bound; `examples` show where it does not."""

    what: str
    figure: str
    bound: str
    holds: bool
    examples: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The printed line."""
        verdict = "held:" if self.holds else "FAIL "
        return f"{verdict} {self.what} {self.figure} (bound {self.bound})"

    @property
    def lines(self) -> Iterator[str]:
        """The printed line, and the evidence if it fails."""
        yield self.line
        if not self.holds:
            yield from (f"        {example}" for example in self.examples[:_EXAMPLES])


def at_most(what: str, value: float, bound: float, unit: str = "") -> Result:
    """A number that may not exceed its bound."""
    return Result(what, shown(value, unit), f"<= {shown(bound, unit)}", value <= bound)


def at_least(what: str, value: float, bound: float, unit: str = "") -> Result:
    """A number that may not be below its bound."""
    return Result(what, shown(value, unit), f">= {shown(bound, unit)}", value >= bound)


def within(what: str, seconds: float | None, bound: float) -> Result:
    """A time with an upper bound; None means that the event never came, and fails."""
    if seconds is None:
        return Result(what, "never", f"<= {shown(bound, 's')}", holds=False)
    return at_most(what, seconds, bound, "s")


def none_of(what: str, found: Iterable[object], tried: int | None = None) -> Result:
    """The number of findings, which must be 0; the findings are the examples."""
    examples = tuple(str(each) for each in found)
    figure = shown(len(examples)) if tried is None else f"{len(examples):,} of {tried:,}"
    return Result(what, figure, "0", not examples, examples)


def shown(value: float, unit: str = "") -> str:
    """A number with its unit, with two digits after the point unless it is whole."""
    number = f"{value:,.0f}" if float(value).is_integer() and unit != "s" else f"{value:,.2f}"
    return f"{number} {unit}".rstrip()
