"""Requests of `http_json`: their path, headers and body."""

from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs

import pytest

from sandbox_sim.networks.http_json import templates
from sandbox_sim.operations import Operation
from sandbox_sim.ports.network import StatusQuery
from sandbox_sim.records.reports import Outcome
from tests.networks.fakes import query, request
from tests.networks.http_json.api import REFERENCE, TAKEN, made, opened, reply

pytestmark = pytest.mark.decision("D39")


async def sent(template: dict[str, Any], **fields: Any) -> str:
    """The JSON body of a payment with this template."""
    async with opened(TAKEN, submit__json=template) as api:
        result = await api.network.submit(request(**{"reference": REFERENCE, **fields}))
        assert result.outcome is Outcome.PENDING, result
        return api.came[0].body.decode()


def of_network(network_id: str) -> StatusQuery:
    """The query for a payment to which the network gave this identifier."""
    return replace(query(), network_id=network_id)


@pytest.mark.parametrize(
    ("template", "written"),
    [
        ("{reference}", f'"{REFERENCE}"'),
        ("{reference_hex}", '"0b8a2f4e7a3d4c1e9d536f1f2b7c8d90"'),
        ("{amount}", "10.5"),
        ("{amount_text}", '"10.50"'),
        ("{amount_minor}", "1050"),
        ("GHS {amount} or {amount_minor}", '"GHS 10.5 or 1050"'),
        ("{service_id}", "55"),
        ("{transaction_id}/{attempt_id}/{operation}/{nw}", '"T1/A1/collect/MTN"'),
        ("{customer_number_local}", '"0244000001"'),
        ("+{customer_number_international}", '"+233244000001"'),
        ("{callback_url}", '"http://127.0.0.1:9/_networks/testnet/A1"'),
        ("{nickname}, {description}", '"Ama, Order 1"'),
        ("{{reference}}", '"{reference}"'),
        (["{currency}", 1, 2.5, True, {"a": "b"}], '["GHS",1,2.5,true,{"a":"b"}]'),
    ],
)
async def test_a_lone_placeholder_keeps_its_type_and_any_other_text_stays_a_text(
    template: object, written: str
) -> None:
    assert await sent({"x": template}, amount=Decimal("10.5")) == f'{{"x":{written}}}'


async def test_amounts_are_exact_to_the_last_digit_in_the_unit_of_their_currency() -> None:
    template = {"a": "{amount}", "t": "{amount_text}", "m": "{amount_minor}"}

    written = await sent(template, amount=Decimal("10000000000000001.01"))

    assert written == (
        '{"a":10000000000000001.01,"t":"10000000000000001.01","m":1000000000000000101}'
    )
    async with opened(TAKEN, currencies=["XOF"], submit__json={"m": "{amount_minor}"}) as api:
        await api.network.submit(request(amount=Decimal(500), currency="XOF"))
        assert api.came[0].body == b'{"m":500}'


async def test_quotes_and_braces_in_a_value_cannot_change_the_json() -> None:
    written = await sent({"x": "{description}"}, description='"}, {reference} Ɛsi')

    assert written == '{"x":"\\"}, {reference} Ɛsi"}'


async def test_a_customer_number_in_either_form_is_written_in_both() -> None:
    template = {"l": "{customer_number_local}", "i": "{customer_number_international}"}

    for party in ("0244000001", "233244000001"):
        assert await sent(template, party=party) == '{"l":"0244000001","i":"233244000001"}'


async def test_the_channel_is_the_word_of_the_network_for_nw() -> None:
    names = {"MTN": "mtn-gh", "VOD": "vodafone-gh"}
    async with opened(TAKEN, nws=names, submit__json={"c": "{channel}"}) as api:
        await api.network.submit(request(nw="VOD"))
        refused = await api.network.submit(request(nw="AIR"))

        assert [each.body for each in api.came] == [b'{"c":"vodafone-gh"}']
        assert refused.outcome is Outcome.NOT_SENT
        assert refused.reason == "the network does not take nw AIR"


async def test_a_form_has_its_fields_escaped() -> None:
    form = {"who": "{nickname}", "sum": "{amount_text}", "m": "{amount_minor}"}
    async with opened(TAKEN, submit__json=None, submit__form=form) as api:
        await api.network.submit(request(nickname="Ama & Ɛsi=1"))

        (came,) = api.came
        assert came.headers["content-type"] == "application/x-www-form-urlencoded"
        assert parse_qs(came.body.decode()) == {
            "who": ["Ama & Ɛsi=1"],
            "sum": ["10.50"],
            "m": ["1050"],
        }


async def test_values_are_escaped_in_the_path_and_unrestricted_elsewhere() -> None:
    path = "/pay/{transaction_id}?ref={reference}&who={nickname}"
    async with opened(TAKEN, submit__path=path, submit__json={"n": "{nickname}"}) as api:
        await api.network.submit(request(transaction_id="a/b?c", reference="r&1=#", nickname=".."))

        (came,) = api.came
        assert (came.path, came.body) == ("/pay/a%2Fb%3Fc?ref=r%261%3D%23&who=..", b'{"n":".."}')


