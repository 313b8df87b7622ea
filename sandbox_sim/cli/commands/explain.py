"""`sandbox-sim explain | openapi`: the rules and the paths; no gateway has to run."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import click

from sandbox_sim.explanations import CodeMeaning, Marker, Rule, code_meanings, markers, rules
from sandbox_sim.records.messages import SmsStatus
from sandbox_sim.records.transactions import STATUS_WORDS, Status
from sandbox_sim.settings.schema import defaults
from sandbox_sim.values.response_codes import CATALOGUE

_STATUS_SETTING: Final = "sandbox_reject_status"
_WIDTH: Final = 10
_LONGEST_DEFAULT: Final = 30
_OUR_DECISION: Final = "our own decision, where the interface is silent"
_INTERFACE_RULE: Final = "a rule of the interface"
_PAGES: Final = "docs"
_CHOICES: Final = "fidelity.md#what-sandbox_sim-chose"


@click.command()
@click.argument("name", metavar="CODE|RULE|DECISION")
@click.pass_obj
def explain(obj: Mapping[str, Any], /, name: str) -> None:
    """Explain a response code, a rule, a decision or a status.

    Give a response code such as 019, or the value of the header X-Sandbox-Rule. The output also
    says how to provoke it and which settings change it. No gateway has to run.
    """
    document = _document(name)
    click.echo(json.dumps(document) if obj["as_json"] else "\n".join(_document_lines(document)))


@click.command()
def openapi() -> None:
    """Print the OpenAPI document of all paths.

    No gateway has to run. A running gateway serves its document at /_sandbox/openapi.json.
    """
    from sandbox_sim.bootstrap import build  # noqa: PLC0415 -- --help loads every command
    from sandbox_sim.settings.schema import Settings  # noqa: PLC0415
    from sandbox_sim.web.app import ROUTES  # noqa: PLC0415
    from sandbox_sim.web.openapi.document import openapi_document  # noqa: PLC0415
    from sandbox_sim.web.openapi.routes import ServerFacts  # noqa: PLC0415

    table = build(Settings(store="memory:")).app[ROUTES]()
    click.echo(json.dumps(openapi_document(table, ServerFacts()), indent=2))


def _document(name: str) -> dict[str, Any]:
    """The explanation of a name. Raises `click.BadParameter` if the name is unknown."""
    by_id = {rule.id: rule for rule in rules()}
    known: dict[str, Rule | CodeMeaning | Marker] = {
        **dict.fromkeys((*Status, *STATUS_WORDS), by_id["states.transactions"]),
        **{each.name.lower(): by_id["states.sms"] for each in SmsStatus},
        **{each.code.lower(): each for each in code_meanings()},
        **{name.lower(): rule for name, rule in by_id.items()},
        **{each.id.lower(): each for each in markers()},
    }
    key = name.strip().lower()
    match known.get(key) or known.get(key.zfill(3) if key.isdigit() else key):
        case CodeMeaning() as code:
            return _code_document(code)
        case Rule() as rule:
            return _rule_document(rule)
        case Marker() as marker:
            return {
                "name": marker.id,
                "states": marker.states,
                "provoke": marker.provoke,
                "change": [marker.change],
            }
    close_matches = difflib.get_close_matches(key, known, n=3)
    hint = (
        f"did you mean {' or '.join(close_matches)}?"
        if close_matches
        else "give a code such as 019, or the value of X-Sandbox-Rule"
    )
    raise click.BadParameter(
        f"{name!r} is not a code, rule or decision; {hint}", param_hint="'CODE|RULE|DECISION'"
    )


def _code_document(code: CodeMeaning) -> dict[str, Any]:
    row = CATALOGUE[code.code]
    by_id = {rule.id: rule for rule in rules()}
    settings = [name for rule in code.rules if rule in by_id for name in by_id[rule].settings]
    return {
        "name": code.code,
        "message": row.message,
        "http_status": row.http_status,
        "states": code.means,
        "rules": list(code.rules),
        "see": _cited_rules(" ".join(code.rules), code.code),
        "read": f"{_PAGES}/interface.md#codes",
        "provoke": _with_needs(code.provoke, code.needs),
        "change": _settings([*settings, *([_STATUS_SETTING] if row.sandbox else [])]),
    }


def _rule_document(rule: Rule) -> dict[str, Any]:
    codes = [each.code for each in code_meanings() if rule.id in each.rules]
    is_choice = rule.id[1:].isdigit()
    page = _CHOICES if is_choice else f"interface.md#{rule.id}"
    return {
        "name": rule.id,
        "section": rule.section,
        "is": _OUR_DECISION if is_choice else _INTERFACE_RULE,
        "states": " ".join(rule.states.split()),
        "codes": codes,
        "see": _cited_rules(rule.states, rule.id),
        "read": f"{_PAGES}/{page}",
        "provoke": _with_needs(rule.provoke, rule.needs),
        "change": _settings(rule.settings),
    }


def _cited_rules(text: str, own_name: str) -> dict[str, str]:
    """The statements of the other rules that a text names."""
    statements = {rule.id: " ".join(rule.states.split()) for rule in rules()}
    ids = dict.fromkeys(re.findall(r"\bD\d+\b|\b[a-z]+\.\d+\b", text))
    return {name: statements[name] for name in ids if name in statements and name != own_name}


def _with_needs(provoke: str, needs: str) -> str:
    return f"{provoke}, with sandbox-sim serve --set '{needs}'" if needs else provoke


def _settings(names: Iterable[str]) -> list[str]:
    """Each setting once, with its default if that is short JSON."""
    known = defaults()
    shown = []
    for name in dict.fromkeys(names):
        try:
            default = json.dumps(known[name])
        except TypeError:  # credentials
            default = ""
        shown.append(f"{name} ({default})" if 0 < len(default) <= _LONGEST_DEFAULT else name)
    return shown


def _document_lines(document: Mapping[str, Any]) -> Iterator[str]:
    head = document["name"]
    if "message" in document:
        head += f": {document['message']} (HTTP {document['http_status']})"
    elif "section" in document:
        head += f", {document['is']} ({document['section']})"
    yield click.style(head, bold=True)
    yield from _field_line("means", document["states"])
    for name, states in document.get("see", {}).items():
        yield from _field_line("rule" if "message" in document else "see", f"{name}: {states}")
    yield from _field_line("codes", ", ".join(document.get("codes", ())))
    yield from _field_line("provoke", document["provoke"])
    yield from _field_line("change", ", ".join(document["change"]) or "no setting changes it")
    yield from _field_line("read", document.get("read", ""))


def _field_line(name: str, text: str) -> Iterator[str]:
    if text:
        yield f"  {name:<{_WIDTH}}{text}"
