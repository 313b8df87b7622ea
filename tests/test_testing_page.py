"""The examples in docs/testing.md pass, and its tables are complete."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
import requests  # noqa: F401 -- runs in this process would import it and drop parts of it

from sandbox_sim import SandboxGateway, testing
from sandbox_sim.testing.expectations import Messages

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "testing.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_pass(pytester: pytest.Pytester) -> None:
    (conftest,) = (example for example in EXAMPLES if "def test_" not in example)
    pytester.makeconftest(conftest)
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function")
    tests = [example for example in EXAMPLES if example != conftest]
    pytester.makepyfile(**{f"test_{n}": example for n, example in enumerate(tests)})

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(passed="".join(EXAMPLES).count("def test_"))
    assert len(tests) == 5


def rows(heading: str) -> dict[str, str]:
    """The rows of a table by their first cell."""
    table = PAGE.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return {row[0]: row[1] for row in re.findall(r"^\| (.*?) \| (.*?) \|", table, re.MULTILINE)}


def test_the_table_of_the_fixture_lists_all_its_attributes() -> None:
    named = re.findall(r"`\.(\w+)", " ".join(rows("`sandbox_gateway`")))
    public = {name for name in dir(SandboxGateway()) if not name.startswith("_")}

    assert set(named) == public - {"aio", "is_running"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("callbacks", testing.Callback),
        ("transactions", testing.Transaction),
        ("sms", testing.Sms),
        ("requests", testing.Request),
        ("inbox(name)", testing.Delivery),
    ],
)
def test_the_table_of_records_has_every_field(name: str, kind: type) -> None:
    computed = {name for name, value in vars(kind).items() if isinstance(value, property)}

    named = rows("Records")[f"`{name}`"].replace("`", "").split()

    assert set(named) == {field.name for field in fields(kind)} | computed


def test_the_table_of_expectations_has_every_call() -> None:
    named = re.findall(r"`(?:sms\.)?(\w+)\(", " ".join(rows("Call")))

    assert set(named) == {
        name for name in dir(Messages) if name.startswith("expect") or name == "where"
    }
