"""The slow files run first, and the list of them is right."""

from pathlib import Path

from tests.fast_run import SLOW, place

ROOT = Path(__file__).parent.parent


def test_the_slow_files_exist() -> None:
    assert [path for path in SLOW if not (ROOT / path).is_file()] == []


def test_they_come_first_in_the_order_of_the_list_and_the_others_keep_theirs() -> None:
    tests = [
        "tests/web/api/test_status.py::test_one",
        f"{SLOW[1]}::TestAny::test_two[x::y]",
        "tests/domain/test_ledger.py::test_three",
        f"{SLOW[0]}::test_four",
        f"{SLOW[1]}::test_five",
    ]

    assert sorted(tests, key=place) == [tests[3], tests[1], tests[4], tests[0], tests[2]]
