"""The rules, response codes and fields as data.

`sandbox-sim explain`, docs/fidelity.md and the OpenAPI document show these texts.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

_FOLDER: Final = files(__name__)


@dataclass(frozen=True)
class Rule:
    """One `[[rule]]` of rules.toml.

    provoke: how to see it; `needs` is the setting for that, as NAME=VALUE.
    scope: who follows it: the code, or the operator of the server.
    """

    id: str
    section: str
    states: str
    settings: Sequence[str] = ()
    scope: Literal["sandbox", "operator"] = "sandbox"
    provoke: str = ""
    needs: str = ""


@dataclass(frozen=True)
class CodeMeaning:
    """One `[[code]]` of codes.toml. rules: the values of `X-Sandbox-Rule` that come with it."""

    code: str
    means: str
    rules: Sequence[str]
    provoke: str
    needs: str = ""


@dataclass(frozen=True)
class Marker:
    """A value of `X-Sandbox-Rule` that is not a rule: what a user added decided the answer."""

    id: str
    states: str
    provoke: str
    change: str


def rules() -> list[Rule]:
    """All rules, in the order of docs/fidelity.md."""
    return [Rule(**table) for table in _document("rules.toml")["rule"]]


def code_meanings() -> list[CodeMeaning]:
    """All response codes."""
    return [CodeMeaning(**table) for table in _document("codes.toml")["code"]]


def markers() -> list[Marker]:
    """`override` and `fault`."""
    return [Marker(**table) for table in _document("rules.toml")["marker"]]


def field_meanings() -> Mapping[str, str]:
    """What a field means wherever it is, by its name."""
    return _document("fields.toml")


@cache
def _document(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / name).read_text("utf-8"))
