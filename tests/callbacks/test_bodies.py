"""The bodies of a callback in their five profiles, how a profile is chosen, and the signature."""

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.callbacks import bodies as bodies_
from sandbox_sim.callbacks.bodies import check_signature, sign
from sandbox_sim.operations import Operation
from sandbox_sim.records.callbacks import SIGNATURE_HEADER, CallbackSettings, Profile
from sandbox_sim.records.transactions import Status, TransactionRecord
from sandbox_sim.values.json_text import compact, plain_decimal
from tests.records.samples import SETTLED, settled, transaction

SENT_AT = "2026-01-01T12:00:01.000Z"
TRANS = {
    "trans_ref": "T1",
    "trans_id": "12345678901",
    "trans_status": "000/SUCCESS",
    "message": "SUCCESSFUL",
    "customer_number": "233244000001",
    "nw": "MTN",
    "payment_mode": "MOM",
    "amount": "10.5",
}

FLAT = {
    "transaction_id": "T1",
    "status": "000",
    "status_desc": "Transaction Successful",
    "network_transaction_id": "12345678901",
    "message": "SUCCESSFUL",
    "amount": 10.5,
    "currency_code": "GHS",
    "customer_number": "233244000001",
    "reference": "Order 1",
    "timestamp": SENT_AT,
}

EVENT = {
    "event_type": "payment_success",
    "transaction_id": "T1",
    "order_id": "Order 1",
    "status": "000",
    "status_desc": "Transaction Successful",
    "network_transaction_id": "12345678901",
    "amount": 10.5,
    "currency_code": "GHS",
    "customer_number": "233244000001",
    "reference": "Order 1",
    "timestamp": SENT_AT,
}


def body(profile: Profile, subject: TransactionRecord) -> dict[str, object]:
    return bodies_.BODIES[profile](subject, SETTLED)


def decided(status: Status) -> TransactionRecord:
    pending = transaction()
    return pending if status is Status.PENDING else pending.with_status(status, SETTLED)


@pytest.mark.spec("sandbox.3")
@pytest.mark.decision("D27", "D28")
def test_each_profile_has_its_fields_in_their_order() -> None:
    bodies = {str(profile): body(profile, settled()) for profile in Profile}

    # The superset is trans_bare and flat in one, with the amount as a string.
    assert bodies.pop("superset") == {**FLAT, **TRANS, "trans_status": "000"}
    assert {name: list(fields.items()) for name, fields in bodies.items()} == {
        "trans": list(TRANS.items()),
        "trans_bare": list({**TRANS, "trans_status": "000"}.items()),
        "flat": list(FLAT.items()),
        "event": list(EVENT.items()),
    }


@pytest.mark.spec("states.transactions", "delivery.6")
@pytest.mark.decision("D27", "D28")
@pytest.mark.parametrize(
    ("status", "trans_status", "message", "event_type", "description"),
    [
        ("000", "000/SUCCESS", "SUCCESSFUL", "payment_success", "Transaction Successful"),
        ("001", "001/FAILED", "FAILED", "payment_failure", "Transaction Failed"),
        ("002", "002/PENDING", "PENDING", "payment_pending", "Transaction Pending"),
        ("003", "003/CANCELLED", "CANCELLED", "payment_cancelled", "Transaction Cancelled"),
    ],
)
def test_each_profile_reports_each_status_in_its_format(
    status: str, trans_status: str, message: str, event_type: str, description: str
) -> None:
    trans, bare, flat, event, superset = (body(each, decided(Status(status))) for each in Profile)

    assert (trans["trans_status"], trans["message"]) == (trans_status, message)
    assert (event["event_type"], event["status"]) == (event_type, status)
    assert bare["trans_status"] == superset["trans_status"] == flat["status"] == status
    assert flat["status_desc"] == event["status_desc"] == description


