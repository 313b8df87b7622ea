"""The pictures of the documentation, which `make screenshots` writes: pages show each of them."""

import re
import struct
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "screenshots"
PICTURES = sorted(FOLDER.glob("*.png"))


def test_there_are_dark_and_phone_sized_ones_and_all_are_small() -> None:
    names = {picture.stem for picture in PICTURES}
    widths = [struct.unpack(">I", picture.read_bytes()[16:20])[0] for picture in PICTURES]

    assert len(names) >= 6
    assert any(name.endswith("-dark") for name in names)
    assert min(widths) <= 420
    assert max(widths) >= 1280
    assert all(picture.stat().st_size < 300_000 for picture in PICTURES)


def test_pages_show_every_one_and_the_readme_one_at_its_beginning() -> None:
    pages = [*ROOT.glob("docs/*.md"), ROOT / "README.md"]
    shown = "".join(page.read_text("utf-8") for page in pages)
    beginning = "\n".join((ROOT / "README.md").read_text("utf-8").splitlines()[:25])

    assert [each.name for each in PICTURES if f"screenshots/{each.name}" not in shown] == []
    assert re.search(r"!\[[^]]+\]\(docs/screenshots/[a-z-]+\.png\)", beginning)
