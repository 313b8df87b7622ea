"""Rules about the code itself, read from its syntax trees."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "sandbox_sim"
MODULES = sorted(PACKAGE.rglob("*.py"))

# The only modules that may read the time or draw random numbers. The demo shop is a separate
# program with modules of its own for that.
DOORS = {PACKAGE / "adapters" / f"{name}.py" for name in ("clock", "ids", "people")} | {
    PACKAGE / "demo" / f"{name}.py" for name in ("clock", "ids")
}
FORBIDDEN_MODULES = {"time", "random", "secrets", "uuid"}
FORBIDDEN_CALLS = {
    "asyncio.sleep",
    "asyncio.timeout",
    "asyncio.timeout_at",
    "asyncio.wait_for",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "date.today",
    "datetime.date.today",
    "os.urandom",
    "loop.time",
    "loop.call_later",
    "loop.call_at",
}


def name_of(module: Path) -> str:
    return str(module.relative_to(PACKAGE.parent))


@cache
def tree_of(module: Path) -> ast.Module:
    return ast.parse(module.read_text("utf-8"))


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for such an expression; a call inside it counts as its function's name."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr}"
        case ast.Call(func=function):
            return (
                dotted(function).removeprefix("asyncio.get_running_").removeprefix("asyncio.get_")
            )
        case _:
            return "?"


def uses_of_time_and_chance(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (n.name for n in names if n.name.split(".")[0] in FORBIDDEN_MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                if module.split(".")[0] in FORBIDDEN_MODULES:
                    yield module
                yield from (
                    f"{module}.{n.name}" for n in names if f"{module}.{n.name}" in FORBIDDEN_CALLS
                )
            case ast.Attribute() if dotted(node) in FORBIDDEN_CALLS:
                yield dotted(node)


def test_only_the_clock_knows_the_time_and_only_ids_and_people_draw_lots() -> None:
    found = {
        name_of(module): list(uses_of_time_and_chance(tree_of(module)))
        for module in MODULES
        if module not in DOORS
    }

    assert {name: uses for name, uses in found.items() if uses} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import time",
        "import random as r",
        "from secrets import token_hex",
        "from uuid import uuid4",
        "datetime.now(UTC)",
        "date.today()",
        "asyncio.sleep(1)",
        "from asyncio import sleep",
        "asyncio.get_running_loop().call_later(1, f)",
        "clock = datetime.utcnow",
    ],
)
def test_the_rule_would_notice(code: str) -> None:
    assert len(list(uses_of_time_and_chance(ast.parse(code)))) == 1


def test_a_file_can_be_read_in_one_sitting() -> None:
    lengths = {name_of(module): len(module.read_text("utf-8").splitlines()) for module in MODULES}

    assert {name: length for name, length in lengths.items() if length >= 400} == {}


def test_a_folder_can_be_read_at_a_glance() -> None:
    files = Counter(
        name_of(file.parent)
        for file in PACKAGE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    )

    assert {name: number for name, number in files.items() if number > 22} == {}


def test_a_file_says_first_what_it_is() -> None:
    assert [name_of(each) for each in MODULES if not ast.get_docstring(tree_of(each))] == []


# An import from the tests; the names in brackets may take several lines.
IMPORT = re.compile(
    r"^ *(?:from +(?:tests|\.)[\w.]* +import +(?:\([^)]*\)|.*)|import +tests.*)", re.MULTILINE
)


def imports_of_test_modules(text: str) -> list[str]:
    return [found for found in IMPORT.findall(text) if re.search(r"\btest_", found)]


def test_no_test_module_imports_another() -> None:
    """Code that tests share has a module of its own."""
    texts = {str(path): path.read_text("utf-8") for path in Path(__file__).parent.rglob("*.py")}
    del texts[__file__]  # it has the samples below

    found = {name: imports_of_test_modules(text) for name, text in texts.items()}

    assert {name: imports for name, imports in found.items() if imports} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import tests.web.api.test_card",
        "from tests.web import test_card",
        "from tests.web.api.test_card import PAYMENT",
        "from tests.web import (\n    conftest,\n    test_card,\n)",
        "    from .test_card import PAYMENT",
    ],
)
def test_the_rule_of_imports_would_notice(code: str) -> None:
    assert imports_of_test_modules(f"import re\n{code}\n") == [code]


def test_importing_the_package_imports_nothing_heavy() -> None:
    """The pytest plugin imports it in every test run of every project that installs it."""
    code = "import sys, sandbox_sim; print(*sys.modules)"
    result = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    heavy = {"aiohttp", "pydantic", "pydantic_settings", "click", "cachetools", "yarl"}
    assert heavy.isdisjoint(result.stdout.split())


def test_serving_imports_nothing_of_the_demo_shop() -> None:
    """The demo shop must not slow down the start of `serve`."""
    code = "import sys, sandbox_sim.cli.serve.command, sandbox_sim.cli.serve.process; "
    result = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", code + "print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )

    heavy = {"sandbox_sim.demo", "jinja2", "aiohttp_jinja2", "faker"}
    assert heavy.isdisjoint(result.stdout.split())
