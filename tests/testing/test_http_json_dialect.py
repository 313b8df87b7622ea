"""The tables of an `http_json` network against a simulated network that is made of them."""

import re
from copy import deepcopy
from typing import Any

import pytest

from sandbox_sim.testing.network_contract import NetworkContract, PeerFactory, http_peer
from sandbox_sim.testing.network_contract.contract import PROOFS
from sandbox_sim.testing.network_contract.http_json_dialect import HttpJsonDialect, verdict_on
from tests.networks.http_json.api import changed
from tests.networks.http_json.fake_networks import documented

pytestmark = pytest.mark.decision("D39")

PROOF = {proof.name: proof for proof in PROOFS}
SIGNED = {"trust": "signed", "signature_header": "X-Sign"}
FIELDS = {"outcome": "state", "reference": "id", "amount": "sum", "currency": "in"}


def tables(**by: Any) -> dict[str, Any]:
    """Settings for which every proof holds, with other values; see `changed`."""
    return changed(
        **{
            "auth": "bearer",
            "auth_secret": "secret-of-the-user",
            "submit__fields": FIELDS,
            "status__statuses": {"404": "not_found"},
            "notification": SIGNED,
            **by,
        }
    )


class TestTheTablesOfPaystack(NetworkContract):
    def peer(self) -> PeerFactory:
        return http_peer(HttpJsonDialect(documented("paystack")))


class TestTheTablesOfHubtel(NetworkContract):
    def peer(self) -> PeerFactory:
        return http_peer(HttpJsonDialect(documented("hubtel")))


FORMS: dict[str, dict[str, Any]] = {
    "a form": {
        "submit__json": None,
        "submit__form": {"r": "{reference_hex}", "sum": "{amount_text}", "who": "{nickname}"},
    },
    "all in the path": {
        "submit__method": "GET",
        "submit__json": None,
        "submit__headers": None,
        "submit__path": "/pay%20now/{reference}?m={amount_minor}&to={callback_url}&x={{{nw}}}",
    },
    "texts of several placeholders": {
        "submit__json": {
            "deep": [{"all": "{service_id}-{transaction_id} {amount} {currency}"}, 2.5, True],
            "who": "{customer_number_local}",
        },
        "submit__headers": None,
        "submit__fields": {"outcome": ["data.0.state", "state"]},
        "notification": {"trust": "hint", "fields": {"outcome": "state", "network_id": "id"}},
        "status__path": "/{service_id}/{transaction_id}",
    },
    "by the attempt": {
        "submit__json": {"attempt": "{attempt_id}"},
        "submit__headers": {"X-Sum": "{amount}"},
        "submit__fields": {"outcome": "state", "amount": "sum"},
        "notification": {"trust": "hint", "fields": {"outcome": "state", "network_id": "id"}},
        "status__path": "/payments/{attempt_id}",
    },
    "by the identifier of the network": {
        "submit__fields": {**FIELDS, "network_id": "their.0.id"},
        "status": {
            "method": "POST",
            "path": "/payments",
            "json": {"number": "{network_id}"},
            "statuses": {"404": "not_found"},
        },
    },
    "another host for status, and a key in a header": {
        "status_base_url": "https://status.example",
        "auth": "header",
        "auth_header": "X-Key",
        "repeats_within_s": 60,
    },
    "Basic, and a status alone that takes it": {
        "auth": "basic",
        "auth_user": "user",
        "submit__outcomes": {"NO": "failed", "PAID": "succeeded"},
        "submit__statuses": {"202": "pending"},
        "status__outcomes": {"NEW": "pending", "NO": "failed", "PAID": "succeeded"},
    },
    "signed otherwise": {
        "signature_key": "another",
        "notification": {
            **SIGNED,
            "algorithm": "sha512",
            "encoding": "base64",
            "prefix": "sha512=",
        },
    },
    "messages": {"operations": ["sms"], "submit__json": {"id": "{reference}", "t": "{text}"}},
    "without a status query": {"status": None},
}


@pytest.mark.parametrize("form", FORMS)
async def test_correct_tables_for_requests_of_any_form_are_not_disproved(form: str) -> None:
    found = {name: await verdict_on(tables(**FORMS[form]), PROOF[name]) for name in PROOF}

    assert {name: each for name, each in found.items() if each.word == "disproved"} == {}
    assert found["every_declared_operation_arrives_once"] == ("proved", "")
    assert found["submit_under_silence"] == ("proved", "")


@pytest.mark.parametrize(
    ("wrong", "proof", "reason"),
    [
        (
            {"submit__outcomes": {"NO": "failed", "BAD": "refused 400"}},
            "every_declared_operation_arrives_once",
            "collect ends as .*UNKNOWN",
        ),
        (
            {"submit__statuses": {"409": "refused 400"}},
            "submit_under_conflict",
            "ends as .*REFUSED",
        ),
        (
            {"status__statuses": {"404": "not_found", "429": "not_found"}},
            "status_under_too_many_requests",
            "an unknown reference",
        ),
        (
            {
                "submit__json": {"id": "{attempt_id}"},
                "submit__headers": {"X-Sum": "{amount}"},
                "status__path": "/payments/{attempt_id}",
            },
            "notifications_in_any_order_end_the_same",
            "the notifications change",
        ),
    ],
    ids=["no word for pending", "409 is a refusal", "429 is not found", "another reference"],
)
async def test_tables_that_lose_money_are_disproved(
    wrong: dict[str, Any], proof: str, reason: str
) -> None:
    found = await verdict_on(tables(**wrong), PROOF[proof])

    assert found.word == "disproved"
    assert re.search(reason, found.reason), found.reason


@pytest.mark.parametrize(
    ("less", "proof", "reason"),
    [
        (
            {"status__statuses": {}},
            "an_unknown_reference_is_unknown",
            "nothing in status.outcomes or status.statuses means not_found",
        ),
        (
            {"status__outcomes": {"PAID": "succeeded", "NEW": "pending"}},
            "status_is_read_right",
            "no word in status.outcomes means failed",
        ),
        (
            {"notification": {**SIGNED, "outcomes": {"PAID": "succeeded"}}},
            "a_notification_names_its_attempt",
            "no word in notification.outcomes means failed",
        ),
        (
            {"submit__statuses": {"200": "pending"}},
            "submit_under_empty_200",
            "submit.statuses accepts HTTP 200 without a word",
        ),
        ({"notification": None}, "a_notification_names_its_attempt", "sends no notification"),
        (
            {"currencies": ["XOF"], **FORMS["a form"]},
            "amounts_arrive_exactly",
            "the proofs send amounts with two decimals; try GHS",
        ),
    ],
    ids=["not found", "failed", "failed notification", "200", "no notification", "no decimals"],
)
async def test_a_proof_for_which_the_tables_have_no_words_is_not_proven(
    less: dict[str, Any], proof: str, reason: str
) -> None:
    found = await verdict_on(tables(**less), PROOF[proof])

    assert found.word == "not proven"
    assert reason in found.reason


def test_the_secrets_of_the_user_are_not_used() -> None:
    settings = tables(signature_key="key-of-the-user")
    before = deepcopy(settings)

    dialect = HttpJsonDialect(settings)

    assert settings == before
    assert "of-the-user" not in repr(vars(dialect)) + repr(dialect.secrets)