@pytest.mark.parametrize("value", ["..", ".", "%2E%2E", "x/../y"])
async def test_a_value_that_would_change_the_path_is_not_sent(value: str) -> None:
    path = "/pay/{transaction_id}{nickname}/charge"
    async with opened(TAKEN, submit__path=path) as api:
        result = await api.network.submit(request(transaction_id=value, nickname=""))
        joined = await api.network.submit(request(transaction_id=".", nickname="."))

        assert result.outcome is joined.outcome is Outcome.NOT_SENT
        assert api.came == []
        assert "must not be . or .." in result.reason


def test_the_fields_of_clients_in_the_paths_are_a_capability() -> None:
    can = made(
        submit__path="/{reference}/{customer_number_local}/{description}?to={nickname}",
        status__path="/{service_id}/{transaction_id}",
    ).capabilities

    assert can.in_path == {"party", "description", "transaction_id"}


async def test_a_submit_may_be_a_get_or_a_put() -> None:
    for method in ("GET", "PUT"):
        async with opened(TAKEN, submit__method=method, submit__json=None) as api:
            await api.network.submit(request())
            assert [(each.method, each.body) for each in api.came] == [(method, b"")]


async def test_headers_are_sent_and_an_invalid_header_stops_the_request() -> None:
    headers = {
        "Idempotency-Key": "{reference}",
        "X-Sum": "{amount}",
        "X-Note": "{description}",
        "Accept": "a/b",
        "content-type": "text/json",
    }
    async with opened(TAKEN, submit__headers=headers) as api:
        await api.network.submit(request(reference=REFERENCE))
        stopped = await api.network.submit(request(description="one\r\nSet-Cookie: two"))

        (came,) = api.came
        assert came.headers["idempotency-key"] == REFERENCE
        assert (came.headers["x-note"], came.headers["accept"]) == ("Order 1", "a/b")
        assert came.headers["content-type"] == "text/json"
        assert stopped.outcome is Outcome.NOT_SENT
        assert (
            stopped.reason == "the header X-Note would contain characters that HTTP does not allow"
        )


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ({"auth": "basic", "auth_user": "u"}, "authorization", "Basic dTpzZWNyZXQ="),
        ({"auth": "bearer"}, "authorization", "Bearer secret"),
        ({"auth": "header", "auth_header": "X-Key"}, "x-key", "secret"),
    ],
)
async def test_the_secret_is_sent_as_auth_requires_and_stays_out_of_the_journal(
    auth: dict[str, str], header: str, value: str
) -> None:
    async with opened(TAKEN, auth_secret="secret", **auth) as api:
        await api.network.submit(request())
        await api.network.status(query())

        assert {each.headers[header] for each in api.came} == {value}
        assert value.rpartition(" ")[2] not in repr(api.events.exchanges)


async def test_a_secret_in_a_body_is_sent_and_scrubbed_from_the_journal() -> None:
    template = {"user": "{auth_user}", "key": "{auth_secret}"}
    account = {"auth_user": "me", "auth_secret": "secret"}
    async with opened(TAKEN, submit__json=template, **account) as api:
        await api.network.submit(request())

        assert api.came[0].body == b'{"user":"me","key":"secret"}'
        assert api.events.exchanges[0].request_body == '{"user":"me","key":"***"}'


async def test_a_status_query_may_be_a_post_by_the_identifier_of_the_network() -> None:
    asking = {"method": "POST", "path": "/find", "json": {"id": "{network_id}"}}
    async with opened(reply(200, state="PAID"), status=asking) as api:
        await api.network.status(of_network("N1"))
        unknown = await api.network.status(query())

        assert [(each.path, each.body) for each in api.came] == [("/find", b'{"id":"N1"}')]
    assert (unknown.outcome, unknown.found) == (Outcome.UNKNOWN, True)
    assert unknown.reason == "the network has not given its identifier for the payment"

    async with opened(reply(200, state="PAID"), status={"path": "/payments/{network_id}"}) as api:
        found = await api.network.status(of_network("%2e%2e"))
        assert (found.outcome, api.came) == (Outcome.UNKNOWN, [])


async def test_an_sms_has_its_text_and_sender() -> None:
    template = {"to": "{customer_number}", "text": "{text}", "from": "{sender_id}"}
    async with opened(TAKEN, operations=["sms"], submit__json=template) as api:
        result = await api.network.submit(request(Operation.SMS))

        assert result.outcome is Outcome.PENDING
        assert api.came[0].body == b'{"to":"233244000001","text":"Hello","from":"Shop"}'


@pytest.mark.parametrize("text", ["R 1", "0b8a2f4e-7a3d-4c1e-9d53", REFERENCE.upper()])
def test_only_a_uuid_loses_its_hyphens_and_gets_them_back(text: str) -> None:
    assert templates.hex_of(text) == text
    assert templates.from_hex(templates.hex_of(REFERENCE)) == REFERENCE


@pytest.mark.parametrize("text", ["0.001", "10.505", "1E-30"])
def test_an_amount_between_two_minor_units_has_no_value(text: str) -> None:
    with pytest.raises(templates.NoValue, match="more decimals than GHS"):
        templates.in_minor_units(Decimal(text), "GHS")


@pytest.mark.parametrize(
    "text", ["1050", "1E+3", "1000000000000000101", "1050.00000000000000000001"]
)
def test_minor_units_are_read_exactly(text: str) -> None:
    amount = templates.from_minor_units(Decimal(text), "GHS")

    assert amount.as_tuple()[:2] == Decimal(text).as_tuple()[:2]
    assert amount.as_tuple()[2] == int(Decimal(text).as_tuple()[2]) - 2
