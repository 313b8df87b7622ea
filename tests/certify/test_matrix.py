"""The demo shop passes every case, and each shop with one fault fails exactly the cases it should.

Some shops run at the same time: most of a run is waiting. Where the verdicts differ, the shop runs
once more by itself: on a busy machine a status query may come before a callback. There are two
parts, so that two workers of pytest-xdist share them. `CERTIFY_SHOPS=all`, as in .ci/run, takes all
shops; without it a few show that the cases and the runner work.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox_sim.certify.cases import load
from sandbox_sim.certify.verdicts import CaseVerdict, Run
from tests.certify.broken_shops import SHOPS
from tests.certify.shops import certified

CASES = load()
AT_ONCE = 5
FEW = ("the demo shop as it is", "believes unsigned callbacks", "never asks for the status")
EVERYTHING = os.environ.get("CERTIFY_SHOPS") == "all"
CHOSEN = list(SHOPS) if EVERYTHING else FEW


def failed(run: Run) -> frozenset[str]:
    return frozenset(each.case.name for each in run.results if each.verdict is CaseVerdict.FAILED)


@pytest.mark.timeout(240)  # 20 s for the few on a machine that does nothing else
@pytest.mark.parametrize("part", [CHOSEN[::2], CHOSEN[1::2]], ids=["even", "odd"])
def test_each_broken_shop_fails_exactly_its_cases(part: Sequence[str]) -> None:
    def certify(name: str) -> Run:
        return certified(CASES, SHOPS[name].breaks, forgets=SHOPS[name].forgets)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = dict(zip(part, pool.map(certify, part), strict=True))
    for name in part:
        if failed(runs[name]) != SHOPS[name].fails:
            runs[name] = certify(name)

    assert {name: failed(run) for name, run in runs.items()} == {
        name: SHOPS[name].fails for name in part
    }
    assert [name for name, run in runs.items() if run.succeeded] == [
        name for name in part if not SHOPS[name].fails
    ]


def test_each_case_is_failed_by_a_shop_or_stands_for_what_no_fault_here_shows() -> None:
    caught = frozenset[str]().union(*(shop.fails for shop in SHOPS.values()))

    assert {case.name for case in CASES} - caught == {"gateway_restarted"}
