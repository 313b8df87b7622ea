"""`make check` keeps phrases out that a reader stumbles over."""

from pathlib import Path

import pytest

from tests.plain_words import finds_in

PLANTED = '''"""The first line.

The value is
no number, so it is refused.
"""

# Whoever reads this
# stumbles, because the clock stands
# still.
raise ValueError(f"{name} is none of the setting {setting}")
'''


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tests.plain_words.ROOT", tmp_path)
    file = tmp_path / "planted.py"
    file.write_text(PLANTED)
    return file


def test_a_planted_sentence_is_found_with_its_line_and_what_to_write(planted: Path) -> None:
    found = set(finds_in(planted))

    assert found == {
        "planted.py:3: “is no number”: write “is not a …, or has no …”",
        "planted.py:7: “Whoever”: write “anyone who …”",
        "planted.py:8: “stands still”: write “is stopped”",
        "planted.py:10: “is none”: write “is not one, or is not listed in …”",
    }
