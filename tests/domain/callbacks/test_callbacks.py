"""The bodies of a callback in their five profiles, and how a profile is chosen."""

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.domain.callbacks import callback_bodies, callbacks
from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.json_text import compact, plain_decimal
from sandbox_sim.domain.payments.transactions import Status, Transaction
from sandbox_sim.domain.vocabulary import Operation
from tests.domain.samples import SETTLED, settled, transaction

SENT_AT = "2026-01-01T12:00:01.000Z"
AMOUNTS = st.decimals("0.01", 10**9, places=2)

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


def body(profile: Profile, subject: Transaction) -> dict[str, object]:
    return callback_bodies.BODIES[profile](subject, SETTLED)


def decided(status: Status) -> Transaction:
    pending = transaction()
    return pending if status is Status.PENDING else pending.moved(status, SETTLED)


@pytest.mark.decision("D27")
def test_the_profiles_are_named_as_the_setting_names_them() -> None:
    assert {str(name) for name in Profile} == {"trans", "trans_bare", "flat", "event", "superset"}


@pytest.mark.spec("sandbox.3")
@pytest.mark.decision("D27", "D28")
def test_trans_is_the_body_that_the_interface_shows() -> None:
    assert list(body(Profile.TRANS, settled()).items()) == list(TRANS.items())


@pytest.mark.decision("D27", "D28")
def test_trans_bare_has_the_bare_code() -> None:
    expected = {**TRANS, "trans_status": "000"}

    assert list(body(Profile.TRANS_BARE, settled()).items()) == list(expected.items())


@pytest.mark.decision("D27", "D28")
def test_flat_is_the_status_record_and_the_request() -> None:
    assert list(body(Profile.FLAT, settled()).items()) == list(FLAT.items())


@pytest.mark.decision("D27", "D28")
def test_event_is_the_body_of_the_storefront() -> None:
    assert list(body(Profile.EVENT, settled()).items()) == list(EVENT.items())


@pytest.mark.decision("D27", "D28")
def test_superset_is_trans_bare_and_flat_with_the_amount_as_a_string() -> None:
    assert body(Profile.SUPERSET, settled()) == {**FLAT, **TRANS, "trans_status": "000"}


@pytest.mark.spec("states.transactions", "delivery.6")
@pytest.mark.decision("D28")
@pytest.mark.parametrize(
    ("status", "trans_status", "message"),
    [
        (Status.SUCCESSFUL, "000/SUCCESS", "SUCCESSFUL"),
        (Status.FAILED, "001/FAILED", "FAILED"),
        (Status.PENDING, "002/PENDING", "PENDING"),
        (Status.CANCELLED, "003/CANCELLED", "CANCELLED"),
    ],
)
def test_each_status_in_the_first_format(status: Status, trans_status: str, message: str) -> None:
    said = body(Profile.TRANS, decided(status))

    assert (said["trans_status"], said["message"]) == (trans_status, message)
    assert body(Profile.TRANS_BARE, decided(status))["trans_status"] == status.value
    assert body(Profile.SUPERSET, decided(status))["trans_status"] == status.value


@pytest.mark.decision("D27")
@pytest.mark.parametrize(
    ("status", "event_type", "description"),
    [
        (Status.SUCCESSFUL, "payment_success", "Transaction Successful"),
        (Status.FAILED, "payment_failure", "Transaction Failed"),
        (Status.PENDING, "payment_pending", "Transaction Pending"),
        (Status.CANCELLED, "payment_cancelled", "Transaction Cancelled"),
    ],
)
def test_each_status_in_the_storefront_s_format(
    status: Status, event_type: str, description: str
) -> None:
    said = body(Profile.EVENT, decided(status))

    assert (said["event_type"], said["status"]) == (event_type, status.value)
    assert said["status_desc"] == description


