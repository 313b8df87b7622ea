"""Rules about the code itself, read from its syntax trees."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
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


# A module is parsed only if a forbidden name stands in an import or after a dot.
_NAMES = "|".join(FORBIDDEN_MODULES | {call.rpartition(".")[2] for call in FORBIDDEN_CALLS})
SUSPICIOUS = re.compile(
    rf"^ *(?:import|from) [^\n(]*(?:\([^)]*)?\b(?:{_NAMES})\b|\.\s*(?:{_NAMES})\b", re.MULTILINE
)


def uses_of_time_and_chance(code: str) -> Iterator[str]:
    if not SUSPICIOUS.search(code):
        return
    for node in ast.walk(ast.parse(code)):
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
        name_of(module): list(uses_of_time_and_chance(module.read_text("utf-8")))
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
        "def f():\n    from asyncio import (\n        Event,\n        sleep,\n    )",
        "asyncio.get_running_loop().call_later(1, f)",
        "clock = datetime.utcnow",
    ],
)
def test_the_rule_would_notice(code: str) -> None:
    assert len(list(uses_of_time_and_chance(code))) == 1


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
    docstring = ('"""', 'r"""')
    silent = [each for each in MODULES if not each.read_text("utf-8").startswith(docstring)]

    assert [name_of(each) for each in silent] == []


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


SERVE = """
import sys
from sandbox_sim.cli import main
import sandbox_sim.cli.serve.command

main.get_command(main.make_context("x", ["serve"]), "serve")
print(*sys.modules)
import sandbox_sim.cli.serve.process
print(*sys.modules)
"""


def test_serving_imports_no_other_command_and_nothing_of_the_demo_shop() -> None:
    """Neither must slow down the start of `serve`. One process shows both."""
    result = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", SERVE], capture_output=True, text=True, check=True
    )

    of_the_command, of_a_server = map(str.split, result.stdout.splitlines())
    commands = {name for name in of_the_command if name.startswith("sandbox_sim.cli.")}
    needed = (
        *("address_option", "commands", "commands.configuration", "lazy_commands"),
        *("serve", "serve.command", "serve.listening", "serve.running_servers"),
    )
    assert commands == {f"sandbox_sim.cli.{each}" for each in needed}
    heavy = {"sandbox_sim.demo", "jinja2", "aiohttp_jinja2", "faker"}
    assert heavy.isdisjoint(of_a_server)
