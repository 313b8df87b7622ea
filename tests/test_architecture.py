"""Rules about the code itself, read from its syntax trees."""

import ast
import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from sandbox_sim import gc_disabled
from tests.weight import repeated_classes

PACKAGE = Path(__file__).parent.parent / "sandbox_sim"
MODULES = sorted(PACKAGE.rglob("*.py"))
OF_THE_PRODUCT = [each for each in MODULES if PACKAGE / "demo" not in each.parents]

# The only modules that may read the time or draw random numbers. The demo shop is a separate
# program with its own module for that.
ALLOWED = {
    PACKAGE / "adapters" / f"{name}.py" for name in ("clock_and_ids", "machine_time", "people")
} | {PACKAGE / "demo" / "clock_and_ids.py"}
FORBIDDEN_MODULES = {"time", "random", "secrets"}
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
    "uuid.uuid1",
    "uuid.uuid4",
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


# A module is parsed only if an import or a call may have a forbidden name.
_NAMES = "|".join(FORBIDDEN_MODULES | {call.rpartition(".")[2] for call in FORBIDDEN_CALLS})
_OWNERS = "|".join({call.split(".")[-2] for call in FORBIDDEN_CALLS})
IN_AN_IMPORT = r"^ *(?:import|from) [^\n(]*(?:\([^)]*)?"
SUSPICIOUS = re.compile(
    rf"{IN_AN_IMPORT}\b(?:{_NAMES})\b|(?:{_OWNERS})(?:\(\))?\s*\.\s*(?:{_NAMES})\b", re.MULTILINE
)


def uses_of_time_and_randomness(code: str) -> Iterator[str]:
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


def test_only_the_adapters_read_a_clock_or_draw_random_numbers() -> None:
    found = {
        name_of(module): list(uses_of_time_and_randomness(module.read_text("utf-8")))
        for module in MODULES
        if module not in ALLOWED
    }

    assert {name: uses for name, uses in found.items() if uses} == {}


def test_class_names_of_the_product_are_unique() -> None:
    assert repeated_classes(OF_THE_PRODUCT) == {}


def renamed_classes(code: str) -> set[str]:
    """The classes of ours that a module imports under another name, to tell two apart."""
    return {
        name.name
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sandbox_sim")
        for name in node.names
        if name.asname and name.name[0].isupper()
    }


def test_classes_are_imported_under_their_own_names() -> None:
    """A search for the name of a class finds every use of it."""
    renamed = re.compile(rf"{IN_AN_IMPORT}\b[A-Z]\w* as \w", re.MULTILINE)  # parsing takes long
    texts = [path.read_text("utf-8") for path in OF_THE_PRODUCT]
    found = set[str]().union(*(renamed_classes(text) for text in texts if renamed.search(text)))

    assert found == set()


def test_objects_made_without_the_collector_count_as_old_afterwards() -> None:
    """Otherwise a collection right after the imports would visit all objects that they made."""
    gc.unfreeze()  # a server of another test may have frozen objects
    with gc_disabled():
        assert not gc.isenabled()
        made: list[list[int]] = [[] for _ in range(10_000)]

    assert gc.isenabled()
    assert gc.get_count()[0] < len(made) / 10


NO_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
SERVE = """
import importlib.metadata, sys

def refuse(**_):
    raise AssertionError("the start reads the metadata of every installed package")

importlib.metadata.entry_points = refuse
from sandbox_sim.cli import main
import sandbox_sim.cli.serve.command

main.get_command(main.make_context("x", ["serve"]), "serve")
print(*sys.modules)
import sandbox_sim.cli.serve.process
sandbox_sim.cli.serve.process.build().app
print(*sys.modules)
"""


def test_the_start_of_a_server_imports_only_needed_modules() -> None:
    """Other imports would slow down the start of `serve`. One process prints both lists."""
    environment = {name: text for name, text in os.environ.items() if name != NO_PLUGINS}
    result = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", SERVE], capture_output=True, text=True, check=True, env=environment
    )

    of_the_command, of_a_server = map(str.split, result.stdout.splitlines())
    commands = {name for name in of_the_command if name.startswith("sandbox_sim.cli.")}
    needed = (
        *("client", "commands", "commands.configuration", "options"),
        *("serve", "serve.command", "serve.listening"),
    )
    assert commands == {f"sandbox_sim.cli.{each}" for each in needed}
    unneeded = (
        *("asyncpg", "cryptography", "faker", "jinja2", "prometheus_client"),
        *("segno", "trustme", "sandbox_sim.bootstrap.routes", "sandbox_sim.demo"),
        *("sandbox_sim.bootstrap.production_parts", "sandbox_sim.web.pages"),
        *("sandbox_sim.networks", "sandbox_sim.web.openapi", "sandbox_sim.ports.network"),
        *("sandbox_sim.production.registry", "sandbox_sim.web.control"),
        *("sandbox_sim.web.api.dispatcher", "sandbox_sim.web.api.request_models"),
    )
    begins = tuple(f"{name}." for name in unneeded)
    assert [name for name in of_a_server if f"{name}.".startswith(begins)] == []


COMMANDS = """
import sys
from sandbox_sim.cli import main

for name in sys.argv[1:]:
    main.get_command(main.make_context("x", [name]), name)
print(*sys.modules)
"""


def test_commands_to_a_running_gateway_import_nothing_of_a_server() -> None:
    asking = (
        *("backup", "callbacks", "clock", "faults", "inbox", "ledger", "networks", "overrides"),
        *("readyz", "reconcile", "requests", "reset", "seed", "sms", "snapshot", "transactions"),
        "trigger",
    )
    result = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-c", COMMANDS, *asking], capture_output=True, text=True, check=True
    )

    imported = result.stdout.split()
    assert "sandbox_sim.cli.commands.trigger" in imported
    assert {"aiohttp", "asyncio", "pydantic", "sandbox_sim.bootstrap"}.isdisjoint(imported)
