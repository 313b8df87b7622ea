"""The first screen of README.md: the first command, the features, and how to know the gateway."""

import re

from sandbox_sim.bootstrap import build
from sandbox_sim.operations import Operation
from sandbox_sim.settings.schema import Settings
from sandbox_sim.web.app import DISPATCHER
from tests.docs.pages import Page

README = Page("README.md")
FIRST = README.section("sandbox_sim")


def test_six_features_follow_the_shortest_command() -> None:
    before, _, features = FIRST.partition("make run ARGS=--lenient")

    assert len(before.splitlines()) < 10
    assert len(FIRST.splitlines()) < 30
    assert len(re.findall(r"^- \*\*", features, re.MULTILINE)) == 6


def test_the_first_screen_has_no_requirements() -> None:
    for requirement in ("package index", "You need Python"):
        assert requirement in README.text
        assert requirement not in FIRST


def test_three_lines_say_how_to_recognise_the_gateway() -> None:
    answer = FIRST.partition("**Is it my gateway?**")[2].partition("\n\n")[2].partition("\n\n")[0]

    assert len(answer.splitlines()) == 3
    assert set(re.findall(r"`(/[\w/]+)`", answer)) <= set(
        build(Settings(store="memory:")).app[DISPATCHER]().paths
    )
    payment = Operation.COLLECT.row.payment
    assert payment is not None
    assert f'`"trans_type": "{payment.trans_type}"`' in answer
    for words in ("HTTP Basic", "`response_code`", "sandbox-sim compare URL"):
        assert words in answer
