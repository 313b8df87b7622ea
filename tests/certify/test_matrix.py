"""The demo shop passes every case, and each shop with one fault fails exactly the cases it should.

The shops live in `ShopTime`, so a run waits for nothing, and its verdicts are the same on a busy
machine. `gateway_restarted`, which none of these faults can touch, runs on the first shop only.
"""

import pytest

from sandbox_sim.certify.cases import load
from sandbox_sim.certify.verdicts import CaseVerdict
from tests.certify.broken_shops import SHOPS
from tests.certify.shops import certified

CASES = load()


@pytest.mark.parametrize("name", SHOPS)
def test_each_broken_shop_fails_exactly_its_cases(name: str) -> None:
    shop = SHOPS[name]
    # The state of the gateway is in memory, which is twice as fast, where no case restarts it.
    cases = [case for case in CASES if not (shop.fails and case.restarts("gateway"))]

    found = certified(cases, shop.breaks, forgets=shop.forgets)

    failed = {each.case.name for each in found.results if each.verdict is CaseVerdict.FAILED}
    assert failed == shop.fails
    assert found.succeeded is not bool(shop.fails)


@pytest.mark.parametrize(
    "name",
    [
        "the demo shop as it is",
        "charges twice after a lost answer",
        "refunds at each click",
    ],
)
def test_a_shop_fails_the_same_cases_where_each_case_has_a_service_of_its_own(name: str) -> None:
    shop = SHOPS[name]

    found = certified(CASES, shop.breaks, by_service=True)

    verdicts = {each.case.name: each.verdict for each in found.results}
    assert {name for name, each in verdicts.items() if each is CaseVerdict.FAILED} == shop.fails
    assert CaseVerdict.NOT_APPLICABLE not in verdicts.values()
    alone = {each.case.name for each in found.results if each.alone}
    assert alone == {"application_restarted", "gateway_restarted"}


def test_each_case_is_failed_by_a_shop_or_stands_for_what_no_fault_here_shows() -> None:
    caught = frozenset[str]().union(*(shop.fails for shop in SHOPS.values()))

    assert {case.name for case in CASES} - caught == {"gateway_restarted"}
