"""`make check`: finds turns of phrase that a reader stumbles over, in the code and the docs.

It reads the string literals, docstrings, comments and names of functions and classes of the
product, the tests and the tools, the templates and cases, and README.md and docs. Each find is a
line `file:line: phrase: what to write`.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]

# A pattern, without regard to case and line breaks, and what to write.
PATTERNS: Final = tuple(
    (re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), instead)
    for pattern, instead in (
        (r"\b(?:is|are|was|were) no (?!longer\b|more\b|ne\b)[a-z]+", "is not a …, or has no …"),
        (r"\b(?:is|are|was|were) (?-i:none)\b", "is not one, or is not listed in …"),
        (r"\bthe most of\b", "the maximum of …"),
        (r"\bwho(?:so)?ever\b", "anyone who …"),
        (r"\bwhat (?:came|comes|becomes|became) of\b", "the result of …"),
        (r"\banew\b", "again"),
        (r"\b(?:stands?|stood) still\b", "is stopped"),
        (r"\bstands? in suspense\b", "is in suspense"),
        (r"\b(?:is|are|was|were) told\b(?! apart)", "gets, or who says it"),
        (r"\bas told\b", "as configured, or as asked"),
        (r"\blet(?:s|ting)? go\b", "releases, or stops"),
        (r"\b(?:out|works?|waits?|kept|goes) no more\b", "no longer"),
        (r"\bbut for (?:the|those|what|one|its|a)\b", "except for …"),
        (r"\bonce only\b", "only once"),
        (r"\bwhatever the routes\b", "for any routes"),
        (r"\bnobody\b", "no one, or what is missing"),
        (r"\bas ever\b", "as before"),
        (r"\b(?:after|for|within|in) so (?:many|much|long)\b(?! as\b| that\b)", "this many …"),
        (r"\bwhere (?:it has|it is|there are|there is) (?:none|not|one|some)\b", "if …"),
    )
)
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_THERE: Final = re.compile(r"\bthere\s+\Z", re.IGNORECASE)


def finds(text: str) -> Iterator[tuple[int, str, str]]:
    """Each find in a text: its line from 0, the phrase and what to write."""
    for pattern, instead in PATTERNS:
        for found in pattern.finditer(text):
            if not _THERE.search(text[: found.start()]):
                yield text.count("\n", 0, found.start()), " ".join(found[0].split()), instead


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """String literals, names of functions and classes, and comments, with the first line from 1."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, _CAPITAL.sub(" ", node.name).replace("_", " ")
        if isinstance(node, ast.JoinedStr):
            parts = (part.value for part in node.values if isinstance(part, ast.Constant))
            yield node.lineno, "…".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    block, begins = "", 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            begins = begins if block else token.start[0]
            block += token.string.lstrip("# ") + "\n"
        elif block and token.type not in {tokenize.NL, tokenize.NEWLINE}:
            yield begins, block
            block = ""


def finds_in(file: Path) -> Iterator[str]:
    """A line for each find in a file."""
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".html":  # the tests of a template are code
        source = re.sub(r"\{[{%].*?[}%]\}", "", source)
    texts = python_texts(source) if file.suffix == ".py" else [(1, source)]
    for begins, text in texts:
        for line, phrase, instead in finds(text):
            yield f"{file.relative_to(ROOT)}:{begins + line}: “{phrase}”: write “{instead}”"


def files() -> Iterator[Path]:
    """The files that are read."""
    yield ROOT / "README.md"
    yield from (ROOT / "docs").rglob("*.md")
    for suffix in ("py", "html", "toml"):
        yield from (ROOT / "sandbox_sim").rglob(f"*.{suffix}")
    for folder in ("tests", "attack", "bench", "chaos", "mutate"):
        yield from (ROOT / folder).rglob("*.py")


if __name__ == "__main__":
    found = sorted({line for file in files() for line in finds_in(file)})
    print(*found, sep="\n")  # noqa: T201
    sys.exit(bool(found))
