"""The cache keeps results for short texts only."""

import ast
import weakref
from pathlib import Path

import sandbox_sim
from sandbox_sim.values.redaction import LONGEST_TEXT, cached_by_text

PACKAGE = Path(sandbox_sim.__file__).parent

# Caches of functions that get no text of a user: numbers, settings, our statements, our paths, the
# accounts of the ledger, which services and networks have.
NOT_OF_TEXTS = {
    "_first_lines",
    "_exactly",
    "_add_if_unused",
    "with_numbered_parameters",
    "_short_body",
    *("named", "wallet_of", "_ends", "_router"),
}


class Made:
    """A result that is made of a text."""

    def __init__(self, text: str) -> None:
        self.text = text


def test_of_a_short_text_the_result_is_kept() -> None:
    make = cached_by_text(maxsize=2)(Made)

    assert make("a") is make("a")
    assert make("a" * LONGEST_TEXT) is make("a" * LONGEST_TEXT)


def test_of_a_long_one_nothing_is() -> None:
    make = cached_by_text(maxsize=2)(Made)
    made = make("a" * (LONGEST_TEXT + 1))
    gone = weakref.ref(made)

    assert make("a" * (LONGEST_TEXT + 1)).text == made.text
    del made
    assert gone() is None


def test_no_more_than_so_many_are_kept() -> None:
    make = cached_by_text(maxsize=2)(Made)
    first = make("a")
    make("b")
    make("c")

    assert make("a") is not first


def test_every_other_cache_is_known_to_hold_no_texts_of_users() -> None:
    """A new cache uses `cached_by_text`, which limits the length of texts, or is listed above."""
    found = {
        node.name
        for text in (path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
        if "lru_cache" in text or "functools.cache" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and any(
            name in ast.unparse(decorator)
            for decorator in node.decorator_list
            for name in ("lru_cache", "functools.cache")
        )
    }

    assert found == NOT_OF_TEXTS
