"""The requests that mode P takes and refuses, unlike the sandbox. D39, D17, D32."""

import json
from itertools import product
from typing import Any

import pytest

from sandbox_sim.values.vocabulary import BANKS, CARD_CURRENCIES
from tests.conftest import Sandbox, StartSandbox
from tests.production import client
from tests.production.settings import STAGING

PAYOUT: dict[str, Any] = {"trans_type": "MTC"}
DEPOSIT: dict[str, Any] = {"trans_type": "DTTW"}
BANK: dict[str, Any] = {**PAYOUT, "payment_option": "BNK", "customer_number": "1020304050"}
CARD: dict[str, Any] = {
    "nw": "CRD",
    "payment_option": "CRD",
    "customer_number": None,
    "currency_code": "USD",
    "currency_val": "10.50",
    "landing_page": "http://127.0.0.1:9/thanks",
}

pytestmark = [pytest.mark.decision("D39"), pytest.mark.decision("D17")]


@pytest.fixture
async def live(start_sandbox: StartSandbox) -> Sandbox:
    """A gateway in production over the simulated network, seen by a client of mode P."""
    return await client.live(start_sandbox, STAGING)


REQUIRED = [
    ({}, "nickname"),
    (DEPOSIT, "nickname"),
    (PAYOUT, "nickname"),
    (BANK | {"nw": "GCB"}, "nickname"),
    (CARD, "nickname"),
    (CARD, "currency_code"),
    (CARD, "currency_val"),
    (CARD, "landing_page"),
    ({}, "customer_number"),
    (DEPOSIT, "customer_number"),
    (PAYOUT, "customer_number"),
]


async def test_the_fields_of_the_reference_tables_are_required(live: Sandbox) -> None:
    for fields, missing in REQUIRED:
        answer = await live.collect(**{**fields, missing: None})

        assert (answer.status, answer.code) == (400, "400"), (fields, missing)
        assert missing in answer.body["response_message"]


async def test_a_card_is_taken_on_a_hosted_page_in_four_currencies(live: Sandbox) -> None:
    for option, currency in product(("CRD", "CRM"), CARD_CURRENCIES):
        card = CARD | {"payment_option": option, "currency_code": currency}
        answer = await live.collect(**card, transaction_id=f"{option}-{currency}")

        assert (answer.status, answer.code) == (200, "000"), (option, currency)
        assert answer.body["redirect_url"]


async def test_a_card_of_another_currency_network_or_option_is_refused(live: Sandbox) -> None:
    for fields in (
        {"currency_code": "NGN"},
        {"nw": "VIS", "customer_number": "4111111111111111"},
        {"payment_option": "MOM"},
    ):
        assert (await live.collect(**CARD | fields)).status == 400, fields


async def test_every_bank_of_the_interface_is_known(live: Sandbox) -> None:
    codes = [(await live.collect(**BANK, nw=bank)).code for bank in BANKS]

    assert codes == ["402"] * 28  # the balance, which is checked last, is 0


async def test_the_option_of_a_payout_fits_the_kind_of_its_nw(live: Sandbox) -> None:
    for option, nw in (
        ("BNK", "MTN"),
        ("BNK", "VIS"),
        ("BNK", "XYZ"),
        ("MOM", "GCB"),
        ("CRD", "GCB"),
        ("CRD", "MTN"),
    ):
        answer = await live.collect(**BANK | {"payment_option": option, "nw": nw})

        assert answer.status == 400, (option, nw)
        assert "nw" in answer.body["response_message"]


async def test_every_number_of_ghana_is_taken_in_both_forms(live: Sandbox) -> None:
    for number in ("0244000009", "0540010000", "233540010000", "0302123456"):
        assert (await live.collect(**PAYOUT, customer_number=number)).code == "402", number


async def test_a_number_in_another_form_is_refused(live: Sandbox) -> None:
    for number in ("+233244000001", "244000001", "02440000011", "0244 000001"):
        answer = await live.collect(customer_number=number)

        assert (answer.status, answer.code) == (400, "400"), number
        assert "phone number of Ghana" in answer.body["response_message"]


async def shown(live: Sandbox, transaction_id: str) -> dict[str, Any]:
    path = f"{live.url}/_sandbox/transactions/{live.service_id}/{transaction_id}"
    async with live.session.get(path) as response:
        found: dict[str, Any] = await response.json()
        return found


async def test_an_amount_is_exact_from_the_text_of_the_request(live: Sandbox) -> None:
    for text in ("10000000000000001", "0.01", "99999999999999.99", "1.50"):
        body = live.payment(**DEPOSIT, transaction_id=f"of {text}", amount=0)
        raw = json.dumps(body).replace('"amount": 0', f'"amount": {text}')
        path = f"{live.url}/make_payment"
        async with live.session.post(path, data=raw, headers=live.headers) as response:
            assert response.status == 202, text

        assert (await shown(live, f"of {text}"))["amount"] == text


async def test_an_amount_with_more_decimals_than_its_currency_is_refused(live: Sandbox) -> None:
    for amount in (10.505, 0.001, 1e-30, 10**18):
        answer = await live.collect(**DEPOSIT, amount=amount)

        assert (answer.status, answer.code) == (400, "400"), amount
        assert "amount must have at most" in answer.body["response_message"]


async def test_every_balance_begins_at_0(live: Sandbox) -> None:
    assert (await live.balance()).data == {
        "payout_balance": 0,
        "collection_balance": 0,
        "sms_balance": 0,
        "airtime_balance": 0,
    }


async def test_a_transaction_does_not_expire_and_an_unknown_one_is_404(live: Sandbox) -> None:
    assert (await live.collect()).code == "202"
    await live.advance(days=30)

    assert (await live.status("T1")).code == "000"
    unknown = await live.status("T2")
    assert (unknown.status, unknown.code) == (404, "404")
    assert unknown.body["response_message"] == "Transaction not found"


@pytest.mark.decision("D14")
async def test_a_transaction_id_counts_once(live: Sandbox) -> None:
    assert [(await live.collect()).code for _ in range(2)] == ["202", "219"]
    assert (await live.collect(service_id=56)).code == "202"
