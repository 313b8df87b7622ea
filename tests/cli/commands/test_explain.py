"""`sandbox-sim explain`: codes, rules and decisions in the terminal. What it says is correct."""

import json
import shlex
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, TypeVar

import pytest
from click.testing import Result

from sandbox_sim.explanations import CodeMeaning, Rule, code_meanings, markers, rules
from sandbox_sim.settings.loading import load
from sandbox_sim.values.response_codes import CATALOGUE
from tests.cli.asking import on
from tests.cli.processes import in_process
from tests.conftest import StartSandbox
from tests.docs.pages import all_pages
from tests.fidelity import rules_answered

MARKERS = [marker.id for marker in markers()]
RULES_AND_MARKERS = [*(rule.id for rule in rules()), *MARKERS]

pytestmark = pytest.mark.decision("D36")


def answered() -> set[str]:
    """The rules that answers name; D6 is named by the OpenAPI document only."""
    return set(rules_answered()) - {"D6"}


def explained(name: str) -> Result:
    return in_process("explain", name)


def document(name: str) -> dict[str, Any]:
    result = in_process("--json", "explain", name)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_code_lists_its_rules_the_command_that_provokes_it_and_its_settings() -> None:
    lines = explained("019").stdout.splitlines()

    assert lines[0] == "019: Number, account or card is not allowed in sandbox (HTTP 200)"
    texts = {line.split()[0]: line for line in lines[1:]}
    rules_of_code = [line for line in lines if line.split()[0] == "rule"]
    assert [line.split()[1] for line in rules_of_code][:2] == ["sandbox.1:", "D11:"]
    assert all(len(line.split()) > 6 for line in rules_of_code)
    assert "trigger collect --set customer_number=0540010000" in texts["provoke"]
    assert "accept_international (false)" in texts["change"]
    assert "sandbox_reject_status (200)" in texts["change"]


@pytest.mark.parametrize(
    ("typed", "name"),
    [("19", "019"), ("s002", "S002"), ("d11", "D11"), (" Sandbox.3 ", "sandbox.3")],
)
def test_a_name_may_be_typed_without_zeros_and_in_any_case(typed: str, name: str) -> None:
    assert document(typed)["name"] == name


def test_every_code_and_rule_is_explained_and_names_a_page_to_read() -> None:
    pages = {page.name: page for page in all_pages()}

    for name in (*RULES_AND_MARKERS, *CATALOGUE):
        found = document(name)
        assert found["name"] == name
        assert explained(name).stdout.startswith(name)
        if name not in MARKERS:
            page, _, anchor = found["read"].partition("#")
            assert anchor in pages[page].anchors, name


def test_a_rule_shows_its_kind_and_the_texts_of_the_rules_that_it_names() -> None:
    lines = explained("service.3").stdout.splitlines()

    assert lines[0] == "service.3, a rule of the interface (What the service does)"
    (see,) = (line for line in lines if line.split()[0] == "see")
    assert see.split()[1] == "sandbox.5:"
    assert "bank and card payouts are not available" in see
    assert explained("D33").stdout.startswith(
        "D33, our own decision, where the interface is silent"
    )


@pytest.mark.parametrize("typed", ["001", "2", "cancelled"])
def test_the_status_of_a_payment_is_explained_by_the_rule_of_its_transitions(typed: str) -> None:
    assert explained(typed).stdout.startswith("states.transactions, a rule of the interface")


def test_the_status_of_an_sms_is_explained_by_the_rule_of_its_transitions() -> None:
    assert explained("REFUNDED").stdout.startswith("states.sms, a rule of the interface")


@pytest.mark.parametrize(("typed", "hint"), [("D99", "did you mean"), ("", "give a code such as")])
def test_an_unknown_name_is_wrong_usage(typed: str, hint: str) -> None:
    result = explained(typed)

    assert result.exit_code == 2
    assert hint in result.stderr


def test_every_code_has_a_meaning_and_names_existing_rules() -> None:
    assert {each.code for each in code_meanings()} == set(CATALOGUE)
    named = {rule for each in code_meanings() for rule in each.rules}
    assert named <= set(RULES_AND_MARKERS)


def test_every_rule_of_an_answer_says_how_to_provoke_it() -> None:
    assert [rule.id for rule in rules() if rule.id in answered() and not rule.provoke] == []


Provoked = TypeVar("Provoked", Rule, CodeMeaning)


def with_a_command(entries: Iterable[Provoked]) -> list[Provoked]:
    """The entries that a single command provokes."""
    trigger = "sandbox-sim trigger "
    return [
        each for each in entries if each.provoke.startswith(trigger) and "," not in each.provoke
    ]


async def provoked(start_sandbox: StartSandbox, entry: Rule | CodeMeaning) -> dict[str, Any]:
    """The answer to the command of an entry, with the setting that the entry needs."""
    name, _, value = entry.needs.partition("=")
    settings = load(flags={name: value}).settings if name else None
    given = {name: getattr(settings, name)} if name else {}
    sandbox = await start_sandbox(**given)

    words = shlex.split(entry.provoke.removeprefix("sandbox-sim "))
    result = await on(sandbox, "--json", *words, "--no-wait")

    answer: dict[str, Any] = json.loads(result.stdout)["answer"]
    return answer


@pytest.mark.parametrize("code", with_a_command(code_meanings()), ids=attrgetter("code"))
async def test_the_command_provokes_the_code(
    start_sandbox: StartSandbox, code: CodeMeaning
) -> None:
    answer = await provoked(start_sandbox, code)

    assert answer["body"]["response_code"] == code.code
    assert answer["rule"] in code.rules


async def test_the_command_of_each_rule_of_an_answer_provokes_it(
    start_sandbox: StartSandbox,
) -> None:
    # No parameters: finding these rules parses the code, which each worker would do as it collects.
    tried = [rule for rule in with_a_command(rules()) if rule.id in answered()]

    found = {rule.id: (await provoked(start_sandbox, rule))["rule"] for rule in tried}

    assert found
    assert found == {rule.id: rule.id for rule in tried}
