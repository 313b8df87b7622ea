"""A bar chart as SVG that can be read on a light and on a dark page."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_ROW, _BAR, _NAMES, _PANEL, _LONGEST, _TOP = 26, 16, 170, 220, 150, 34
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}rect{fill:#0a69da}.head{font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#4493f8}}"
)


@dataclass(frozen=True)
class Bars:
    """One panel: its title, a value for each name, and how a value is written."""

    title: str
    values: Sequence[float]
    form: str


def draw(names: Sequence[str], panels: Sequence[Bars]) -> str:
    """Draw the panels beside each other, with a row for each name."""
    width, height = _NAMES + _PANEL * len(panels), _TOP + _ROW * len(names)
    parts = [_text(0, row, name) for row, name in enumerate(names)]
    for place, panel in enumerate(panels):
        left, most = _NAMES + place * _PANEL, max(panel.values, default=1)
        parts.append(f'<text class="head" x="{left}" y="18">{escape(panel.title)}</text>')
        for row, value in enumerate(panel.values):
            length = max(1, round(value / most * _LONGEST))
            y = _TOP + row * _ROW
            parts.append(f'<rect x="{left}" y="{y}" width="{length}" height="{_BAR}" rx="2"/>')
            parts.append(_text(left + length + 6, row, panel.form.format(value)))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(', '.join(panel.title for panel in panels))}</title>"
    )
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>", ""])


def _text(x: int, row: int, text: str) -> str:
    return f'<text x="{x}" y="{_TOP + row * _ROW + 13}">{escape(text)}</text>'
