"""The mutants of a module: each is one change of one place.

`<` becomes `<=` and `>=`, `and` becomes `or`, a condition is turned round, a number is one larger,
a code or a name gets one character more, an entry of a set or a dict, a case or a statement is left
out. Texts for people (strings with blanks, f-strings, `title=` and `summary=`), names of loggers,
annotations, type variables and decorators stay as they are.
"""

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from types import CodeType
from typing import Any, Final, NamedTuple, TypeVar

_Entry = TypeVar("_Entry")
_Node = TypeVar("_Node", bound=ast.AST)

# What takes the place of an operator, and of a function or method.
_OPERATORS: Final[dict[type[ast.AST], Sequence[type[ast.AST]]]] = {
    old: new
    for old, *new in (
        *((ast.Lt, ast.LtE, ast.GtE), (ast.LtE, ast.Lt, ast.Gt), (ast.Eq, ast.NotEq)),
        *((ast.Gt, ast.GtE, ast.LtE), (ast.GtE, ast.Gt, ast.Lt), (ast.NotEq, ast.Eq)),
        *((ast.Is, ast.IsNot), (ast.IsNot, ast.Is), (ast.In, ast.NotIn), (ast.NotIn, ast.In)),
        *((ast.And, ast.Or), (ast.Or, ast.And), (ast.BitOr, ast.BitAnd), (ast.BitAnd, ast.BitOr)),
        *((ast.Add, ast.Sub), (ast.Sub, ast.Add), (ast.Mult, ast.FloorDiv), (ast.Div, ast.Mult)),
        *((ast.FloorDiv, ast.Mult), (ast.Mod, ast.Mult), (ast.Pow, ast.Mult)),
    )
}
_OPPOSITES: Final = (("min", "max"), ("any", "all"), ("startswith", "endswith"))
_NAMES: Final = {old: new for one, other in _OPPOSITES for old, new in ((one, other), (other, one))}
_UNCHANGED: Final = frozenset({"annotation", "returns", "decorator_list", "format_spec"})
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_ASSIGNMENTS: Final = (ast.Assign, ast.AnnAssign)
_SHOWN: Final = 70


class Mutant(NamedTuple):
    """One change of a module.

    lines: those of the changed expression and of the statement that it is in.
    scope: the outermost function that it is in; "" outside of functions.
    is_constant: it is in an assignment of the module, outside of classes.
    code: compiles the module with the change, or only the changed statement. It changes a tree that
    the mutants of a module share, so a process calls it for one mutant only.
    """

    path: Path
    line: int
    lines: range
    scope: str
    is_constant: bool
    change: str
    code: Callable[[bool], CodeType]


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a module."""
    tree = ast.parse(path.read_text("utf-8"))
    for parent, field, place, statement, scope in _places(tree, tree, ""):
        value = getattr(parent, field)
        old = value if place is None else value[place]
        line = getattr(old, "lineno", statement.lineno)
        lines = range(statement.lineno, getattr(old, "end_lineno", line) + 1)
        for new in _replacements(old):
            changed = new if place is None else [*value[:place], new, *value[place + 1 :]]

            def code(
                whole: bool,
                parent: ast.AST = parent,
                field: str = field,
                changed: Any = changed,
                statement: ast.stmt = statement,
            ) -> CodeType:
                setattr(parent, field, changed)
                module = tree if whole else ast.Module([statement], [])
                return compile(ast.fix_missing_locations(module), path, "exec", dont_inherit=True)

            is_constant = statement in tree.body and isinstance(statement, _ASSIGNMENTS)
            change = _change(old, new)
            yield Mutant(path, line, lines, scope, is_constant, change, code)


def _places(
    node: ast.AST, statement: Any, scope: str
) -> Iterator[tuple[ast.AST, str, int | None, Any, str]]:
    """Every place where a node stands: its parent, field and index, its statement and function."""
    for field, value in ast.iter_fields(node):
        if field in _UNCHANGED:
            continue
        inner = node.name if isinstance(node, _FUNCTIONS) and field == "body" else ""
        for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not _stays(child):
                within = child if isinstance(child, ast.stmt) else statement
                yield node, field, place, within, scope or inner
                yield from _places(child, within, scope or inner)


def _stays(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Subscript(value=ast.Name(id="Annotated" | "Literal")):
            return True
        case ast.keyword(arg="title" | "summary"):
            return True
        case ast.Call(func=ast.Attribute(attr="getLogger") | ast.Name(id="TypeVar")):
            return True
    return False


def _replacements(node: ast.AST) -> Iterator[ast.AST]:  # noqa: C901, PLR0912 -- a case a kind
    match node:
        case ast.Compare(ops=[operator]):
            yield from (_with(node, ops=[new()]) for new in _OPERATORS[type(operator)])
        case ast.BoolOp(op=operator) | ast.BinOp(op=operator) | ast.AugAssign(op=operator):
            yield from (_with(node, op=new()) for new in _OPERATORS.get(type(operator), ()))
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str() as value) if not any(map(str.isspace, value)):
            yield ast.Constant(value + "x")
        case ast.Call(func=ast.Name(id=name)) if name in _NAMES:
            yield _with(node, func=ast.Name(_NAMES[name], ast.Load()))
        case ast.Call(func=ast.Attribute(attr=name) as called) if name in _NAMES:
            yield _with(node, func=_with(called, attr=_NAMES[name]))
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if not isinstance(test, ast.Compare | ast.UnaryOp):
                yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=[_, *_]):
            yield _with(node, ifs=[])
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield _with(node, value=ast.Constant(None))
        case ast.Expr() | ast.Raise():
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Set(elts=[_, _, *_] as entries) if not _are_constants(entries):
            yield from (_with(node, elts=rest) for rest in _without_each(entries))
        case ast.Dict(keys=[_, _, *_] as keys, values=values) if not _are_constants(keys):
            for rest in _without_each(list(zip(keys, values, strict=True))):
                yield _with(node, keys=[key for key, _ in rest], values=[each for _, each in rest])
        case ast.MatchOr(patterns=patterns):
            for left in _without_each(patterns):
                yield ast.MatchOr(left) if left[1:] else left[0]
        case ast.Match(cases=[_, _, *_] as cases):
            yield from (_with(node, cases=rest) for rest in _without_each(cases))


def _are_constants(entries: Sequence[ast.AST | None]) -> bool:
    """Whether each entry is a constant, of which a mutant is as good as one without the entry."""
    return all(isinstance(entry, ast.Constant) for entry in entries)


def _with(node: _Node, **fields: object) -> _Node:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _without_each(entries: Sequence[_Entry]) -> Iterator[list[_Entry]]:
    return ([*entries[:place], *entries[place + 1 :]] for place in range(len(entries)))


def _change(old: ast.AST, new: ast.AST) -> str:
    """Both as text, from a little before the place where they begin to differ."""
    texts = [" ".join(ast.unparse(node).split()) for node in (old, new)]
    same = takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False))
    begin = max(len(list(same)) - _SHOWN // 2, 0)
    return "  ->  ".join(_shown(text, begin) for text in texts)


def _shown(text: str, begin: int) -> str:
    end = begin + _SHOWN
    return "…" * (begin > 0) + text[begin:end] + "…" * (end < len(text))
