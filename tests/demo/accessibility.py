"""What axe finds on a page: on a desk in light colours, and on a phone in dark ones."""

from collections.abc import Sequence
from typing import Final

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Page, ViewportSize

from tests.demo.browser import DESK, PHONE, Scheme, fits

Look = tuple[ViewportSize, Scheme]
LOOKS: Final[Sequence[Look]] = ((DESK, "light"), (PHONE, "dark"))

# Without iframes: axe would wait half a second for frames that do not load it.
_SERIOUS: Final = """
axe.run({resultTypes: ["violations"], iframes: false}).then(({ violations }) => violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => `${id}: ${nodes[0].html}`))
"""


# The check of the colours of text takes most of the time; the tenth row has those of the second.
_WITHOUT_REPEATS: Final = """
for (const parent of document.querySelectorAll("main, main *")) {
  const seen = {};
  for (const child of [...parent.children]) {
    const kind = child.tagName + child.className;
    seen[kind] = (seen[kind] ?? 0) + 1;
    if (seen[kind] > 6) child.remove();
  }
}
"""


async def without_repeats(page: Page) -> None:
    """Remove all but six of the neighbouring elements of one kind."""
    await page.evaluate(_WITHOUT_REPEATS)


async def barriers(page: Page, looks: Sequence[Look] = LOOKS) -> list[str]:
    """Return the problems of an open page in each of these looks.

    That is each violation that axe calls serious or critical, and a page wider than the window.
    The page keeps the last look. It is not loaded again, because that takes a third of the time.
    """
    await page.evaluate(AXE_SCRIPT)
    found = []
    for viewport, scheme in looks:
        await page.set_viewport_size(viewport)
        await page.emulate_media(color_scheme=scheme)
        look = f"{viewport['width']} px, {scheme}"
        if not await fits(page):
            found.append(f"{look}: wider than the window")
        found += [f"{look}: {each}" for each in await page.evaluate(_SERIOUS)]
    return found
