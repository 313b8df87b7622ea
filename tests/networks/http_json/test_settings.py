"""A wrong configuration of `http_json` gets a sentence that names the table and the field."""

import re
from datetime import date
from typing import Any

import pytest

from sandbox_sim.networks.http_json.templates import IN_STATUS, IN_SUBMIT
from sandbox_sim.ports.network import NetworkConfigError
from sandbox_sim.records.exchanges import NotificationTrust
from sandbox_sim.records.reports import Field, Source
from tests.networks.http_json.api import made

pytestmark = pytest.mark.decision("D39")

SIGNED = {"trust": "signed", "signature_header": "X-Sign"}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"base_url": None}, "base_url: Field required"),
        ({"base_url": "api.example"}, "base_url: must be an http"),
        ({"health_path": "health"}, "health_path: must be a path that begins with /"),
        ({"health_path": "/{reference}"}, "health_path: there is no placeholder {reference} here"),
        ({"operations": []}, "operations: List should have at least 1 item"),
        ({"operations": ["card"]}, "operations.0: Input should be 'collect', "),
        ({"currencies": ["cedi"]}, "currencies.0: String should match pattern"),
        ({"password": "p"}, "password: Extra inputs are not permitted"),
        ({"submit": None}, "submit: Field required"),
        ({"submit__path": None}, "submit.path: Field required"),
        ({"submit__path": "pay"}, "submit.path: must be a path that begins with /, such as"),
        ({"submit__path": "//evil.example/x"}, "submit.path: must be a path that begins with /"),
        ({"submit__path": "/a b"}, "submit.path: must not contain spaces"),
        ({"submit__path": "/a/../b"}, "submit.path: must not contain . or .."),
        ({"status__path": "/%2e%2E/{reference}"}, "status.path: must not contain . or .."),
        ({"submit__path": "/a/{"}, "submit.path: a brace is unmatched; write {{ or }}"),
        ({"submit__method": "DELETE"}, "submit.method: Input should be 'GET', 'POST' or 'PUT'"),
        ({"submit__method": "GET"}, "submit: a GET has no body; leave json and form out"),
        ({"submit__form": {"a": "b"}}, "submit: json and form: only one of them can be set"),
        ({"submit__json": ["{amount}"]}, "submit.json: must be a table"),
        (
            {"submit__json": {"a": {"b": ["{amout}"]}}},
            "submit.json: there is no placeholder {amout} here; there are {amount}",
        ),
        ({"submit__json": {"a": "{amount:.2f}"}}, "submit.json: a placeholder is a name in braces"),
        ({"submit__json": {"a": "{amount!r}"}}, "submit.json: a placeholder is a name in braces"),
        ({"submit__json": {"a": "{reference.hex}"}}, "submit.json: a placeholder is a name in"),
        ({"submit__json": {"a": "{}"}}, "submit.json: a placeholder is a name in braces"),
        ({"submit__json": {"a": date(2026, 1, 1)}}, "submit.json: JSON has no values of type date"),
        (
            {"submit__headers": {"Authorization": "x"}},
            'submit.headers.Authorization: carries a secret; set auth = "basic"',
        ),
        ({"submit__headers": {"Host": "x"}}, "submit.headers.Host: is set by the HTTP client"),
        ({"submit__headers": {"a b": "x"}}, "submit.headers.a b: is not a valid header name"),
        ({"submit__headers": {"A": "{x}"}}, "submit.headers.A: there is no placeholder {x} here"),
        (
            {
                "auth": "header",
                "auth_header": "X-Key",
                "auth_secret": "s",
                "submit__headers": {"x-key": "y"},
            },
            "submit.headers: X-Key is auth_header; leave it out",
        ),
        ({"submit__json": {"a": float("nan")}}, "submit.json: JSON has no number nan"),
        ({"submit__outcomes": {}}, "submit.outcomes: Dictionary should have at least 1 item"),
        ({"submit__fields": None}, "submit.fields: Field required"),
        ({"submit__fields__outcome": "data..x"}, "submit.fields.outcome: must be names of members"),
        ({"submit__fields__outcome": []}, "submit.fields.outcome: must be names of members"),
        (
            {"submit__fields__amount": "a", "submit__fields__amount_minor": "b"},
            "submit.fields: amount and amount_minor: only one of them can be set",
        ),
        ({"submit__fields__price": "a"}, "submit.fields.price: Extra inputs are not permitted"),
        ({"submit__outcomes": None}, "submit.outcomes: Field required"),
        ({"submit__outcomes__OK": "success"}, 'failed, not_sent, reversed, or "refused '),
        ({"submit__outcomes__OK": "suceeded"}, "; did you mean succeeded?"),
        (
            {"submit__outcomes__NO": "refused"},
            'submit.outcomes.NO: must be "refused CODE" with one of',
        ),
        (
            {"submit__outcomes__NO": "refused 202"},
            'submit.outcomes.NO: must be "refused CODE" with',
        ),
        ({"submit__outcomes__NO": "failed 402"}, "submit.outcomes.NO: must be failed alone"),
        ({"submit__outcomes__NO": "not_found"}, "submit.outcomes.NO: must be one of pending"),
        ({"submit__outcomes__NO": 7}, "submit.outcomes.NO: must be one of pending"),
        (
            {"submit__statuses__500": "refused 500"},
            "submit.statuses: HTTP 500 proves nothing, because",
        ),
        (
            {"submit__statuses__302": "not_sent"},
            "submit.statuses: HTTP 302 proves nothing, because",
        ),
        (
            {"submit__statuses__200": "succeeded"},
            "submit.statuses: HTTP 200 alone can only mean pend",
        ),
        (
            {"submit__statuses__400": "failed"},
            "submit.statuses: HTTP 400 alone can only mean not_sent",
        ),
        ({"submit__statuses__bad": "not_sent"}, "submit.statuses.bad: Input should be a valid int"),
        (
            {"status__path": "/{amount}"},
            "status.path: there is no placeholder {amount} here; there are {attempt_id}",
        ),
        (
            {"status__outcomes": {"NO": "refused 400"}},
            "status.outcomes.NO: must be one of pending, succeeded, failed, reversed, not_found",
        ),
        (
            {"status__statuses": {"404": "failed"}},
            "status.statuses: HTTP 404 alone can only mean not_f",
        ),
        ({"status__statuses": {"500": "not_found"}}, "status.statuses: HTTP 500 proves nothing"),
        (
            {"status__path": "/payments/last", "status__headers": {"X-Id": "{reference}"}},
            "status: path, json or form: one of them needs {network_id}, {reference}, ",
        ),
        (
            {"status__path": "/{transaction_id}"},
            "use the identifier by which the network finds a payment",
        ),
        ({"status__failed_after_s": -1}, "status.failed_after_s: Input should be greater than or"),
        ({"status": None}, "status: must be set unless notification.trust is signed"),
        ({"status": None, "notification": {"trust": "hint"}}, "status: must be set unless"),
        (
            {"notification": {"trust": "sure"}},
            "notification.trust: Input should be 'signed' or 'hint'",
        ),
        ({"notification": {"trust": "signed"}}, "notification: signature_header: must be set if"),
        ({"notification": SIGNED}, "signature_key: must be set if notification.trust is signed"),
        (
            {"notification": {**SIGNED, "algorithm": "md5"}},
            "notification.algorithm: Input should be",
        ),
        (
            {"notification": {"trust": "hint", "fields": {"outcome": "x"}}},
            "notification.fields: needs reference or network_id, because submit does not",
        ),
        (
            {
                "signature_key": "k",
                "submit__json": {"to": "{callback_url}"},
                "notification": {**SIGNED, "fields": {"outcome": "state", "network_id": "id"}},
            },
            "notification.fields: needs reference if trust is signed, because the signature",
        ),
        ({"auth": "basic"}, "auth_user, auth_secret: must be set with auth = 'basic'"),
        ({"auth": "bearer"}, "auth_secret: must be set with auth = 'bearer'"),
        ({"auth": "header", "auth_secret": "s"}, "auth_header: must be set with auth = 'header'"),
        ({"auth": "digest"}, "auth: Input should be 'none', 'basic', 'bearer' or 'header'"),
        ({"auth_secret": "two\nlines"}, "auth_secret: must be ASCII without spaces"),
        (
            {"currencies": ["GHS", "XOF"], "submit__fields__amount_minor": "m"},
            "fields.amount_minor: needs fields.currency too",
        ),
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused_with_advice(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(NetworkConfigError, match=re.escape(sentence)):
        made(**wrong)


WITHOUT_IDENTITY = {"submit__headers": None, "submit__json": {"sum": "{amount}"}}


@pytest.mark.parametrize("repeats_within_s", [0, 86400])
@pytest.mark.parametrize(
    "names",
    [
        "",
        "{{reference}}",
        "{transaction_id}",
        "{service_id}",
        "{customer_number} {description} {request_time} {callback_url}",
    ],
)
def test_a_submit_without_its_identifier_is_refused(names: str, repeats_within_s: int) -> None:
    with pytest.raises(NetworkConfigError) as raised:
        made(
            **WITHOUT_IDENTITY,
            submit__path=f"/pay?id={names}".replace(" ", "+"),
            repeats_within_s=repeats_within_s,
        )

    assert "submit: path, headers, json or form: one of them needs {reference}" in str(raised.value)
    assert "write {reference} where the network expects your own reference" in str(raised.value)


@pytest.mark.parametrize(
    "tables",
    [
        {"submit__path": "/pay/{reference_hex}"},
        {"submit__headers": {"Idempotency-Key": "{attempt_id}"}},
        {"submit__json": {"sum": "{amount}", "deep": [{"id": "{service_id}-{transaction_id}"}]}},
        {"submit__path": "/{service_id}", "submit__headers": {"X-Id": "{transaction_id}"}},
        {"submit__json": None, "submit__form": {"id": "{reference}", "sum": "{amount_minor}"}},
    ],
    ids=str,
)
def test_an_identifier_may_be_in_the_path_the_headers_or_the_body(tables: dict[str, Any]) -> None:
    assert made(**{**WITHOUT_IDENTITY, **tables}).capabilities.operations == {"collect"}


@pytest.mark.parametrize("between", ["", "0", "{nickname}"])
def test_two_identifiers_without_a_separator_are_refused_as_ambiguous(between: str) -> None:
    both = f"{{service_id}}{between}{{transaction_id}}"
    for wrong in (
        {"submit__path": f"/pay?id={both}"},
        {"submit__json": {"sum": "{amount}", "deep": [{"id": both}]}},
        {"submit__headers": {"X-Id": both, "X-Note": "{transaction_id}"}},
    ):
        with pytest.raises(NetworkConfigError) as raised:
            made(**{**WITHOUT_IDENTITY, **wrong})
        assert "submit: {service_id} and {transaction_id} need a separator" in str(raised.value)
    with pytest.raises(NetworkConfigError, match=r"status: \{service_id\} and .* need a separator"):
        made(status__path="/{transaction_id}{service_id}")


@pytest.mark.parametrize(
    "path", ["/{network_id}", "/{attempt_id}", "/{service_id}/{transaction_id}", "/{reference_hex}"]
)
def test_a_status_query_names_its_attempt(path: str) -> None:
    assert made(status__path=path).capabilities.has_status


@pytest.mark.parametrize("operations", [["collect"], ["sms", "airtime"]])
def test_a_submit_must_name_the_amount_unless_it_sends_only_sms(operations: list[str]) -> None:
    with pytest.raises(NetworkConfigError) as raised:
        made(operations=operations, submit__headers=None)

    assert (
        "submit: path, headers, json or form: one of them needs {amount}, {amount_text} or "
        "{amount_minor}, because operations lists more than sms" in str(raised.value)
    )
    assert made(operations=["sms"], submit__headers=None).capabilities.operations == {"sms"}


def test_all_problems_are_named_at_once_without_their_values() -> None:
    with pytest.raises(NetworkConfigError) as raised:
        made(auth_secret="canary secret", submit__path="pay", submit__outcomes__X="what")

    problems = str(raised.value).split("; ")
    assert [each.split(":")[0] for each in problems[:2]] == ["auth_secret", "submit.path"]
    assert "canary" not in str(raised.value)


def test_an_unknown_placeholder_is_refused_with_the_list_of_placeholders() -> None:
    for wrong, valid in (
        ({"submit__path": "/{x}"}, IN_SUBMIT),
        ({"status__path": "/{x}"}, IN_STATUS),
    ):
        with pytest.raises(NetworkConfigError) as raised:
            made(**wrong)
        assert set(re.findall(r"\{(\w+)\}", str(raised.value))) == {"x", *valid}


def test_the_capabilities_are_those_of_the_tables() -> None:
    fields = {"outcome": "o", "reference": "r", "amount_minor": "a", "currency": "c"}
    can = made(
        operations=["collect", "sms"],
        currencies=["GHS", "USD"],
        nws={"MTN": "mtn"},
        repeats_within_s=60,
        signature_key="key",
        status__fields={**fields, "optional": ["currency"]},
        notification={**SIGNED, "fields": fields},
    ).capabilities

    assert can.operations == {"collect", "sms"}
    assert can.currencies == {"GHS", "USD", "SMS"}
    assert can.nws == {"MTN"}
    assert can.repeats_within is not None
    assert can.repeats_within.total_seconds() == 60
    assert can.trust is NotificationTrust.SIGNED
    assert can.always_sent == {
        (Source.SUBMIT, Field.REFERENCE),
        (Source.STATUS, Field.REFERENCE),
        (Source.STATUS, Field.AMOUNT),
        (Source.NOTIFICATION, Field.REFERENCE),
        (Source.NOTIFICATION, Field.AMOUNT),
        (Source.NOTIFICATION, Field.CURRENCY),
    }


def test_a_missing_table_declares_no_capability() -> None:
    can = made().capabilities
    without_status = made(status=None, signature_key="key", notification=SIGNED).capabilities

    assert (can.nws, can.repeats_within) == (frozenset(), None)
    assert (can.has_status, can.trust) == (True, NotificationTrust.NONE)
    assert not without_status.has_status
    assert without_status.trust is NotificationTrust.SIGNED