@pytest.mark.spec("delivery.6")
@pytest.mark.decision("D28")
@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize(
    ("operation", "shown", "mode"),
    [
        (Operation.COLLECT, "233244000001", "MOM"),
        (Operation.DEPOSIT, "233244000001", "MOM"),
        (Operation.PAYOUT, "233244000001", "MOM"),
        (Operation.AIRTIME, "233244000001", "ATP"),
        (Operation.BILL, "200000000001", "BLP"),
        (Operation.CARD, "411111******1111", "CRD"),
    ],
)
def test_the_customer_is_a_number_an_account_or_a_masked_card(
    profile: Profile, operation: Operation, shown: str, mode: str
) -> None:
    fields = body(profile, settled(operation))

    assert (fields["customer_number"], fields.get("payment_mode", mode)) == (shown, mode)


@pytest.mark.decision("D28")
@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("10.50", "10.5"),
        ("10000.00", "10000"),
        ("1E+4", "10000"),
        ("0.10", "0.1"),
        ("99999999999999999.99", "99999999999999999.99"),
    ],
)
def test_amounts_are_the_shortest_plain_decimal(amount: str, text: str) -> None:
    subject = settled(amount=Decimal(amount))

    assert body(Profile.TRANS, subject)["amount"] == text
    assert body(Profile.SUPERSET, subject)["amount"] == text
    assert compact(body(Profile.FLAT, subject)["amount"]) == text
    assert compact(body(Profile.EVENT, subject)["amount"]) == text


@pytest.mark.decision("D28")
@given(st.decimals("0.01", 10**9, places=2) | st.decimals(0, 10**12, allow_nan=False).map(abs))
def test_a_plain_decimal_is_exact_and_as_short_as_possible(amount: Decimal) -> None:
    text = plain_decimal(amount)

    assert Decimal(text) == amount
    assert set(text) <= set("0123456789.")
    assert "." not in text or text[-1] not in "0."
    assert text == "0" or text.startswith("0.") or text[0] != "0"
    assert compact(amount) == text, "as a number too"


@pytest.mark.decision("D27")
@pytest.mark.parametrize(
    ("url", "profile"),
    [
        ("http://shop.test/wc-api/gateway", Profile.EVENT),
        ("https://shop.test/blog/wc-api/gateway?order=1", Profile.EVENT),
        ("http://shop.test/wc-api", Profile.TRANS),
        ("http://shop.test/WC-API/gateway", Profile.TRANS),
        ("http://shop.test/callback", Profile.TRANS),
        ("http://shop.test/a/wc-api/b", Profile.FLAT),  # the first glob that fits wins
    ],
)
def test_the_callback_url_chooses_the_profile_before_the_default(
    url: str, profile: Profile
) -> None:
    table = {"*/a/*": Profile.FLAT, "*/wc-api/*": Profile.EVENT}

    assert CallbackSettings(Profile.TRANS, table, signed=True).profile_of(url, None) is profile


BODY = b'{"trans_ref":"T1"}'
KEYS = ("other", "secret")


@pytest.mark.spec("delivery.1")
@given(st.binary(max_size=100), st.sampled_from(KEYS))
def test_the_signature_of_the_exact_bytes_under_a_known_key_is_valid(body: bytes, key: str) -> None:
    assert check_signature(body, sign(body, key), KEYS) == "valid"
    assert check_signature(body, sign(body, key).upper(), KEYS) == "valid"
    assert check_signature(body, sign(body, key), ()) == "invalid"


@pytest.mark.spec("delivery.1")
@pytest.mark.decision("D29")
@pytest.mark.parametrize(
    ("body", "signature"),
    [
        pytest.param(BODY, sign(BODY, "somebody else's"), id="an unknown key"),
        pytest.param(BODY + b" ", sign(BODY, "secret"), id="other bytes"),
        pytest.param(BODY, sign(BODY, "secret")[:-1], id="cut short"),
        pytest.param(BODY, "sha256=" + sign(BODY, "secret"), id="with a scheme in front"),
        pytest.param(BODY, "é" * 64, id="characters that are not ASCII"),
        pytest.param(BODY, "\udcff" * 64, id="bytes that are not UTF-8"),
    ],
)
def test_another_signature_is_invalid_and_an_absent_one_is_missing(
    body: bytes, signature: str
) -> None:
    assert check_signature(body, signature, KEYS) == "invalid"
    assert {check_signature(BODY, absent, KEYS) for absent in (None, "")} == {"missing"}
    assert SIGNATURE_HEADER == "X-Service-Signature"
