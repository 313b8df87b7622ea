"""The demo shop passes every case, and each shop with one fault fails exactly the cases it should.

The shops live in `ShopTime`, so a run never waits, and its verdicts are the same on a busy
machine. A shop with a fault runs the cases that it must fail, and a sixth of the others; .ci/run
tries all. `gateway_restarted`, which none of these faults can touch, runs on the first shop only.
"""

from collections.abc import Sequence

import pytest
from hypothesis import settings

from sandbox_sim.certify.cases import CertifyCase, load
from sandbox_sim.certify.verdicts import CaseVerdict
from tests.certify.broken_shops import SHOPS
from tests.certify.shops import certified

CASES = load()
# Each shop takes another part of the cases that it must not fail.
PARTS = 6 if settings.get_current_profile_name() == "suite" else 1


def cases_of(name: str) -> Sequence[CertifyCase]:
    """The cases that a shop runs, in their order."""
    shop = SHOPS[name]
    if not shop.fails:
        return CASES
    part = list(SHOPS).index(name) % PARTS
    return [
        case
        for place, case in enumerate(CASES)
        # Without the restart of the gateway its state is in memory, which is twice as fast.
        if not case.restarts("gateway")
        and (case.control or case.name in shop.fails | shop.needs or place % PARTS == part)
    ]


@pytest.mark.parametrize("name", SHOPS)
def test_each_broken_shop_fails_exactly_its_cases(name: str) -> None:
    shop = SHOPS[name]

    found = certified(cases_of(name), shop.breaks, forgets=shop.forgets)

    failed = {each.case.name for each in found.results if each.verdict is CaseVerdict.FAILED}
    assert failed == shop.fails
    assert found.succeeded is not bool(shop.fails)


@pytest.mark.parametrize(
    "name",
    [
        "the unchanged demo shop",
        "charges twice after a lost answer",
        "refunds at each click",
    ],
)
def test_a_shop_fails_the_same_cases_if_each_case_has_its_own_service(name: str) -> None:
    shop = SHOPS[name]
    alone = {"application_restarted", "gateway_restarted"}
    chosen = cases_of(name)
    cases = [case for case in CASES if case in chosen or case.name in alone]

    found = certified(cases, shop.breaks, by_service=True)

    verdicts = {each.case.name: each.verdict for each in found.results}
    assert {name for name, each in verdicts.items() if each is CaseVerdict.FAILED} == shop.fails
    assert CaseVerdict.NOT_APPLICABLE not in verdicts.values()
    assert {each.case.name for each in found.results if each.alone} == alone


def test_every_case_except_gateway_restarted_is_failed_by_a_shop() -> None:
    caught = frozenset[str]().union(*(shop.fails for shop in SHOPS.values()))

    assert {case.name for case in CASES} - caught == {"gateway_restarted"}
