"""What `make mutate` changes, and that it finds the modules that it is for."""

from pathlib import Path

from mutate.__main__ import MODULES, PRODUCT
from mutate.mutants import mutants

MODULE = '''"""A docstring."""

LIMIT = 10
WORDS = "a text for people"
LOG, T = logging.getLogger("sandbox_sim"), TypeVar("T")
ROW = Row("code", title="Collection")

def allowed(amount: "int", codes=("A",)) -> "bool":
    """A docstring."""
    if not amount:
        raise ValueError(f"no {amount}")
    return 0 < amount and codes
'''


def test_every_place_that_decides_is_changed_and_no_text_for_people(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(MODULE, "utf-8")

    found = [(each.line, each.scope, each.change) for each in mutants(module)]

    assert found == [
        (3, "", "10  ->  11"),
        (6, "", "'code'  ->  'codex'"),
        (8, "", "'A'  ->  'Ax'"),
        (10, "allowed", "not amount  ->  amount"),
        (11, "allowed", "raise ValueError(f'no {amount}')  ->  pass"),
        (12, "allowed", "return 0 < amount and codes  ->  return None"),
        (12, "allowed", "0 < amount and codes  ->  0 < amount or codes"),
        (12, "allowed", "0 < amount  ->  0 <= amount"),
        (12, "allowed", "0 < amount  ->  0 >= amount"),
        (12, "allowed", "0  ->  1"),
    ]


def test_each_pattern_of_modules_fits_one() -> None:
    assert [pattern for pattern in MODULES if not list(PRODUCT.glob(pattern))] == []
