"""The cases are those of `fixtures/samples`, with new ids for each run."""

import pytest

from sandbox_sim.cli.compare.cases import fill, plan
from tests.cli.compare.cases import CASES, rendered


def test_the_cases_are_the_samples() -> None:
    assert CASES.read_text("utf-8") == rendered(), "run python -m tests.cli.compare.cases --write"


def test_each_case_has_new_services_that_keep_the_last_digit_9() -> None:
    fresh = {each.case.name: each.request.get("service_id") for each in plan(123456, []).cases}

    assert len({each for each in fresh.values() if isinstance(each, int)}) > 70
    assert str(fresh["08-balance-of-9"]).endswith("9")
    assert not str(fresh["08-balance-success"]).endswith("9")


def test_every_case_has_its_own_transaction_id() -> None:
    ids = [
        each.request["transaction_id"]
        for each in plan(1, []).cases
        if "transaction_id" in each.request
    ]

    assert len(set(ids)) == len(ids)


def test_the_case_of_another_service_asks_with_a_second_service() -> None:
    (case,) = (each for each in plan(1, []).cases if each.case.name == "07-status-other-service")

    assert case.request["service_id"] != case.then["service_id"]
    assert case.request["transaction_id"] == case.then["transaction_id"]


def test_given_services_are_used_and_cases_that_need_others_are_left_out() -> None:
    chosen = plan(1, [701])

    why = {each.name: each.why for each in chosen.left_out}
    assert {each.request["service_id"] for each in chosen.cases if each.case.services} == {701}
    assert why["08-balance-of-9"] == "it needs a --service-id that ends in 9"
    assert why["07-status-other-service"] == "it needs one more --service-id"
    assert why["11-history-empty"].startswith("the service has a history")


def test_a_case_that_takes_minutes_is_left_out() -> None:
    assert ("07-status-expired", "it takes 15 minutes") in plan(1, []).left_out


@pytest.mark.parametrize(
    ("request_", "sent"),
    [
        ({"to": ["1", "<2 times more>"]}, {"to": ["1", "1", "1"]}),
        ({"url": "<url>/x", "batch_id": "<batch_id>"}, {"url": "<url>/x", "batch_id": "b1"}),
        ({"amount": 10.5}, {"amount": 10.5}),
    ],
)
def test_placeholders_with_known_values_are_filled(
    request_: dict[str, object], sent: dict[str, object]
) -> None:
    assert fill(request_, {"batch_id": "b1"}) == sent
