"""The first screen of README.md: what one gets, what to type, and whether it is one's gateway."""

import re

from sandbox_sim.bootstrap import build
from sandbox_sim.operations import Operation
from sandbox_sim.settings.schema import Settings
from sandbox_sim.web.app import DISPATCHER
from tests.docs.pages import Page

README = Page("README.md")
FIRST = README.section("sandbox_sim")


def test_what_one_gets_is_six_lines_after_the_shortest_thing_to_type() -> None:
    before, _, gets = FIRST.partition("make run ARGS=--lenient")

    assert len(before.splitlines()) < 10
    assert len(FIRST.splitlines()) < 30
    assert len(re.findall(r"^- \*\*", gets, re.MULTILINE)) == 6


def test_no_condition_stands_before_it() -> None:
    for condition in ("package index", "You need Python"):
        assert condition in README.text
        assert condition not in FIRST


def test_how_to_tell_that_it_is_ones_gateway_takes_three_lines() -> None:
    question = FIRST.partition("**Is it my gateway?**")[2].partition("\n\n")[2].partition("\n\n")[0]

    assert len(question.splitlines()) == 3
    assert set(re.findall(r"`(/[\w/]+)`", question)) <= set(
        build(Settings(store="memory:")).app[DISPATCHER]().paths
    )
    payment = Operation.COLLECT.row.payment
    assert payment is not None
    assert f'`"trans_type": "{payment.trans_type}"`' in question
    for words in ("HTTP Basic", "`response_code`", "sandbox-sim compare URL"):
        assert words in question