@pytest.mark.spec("delivery.6")
@pytest.mark.decision("D28")
@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize(
    ("operation", "shown"),
    [
        (Operation.COLLECT, "233244000001"),
        (Operation.DEPOSIT, "233244000001"),
        (Operation.PAYOUT, "233244000001"),
        (Operation.AIRTIME, "233244000001"),
        (Operation.BILL, "200000000001"),
        (Operation.CARD, "411111******1111"),
    ],
)
def test_the_customer_is_a_number_an_account_or_a_masked_card(
    profile: Profile, operation: Operation, shown: str
) -> None:
    assert body(profile, settled(operation))["customer_number"] == shown


@pytest.mark.decision("D28")
@pytest.mark.parametrize(
    ("operation", "mode"),
    [(Operation.COLLECT, "MOM"), (Operation.BILL, "BLP"), (Operation.AIRTIME, "ATP")],
)
def test_the_payment_mode(operation: Operation, mode: str) -> None:
    assert body(Profile.TRANS, settled(operation))["payment_mode"] == mode


@pytest.mark.decision("D28")
@pytest.mark.parametrize(
    ("amount", "text", "number"),
    [
        ("10.50", "10.5", "10.5"),
        ("10.5", "10.5", "10.5"),
        ("10000", "10000", "10000"),
        ("10000.0", "10000", "10000"),
        ("10000.00", "10000", "10000"),
        ("1E+4", "10000", "10000"),
        ("100", "100", "100"),
        ("0.01", "0.01", "0.01"),
        ("0.10", "0.1", "0.1"),
        ("1000000.25", "1000000.25", "1000000.25"),
        ("99999999999999999.99", "99999999999999999.99", "99999999999999999.99"),
    ],
)
def test_amounts_are_the_shortest_plain_decimal(amount: str, text: str, number: str) -> None:
    subject = settled(amount=Decimal(amount))

    assert body(Profile.TRANS, subject)["amount"] == text
    assert body(Profile.SUPERSET, subject)["amount"] == text
    assert compact(body(Profile.FLAT, subject)["amount"]) == number
    assert compact(body(Profile.EVENT, subject)["amount"]) == number


@pytest.mark.decision("D28")
@given(st.decimals(0, 10**12, allow_nan=False).map(abs))
def test_a_plain_decimal_has_the_value_and_nothing_to_leave_out(amount: Decimal) -> None:
    text = plain_decimal(amount)

    assert Decimal(text) == amount
    assert set(text) <= set("0123456789.")
    assert "." not in text or text[-1] not in "0."
    assert text == "0" or text.startswith("0.") or text[0] != "0"


@pytest.mark.decision("D28")
@given(AMOUNTS, st.integers(0, 6))
def test_trailing_zeros_make_no_difference(amount: Decimal, zeros: int) -> None:
    longer = Decimal(f"{amount}{'0' * zeros}")

    assert plain_decimal(longer) == plain_decimal(amount)


@pytest.mark.decision("D28")
@given(AMOUNTS)
def test_the_number_is_written_like_the_text(amount: Decimal) -> None:
    assert compact(amount) == plain_decimal(amount)


@pytest.mark.decision("D27")
@pytest.mark.parametrize(
    ("url", "profile"),
    [
        ("http://shop.test/wc-api/gateway", Profile.EVENT),
        ("https://shop.test/blog/wc-api/gateway?order=1", Profile.EVENT),
        ("http://shop.test/wc-api", Profile.TRANS),
        ("http://shop.test/WC-API/gateway", Profile.TRANS),
        ("http://shop.test/callback", Profile.TRANS),
    ],
)
def test_the_callback_url_chooses_the_profile_before_the_default(
    url: str, profile: Profile
) -> None:
    table = {"*/wc-api/*": Profile.EVENT}

    assert callbacks.choose_profile(url, table, Profile.TRANS) is profile


@pytest.mark.decision("D27")
def test_the_first_glob_that_fits_wins() -> None:
    table = {"*/a/*": Profile.FLAT, "*/b/*": Profile.EVENT}

    assert callbacks.choose_profile("http://x.test/a/b/c", table, Profile.TRANS) is Profile.FLAT
