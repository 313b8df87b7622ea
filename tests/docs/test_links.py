"""Links between pages lead to files and headings, also in the source archive; pages stay short."""

import tomllib
from pathlib import Path

from tests.docs.pages import ROOT, Page, all_pages

OTHERS = (Page("CHANGELOG.md"), Page("CONTRIBUTING.md"))
PAGES = {page.path: page for page in [*all_pages(), *OTHERS]}
# hatchling puts these into every source archive.
ALWAYS = {"README.md", "LICENSE", "pyproject.toml", ".gitignore"}


def targets(page: Page) -> list[tuple[str, Path, str]]:
    """Each link within the repository: its text, the file and the anchor."""
    local = [link for link in page.links if "://" not in link]
    parts = [(link, *link.partition("#")[::2]) for link in local]
    return [
        (link, (page.path.parent / name).resolve() if name else page.path, anchor)
        for link, name, anchor in parts
    ]


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    for page in PAGES.values():
        broken = [
            link
            for link, file, anchor in targets(page)
            if not file.exists() or (anchor and anchor not in PAGES[file].anchors)
        ]

        assert broken == [], page


def test_every_page_is_reached_from_the_readme() -> None:
    reached = {ROOT / "README.md"}
    left = [PAGES[ROOT / "README.md"]]
    while left:
        found = {file for _, file, _ in targets(left.pop())} & PAGES.keys() - reached
        reached |= found
        left += [PAGES[file] for file in found]

    assert PAGES.keys() - reached == set()


def test_the_source_archive_has_every_file_that_is_linked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = {*project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"], *ALWAYS}

    linked = {
        file.relative_to(ROOT).parts[0] for page in PAGES.values() for _, file, _ in targets(page)
    }

    assert "docs" in included
    assert linked - included == set()


def test_the_pages_stay_short() -> None:
    counted = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]

    assert sum(len(page.read_text("utf-8").splitlines()) for page in counted) <= 5800
