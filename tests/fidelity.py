"""docs/fidelity.md: every rule of the product, the modules that cite it, and its tests.

sandbox_sim cites a rule by its id, spelled as in rules.toml: `D7`, `sandbox.7`, `states.sms`.
Ids that are plain words stand in double quotes, as "codes"; `D11 to D14` cites all four. Tests
claim rules by the markers `spec` and `decision`, with every id as a literal.
`python -m tests.fidelity --write` writes the page.
"""

import ast
import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from sandbox_sim import explanations
from sandbox_sim.explanations import Rule, rules
from sandbox_sim.settings.schema import defaults

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "fidelity.md"
SHOWN_TESTS: Final = 2

CITATION: Final = re.compile(
    r"\b(?:D|(?:service|endpoint|sandbox|auth|delivery)\.)[0-9]{1,2}\b"
    r'|\bstates\.(?:transactions|sms)\b|(?<=")(?:codes|errors|limits)(?=")'
)
RANGE: Final = re.compile(r"\b(D|[a-z]+\.)([0-9]{1,2}) to \1([0-9]{1,2})\b")


def _introduction() -> str:
    """The beginning of the page, which rules.toml has."""
    text = (files(explanations) / "rules.toml").read_text("utf-8")
    return str(tomllib.loads(text)["introduction"])


class Claim(NamedTuple):
    """A test checks a rule, as its marker `spec` or `decision` says."""

    rule: str
    marker: str
    test: str


def _files(package: str) -> Iterator[tuple[str, str]]:
    """Yield the name, relative to the package, and the text of each module."""
    base = ROOT / package
    for path in sorted(base.rglob("*.py")):
        yield path.relative_to(base).as_posix(), path.read_text("utf-8")


def cited_in(text: str) -> set[str]:
    """The ids that a text cites."""
    between = {
        f"{family}{number}"
        for family, first, last in RANGE.findall(text)
        for number in range(int(first), int(last) + 1)
    }
    return between | set(CITATION.findall(text))


@cache
def citations() -> dict[str, list[str]]:
    """The modules of sandbox_sim that cite each id."""
    found = defaultdict(list)
    for name, text in _files("sandbox_sim"):
        for rule in cited_in(text):
            found[rule].append(name)
    return found


@cache
def rules_answered() -> dict[str, str]:
    """Return the literal values of X-Sandbox-Rule in the code, each with a place of it."""
    named = re.compile(r"\b(?:Outcome|Reply)\(|\brule\b *=")  # to parse a module takes long
    return {
        constant.value: f"sandbox_sim/{name}:{constant.lineno}"
        for name, text in _files("sandbox_sim")
        if named.search(text)
        for node in ast.walk(ast.parse(text))
        for expression in _rule_expressions(node)
        for constant in ast.walk(expression)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    }


def _rule_expressions(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Name(id="Outcome" | "Reply"), args=[_, expression, *_]):
            yield expression
        case ast.keyword(arg="rule", value=expression):
            yield expression
        case ast.Assign(targets=[ast.Name(id="rule")], value=expression):
            yield expression


@cache
def claims() -> tuple[Sequence[Claim], Sequence[str]]:
    """Return all claims, and the places of markers on no test or with ids that are not literals."""
    found, strays = [], []
    for name, text in _files("tests"):
        if "pytest.mark.spec" not in text and "pytest.mark.decision" not in text:
            continue
        tree = ast.parse(text)
        unread = {id(mark): mark for mark in _marks([tree])}
        for test, marks in _tests(tree.body, []):
            for mark in marks:
                ids = [str(arg.value) for arg in mark.args if isinstance(arg, ast.Constant)]
                if len(ids) == len(mark.args):
                    unread.pop(id(mark), None)
                    found += [Claim(rule, _marker(mark), f"{name}::{test}") for rule in ids]
        strays += [f"tests/{name}:{mark.lineno}" for mark in unread.values()]
    return list(dict.fromkeys(found)), strays


def _tests(body: Iterable[ast.stmt], outer: list[ast.Call]) -> Iterator[tuple[str, list[ast.Call]]]:
    """Yield the tests of a module or a class, with their markers and those of module and class."""
    body = list(body)
    outer = outer + _marks(node for node in body if _is_pytestmark(node))
    for node in body:
        match node:
            case ast.ClassDef():
                inner = _tests(node.body, outer + _marks(node.decorator_list))
                yield from ((f"{node.name}::{test}", marks) for test, marks in inner)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test_"):
                yield node.name, outer + _marks(node.decorator_list)


def _is_pytestmark(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id="pytestmark")]):
            return True
    return False


def _marks(nodes: Iterable[ast.AST]) -> list[ast.Call]:
    """The calls of `pytest.mark.spec` and `pytest.mark.decision` in these nodes."""
    return [
        call
        for node in nodes
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and _is_mark(call.func)
    ]


def _marker(mark: ast.Call) -> str:
    assert isinstance(mark.func, ast.Attribute)
    return mark.func.attr


def _is_mark(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(
            value=ast.Attribute(value=ast.Name(id="pytest"), attr="mark"), attr="spec" | "decision"
        ):
            return True
    return False


def render() -> str:
    """Return the text of docs/fidelity.md."""
    cited = citations()
    # First the tests over HTTP, and first those that claim few rules: they show a rule best.
    claimed_by = defaultdict(list)
    for claim in claims()[0]:
        claimed_by[claim.test].append(claim.rule)
    holders = defaultdict(list)
    for test in sorted(claimed_by, key=lambda t: (t[:4] != "web/", len(claimed_by[t]), t)):
        for rule in claimed_by[test]:
            holders[rule].append(test)
    parts = [_introduction()]
    for is_ours, group in groupby(rules(), key=lambda rule: rule.id.startswith("D")):
        rows = [_row(rule, cited[rule.id], holders[rule.id]) for rule in group]
        section = "What sandbox_sim chose" if is_ours else "What the interface states"
        columns = ("Rule", "What holds", "Setting", "Lives in", "Held by")
        parts.append(_table(section, columns, *rows))
    return "\n".join(parts)


def _table(title: str, *rows: Sequence[str]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    lines.insert(1, "|---" * len(rows[0]) + "|")
    return "\n".join((f"## {title}\n", *lines, ""))


def _row(rule: Rule, modules: Sequence[str], tests: Sequence[str]) -> Sequence[str]:
    holds = " ".join(rule.states.split())
    held = [f"`{test}`" for test in tests[:SHOWN_TESTS]]
    if len(tests) > SHOWN_TESTS:
        held.append(f"and {len(tests) - SHOWN_TESTS} more")
    settings = ", ".join(map(_setting, rule.settings))
    return rule.id, holds, settings, ", ".join(f"`{m}`" for m in modules), ", ".join(held)


def _setting(name: str) -> str:
    """The name of a setting, and its default where that is short."""
    default = defaults().get(name)
    try:
        text = "unset" if default is None else json.dumps(default)
    except TypeError:  # credentials
        return f"`{name}`"
    return f"`{name}` ({text})" if len(text) <= 30 else f"`{name}`"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.fidelity --write")
    PAGE.write_text(render(), "utf-8")
