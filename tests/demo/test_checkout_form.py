"""What people type into the checkout form."""

from sandbox_sim.demo.catalogue import make_catalogue
from sandbox_sim.demo.pages import CheckoutForm, Product, local_number
from tests.demo.conftest import AMA

AIRTIME = {**AMA, "airtime_phone": "0200000001", "airtime_nw": "VOD", "amount": "5"}


def test_a_phone_number_in_any_form_becomes_local_and_other_text_is_refused() -> None:
    numbers = ("0244000001", "024 400 0001", "233244000001", "+233 24 400 0001", "(024) 400-0001")
    for typed in numbers:
        assert local_number(typed) == "0244000001"
    for typed in ("", "244000001", "02440000012", "+1 244000001", "٠٢٤٤٠٠٠٠٠١", "0244x00001"):
        assert local_number(typed) is None


def test_a_valid_amount_is_accepted_and_each_wrong_field_is_named() -> None:
    for amount in ("1", "5.5", "10000.01", "20000"):
        purchase = CheckoutForm({**AIRTIME, "amount": amount}).purchase_of(Product.AIRTIME)

        assert purchase is not None
        assert str(purchase.total) == amount

    no_amounts = ("", "0", "0.99", "20000.01", "1e3", "NaN", "-5", "5.555", "5,5", "٥")
    wrong = [
        *(("amount", amount) for amount in no_amounts),
        *(("name", " "), ("name", "a" * 61), ("nw", "GLO"), ("pay_by", "cash")),
        ("pay_by", "airtime"),
    ]
    for field, value in wrong:
        form = CheckoutForm({**AIRTIME, field: value})

        assert form.purchase_of(Product.AIRTIME) is None
        assert set(form.errors) == {field}, value

    empty = CheckoutForm({})
    assert empty.purchase_of(Product.BILL) is None
    assert set(empty.errors) == {"amount", "account", "biller", "name", "phone", "nw", "pay_by"}


def test_the_same_seed_makes_the_same_goods_and_people() -> None:
    first, again, other = (make_catalogue(seed, magic_numbers=True) for seed in (7, 7, 8))

    assert first == again
    assert first != other
