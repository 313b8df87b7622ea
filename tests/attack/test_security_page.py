"""docs/security.md has a row for each attack and each fuzzer, and names nothing else."""

import re
from pathlib import Path

from attack.__main__ import ATTACKS
from attack.fuzz.__main__ import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")


def test_every_attack_has_a_row() -> None:
    rows = re.findall(r"^\| `([a-z][a-z-]+)` \|", PAGE, re.MULTILINE)

    assert rows == [*ATTACKS, *KINDS]
