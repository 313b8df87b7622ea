"""The code cites every rule, a test checks it, and docs/fidelity.md lists both."""

from sandbox_sim.explanations import rules
from sandbox_sim.settings.schema import Settings
from tests import fidelity
from tests.fidelity import PAGE

KNOWN = {rule.id: rule for rule in rules()}
IN_SCOPE = [rule for rule in rules() if rule.scope == "sandbox"]


def test_every_rule_in_scope_is_claimed_by_a_test_and_cited_in_the_code() -> None:
    claimed, cited = {claim.rule for claim in fidelity.claims()[0]}, fidelity.citations()

    assert len(KNOWN) == len(rules()), "an id names one rule"
    assert [rule.id for rule in IN_SCOPE if rule.id not in claimed] == []
    assert [rule.id for rule in IN_SCOPE if rule.id not in cited] == []
    assert {rule: where for rule, where in cited.items() if rule not in KNOWN} == {}


def test_tests_claim_existing_rules_by_the_right_marker() -> None:
    """Interface and decisions have a marker each."""
    claims = fidelity.claims()[0]

    assert [claim for claim in claims if claim.rule not in KNOWN] == []
    assert [c for c in claims if (c.marker == "decision") != c.rule.startswith("D")] == []


def test_markers_are_on_tests_and_have_literal_ids() -> None:
    # The samples take their markers from the rules in their answers.
    strays = [at for at in fidelity.claims()[1] if not at.startswith("tests/test_fixtures.py:")]

    assert strays == []


def test_answers_name_only_existing_rules() -> None:
    answered = fidelity.rules_answered()

    assert {"sandbox.3", "D5", "errors"} <= set(answered)
    assert {rule: where for rule, where in answered.items() if rule not in KNOWN} == {}


def test_the_settings_of_a_rule_exist_and_every_setting_is_described() -> None:
    named, fields = {name for rule in rules() for name in rule.settings}, Settings.model_fields

    assert named - set(fields) == set()
    assert [name for name in fields if not fields[name].description] == []


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == fidelity.render(), "run python -m tests.fidelity --write"
