"""`make weight`: how much code there is, counted without blank lines, comments and docstrings.

It also names the classes of the product that are defined more than once, the demo shop apart.
"""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PRODUCT: Final = ROOT / "sandbox_sim"
_LAYOUT: Final = frozenset(
    {
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
        *(tokenize.ENCODING, tokenize.ENDMARKER),
    }
)
_WITH_DOCSTRING: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> int:
    """The number of lines of a module that have code."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {
        line
        for token in tokens
        if token.type not in _LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines.difference(*_docstrings(ast.parse(text))))


def _docstrings(module: ast.Module) -> Iterator[range]:
    """The lines of each docstring, the empty range first."""
    yield range(0)
    for node in ast.walk(module):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            yield range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1)


# To parse every module takes seconds. A class in the example of a docstring counts too.
_CLASS: Final = re.compile(r"^ *class (\w+)[:(\[]", re.MULTILINE)


def repeated_classes(modules: Sequence[Path]) -> Mapping[str, Sequence[Path]]:
    """The names of classes that are defined more than once, each with the modules that do."""
    found = defaultdict(list)
    for path in modules:
        for name in _CLASS.findall(path.read_text("utf-8")):
            found[name].append(path)
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def main() -> None:
    """Print the figures."""
    modules = sorted(PRODUCT.rglob("*.py"))
    texts = [path.read_text("utf-8") for path in modules]
    tests = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")]
    print(f"code lines of the product: {sum(map(code_lines, texts)):,}")
    print(f"lines of the product: {sum(len(text.splitlines()) for text in texts):,}")
    print(f"modules: {len(modules)}")
    print(f"lines of tests: {sum(len(text.splitlines()) for text in tests):,}")
    repeated = repeated_classes([each for each in modules if PRODUCT / "demo" not in each.parents])
    print(f"class names of the product defined more than once: {len(repeated)}")
    for name, paths in repeated.items():
        print(f"  {name}: {', '.join(path.relative_to(PRODUCT).as_posix() for path in paths)}")


if __name__ == "__main__":
    main()
