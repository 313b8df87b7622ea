"""The rows of the operations, compared with the interface, with other tables and with a gateway."""

import re
from pathlib import Path

import pytest

from sandbox_sim.operations import (
    ACTIONS,
    NETWORK_OPERATIONS,
    OPERATIONS_BY_PATH,
    PAYMENTS,
    Operation,
    Party,
    make_payment_operation,
)
from sandbox_sim.payments.sandbox_rules import CHECKS, Facts, decide
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.values.response_codes import ACCEPTED, CATALOGUE
from tests.kit.requests import REQUEST_TIME, collection
from tests.records.samples import payment

# A row of the table in docs/interface.md: path, `trans_type` and response code.
IN_INTERFACE = re.compile(
    r"^\|.*\[.+\]\(#endpoint.\d+\).* \| `(.+?)` \| `?(\w*)`? ?\| (\d+)", re.MULTILINE
)

INBOX = "http://127.0.0.1:9/inbox"


def sample(operation: Operation) -> dict[str, object]:
    url = f"{INBOX}/shop"
    return operation.sample(
        55, INBOX, transaction_id="T1", callback_url=url, request_time=REQUEST_TIME
    )


def test_twelve_operations_share_nine_paths() -> None:
    assert len(Operation) == 12
    assert len(OPERATIONS_BY_PATH) == 9
    assert {each: path for path, found in OPERATIONS_BY_PATH.items() for each in found} == {
        each: each.row.path for each in Operation
    }
    assert sum(map(len, OPERATIONS_BY_PATH.values())) == 12


def test_path_type_and_code_are_those_of_the_interface() -> None:
    page = (Path(__file__).parent.parent / "docs/interface.md").read_text("utf-8")

    assert sorted(IN_INTERFACE.findall(page)) == sorted(
        (row.path, row.payment.trans_type if row.payment else "", row.success)
        for row in (operation.row for operation in Operation)
    )


@pytest.mark.parametrize("operation", Operation)
def test_the_codes_of_a_row_are_in_the_catalogue(operation: Operation) -> None:
    assert operation.row.success in ACCEPTED
    assert CATALOGUE.keys() >= set(operation.row.rejections)
    assert ACCEPTED.isdisjoint(operation.row.rejections)


@pytest.mark.spec("endpoint.7", "endpoint.9", "endpoint.10")
def test_messages_and_queries_have_their_rejections() -> None:
    assert {each: set(each.row.rejections) for each in Operation if each not in PAYMENTS} == {
        Operation.STATUS: {"027"},
        Operation.SMS: {"216", "237", "371", "S002"},
        Operation.BULK_SMS: {"216", "237", "371", "S002", "389", "390"},
        Operation.BALANCE: set(),
        Operation.SMS_HISTORY: set(),
        Operation.SMS_BALANCE: set(),
    }


@pytest.mark.parametrize("operation", PAYMENTS)
def test_a_payment_either_spends_from_a_wallet_or_fills_one(operation: Operation) -> None:
    assert (operation.row.spends is None) is not (operation.row.fills is None)


@pytest.mark.parametrize("operation", ACTIONS)
def test_the_fields_that_fail_replace_fields_of_the_valid_request(operation: Operation) -> None:
    row = operation.row

    assert row.valid.keys() >= row.failing.keys()
    assert {name: row.valid[name] for name in row.failing} != row.failing


@pytest.mark.decision("D28")
@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        *((Operation.COLLECT, "MOM"), (Operation.CARD, "CRD"), (Operation.DEPOSIT, "MOM")),
        *((Operation.PAYOUT, "MOM"), (Operation.BILL, "BLP"), (Operation.AIRTIME, "ATP")),
    ],
)
def test_the_mode_of_a_payment_is_its_usual_option_or_else_its_type(
    operation: Operation, mode: str
) -> None:
    assert PAYMENTS[operation].usual_mode == mode


def test_every_kind_of_party_has_checks_in_the_sandbox() -> None:
    assert {PAYMENTS[operation].party for operation in CHECKS} == set(Party)


@pytest.mark.parametrize("operation", PAYMENTS)
def test_the_sandbox_accepts_the_valid_and_rejects_the_failing_request_of_a_row(
    operation: Operation,
) -> None:
    row, name = operation.row, PAYMENTS[operation].party_field
    valid = payment(operation, nw=row.valid["nw"], party=row.valid[name])
    failing = valid._replace(party=row.failing[name])

    assert decide(valid, Behaviour(), Facts()).code == row.success
    assert decide(failing, Behaviour(), Facts()).code in row.rejections


def test_networks_carry_payments_and_single_messages() -> None:
    assert set(NETWORK_OPERATIONS) == {*PAYMENTS, Operation.SMS}


def test_the_sample_of_a_payment_has_every_field_that_the_interface_requires() -> None:
    assert sample(Operation.COLLECT).keys() == collection().keys()
    assert sample(Operation.CARD)["landing_page"] == f"{INBOX}/thanks"
    assert "landing_page" not in sample(Operation.PAYOUT)
    assert sample(Operation.BALANCE) == {"service_id": 55, "request_time": ""}


@pytest.mark.parametrize(
    ("trans_type", "payment_option", "operation"),
    [
        ("CTM", "MOM", Operation.COLLECT),
        ("CTM", "CRM", Operation.CARD),
        ("CTM", None, None),  # a collection or a card payment
        ("DTTW", None, Operation.DEPOSIT),
        ("MTC", "BNK", Operation.PAYOUT),
        ("MTC", None, Operation.PAYOUT),
        ("DTTW", "BNK", None),
        (None, "MOM", None),
    ],
)
def test_trans_type_and_payment_option_decide_the_operation(
    trans_type: str | None, payment_option: str | None, operation: Operation | None
) -> None:
    assert make_payment_operation(trans_type, payment_option) is operation
