"""The pages: hostile text as text, nothing inline, a strict policy, no forms of other sites."""

import re
from html.parser import HTMLParser

from sandbox_sim.demo.orders import Operation
from sandbox_sim.demo.texts import ENGLISH
from tests.demo.conftest import AMA, Demo, event, kinds, only

HOSTILE = "<script>alert(1)</script>\"'{{1234567*7}}"
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'self'",
}


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))


async def every_page(demo: Demo) -> dict[str, str]:
    """Every page of the shop, by its path."""
    order = await demo.buy("airtime", amount="5", airtime_phone="0200000001", airtime_nw="VOD")
    await demo.settle()
    await demo.call_back(event(order.transactions[0], transaction_id="unknown"))
    paths = ("/", "/buy/cocoa", "/buy/airtime", "/buy/bill?shopper=4", "/office", "/nowhere")
    return {path: await demo.get(path) for path in (*paths, f"/orders/{order.key}")}


async def test_pages_have_no_inline_script_style_or_handler(demo: Demo) -> None:
    for path, page in (await every_page(demo)).items():
        elements = Elements(page).found
        assert elements
        for tag, attributes in elements:
            assert tag != "style", path
            assert "style" not in attributes, path
            assert not [name for name in attributes if name.startswith("on")], path
            if tag == "script":
                assert (attributes.get("src") or "").startswith("/static/"), path
            for name in ("src", "href"):
                address = attributes.get(name) or "/"
                assert not re.match(r"(?i)(https?:)?//|data:|javascript:", address), path


async def test_every_answer_has_the_strict_policy(demo: Demo) -> None:
    order = await demo.buy()
    for path in ("/", "/nowhere", "/static/shop.css", f"/orders/{order.key}/version"):
        async with demo.session.get(demo.url + path) as answer:
            policy = answer.headers["Content-Security-Policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert POLICY.items() <= rules.items()
        assert rules["form-action"] == f"'self' {demo.sandbox.url}"
        assert "unsafe" not in policy


async def test_hostile_text_in_a_field_is_shown_as_text(demo: Demo) -> None:
    fields = {
        "cocoa": ("quantity", "name", "phone", "nw", "pay_by", "purchase"),
        "airtime": ("airtime_phone", "airtime_nw", "amount"),
        "bill": ("biller", "account"),
    }
    for product, field in ((name, each) for name, own in fields.items() for each in own):
        others = {"name": "", "amount": "5", field: HOSTILE}  # the form comes back with its fields

        answer = await demo.send(product, **others)
        page = await answer.text()

        assert "<script>alert" not in page
        assert "8641969" not in page
        scripts = [attributes for tag, attributes in Elements(page).found if tag == "script"]
        assert all(each.get("src") for each in scripts)


async def test_a_hostile_name_of_a_customer_is_shown_as_text(demo: Demo) -> None:
    order = await demo.buy(name=HOSTILE)
    await demo.settle()
    detail = event(only(order), status="001", event_type="payment_failure", status_desc=HOSTILE)
    await demo.call_back(detail)

    for path in (f"/orders/{order.key}", "/office"):
        page = await demo.get(path)
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page


async def test_a_form_of_another_site_is_refused_and_one_of_the_shop_accepted(demo: Demo) -> None:
    form = {"quantity": "1", **AMA}
    elsewhere = [
        *({"Origin": "https://evil.example"}, {"Origin": "null"}),
        *({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}),
    ]
    for headers in elsewhere:
        async with demo.session.post(f"{demo.url}/buy/cocoa", data=form, headers=headers) as answer:
            assert answer.status == 403
        assert demo.orders == []

    order = await demo.buy()
    own = {"Origin": demo.url, "Sec-Fetch-Site": "same-origin"}
    assert (await demo.post(f"/orders/{order.key}/check", **own)).status == 303


async def test_an_unknown_path_is_not_found_and_a_large_body_is_refused(demo: Demo) -> None:
    paths = ("buy/nothing", "orders/nothing", "orders/nothing/version", "static/../shop.py")
    for path in paths:
        async with demo.session.get(f"{demo.url}/{path}") as answer:
            assert answer.status == 404
    assert (await demo.send(name="a" * 70_000)).status == 413
    assert (await demo.call_back(b"a" * 70_000)).status == 413
    assert demo.orders == []


async def test_a_wrong_field_is_named_and_the_form_keeps_the_others(demo: Demo) -> None:
    wrong = await demo.send(phone="12", name="Ama")
    page = await wrong.text()
    assert wrong.status == 422
    assert "Enter a phone number of ten digits" in page
    assert 'value="Ama"' in page
    assert demo.orders == []


STATES = {"pays": "processing", "declines": "failed", "cancels": "cancelled"}


async def test_each_test_shopper_fills_the_form_and_acts_as_described(demo: Demo) -> None:
    for place, (shopper, conduct) in enumerate(demo.shop.catalogue.shoppers, 1):
        page = await demo.get(f"/buy/cocoa?shopper={place}")
        assert f'value="{shopper.phone}"' in page

        order = await demo.buy(name=shopper.name, phone=shopper.phone, nw=shopper.nw)
        await demo.settle()

        assert order.state == STATES.get(conduct, "pending_payment"), conduct


async def test_every_note_has_a_text(demo: Demo) -> None:
    order = await demo.buy()
    await demo.settle()

    assert set(kinds(order)) <= set(ENGLISH.notes)
    assert {f"begun_{each}" for each in Operation} <= set(ENGLISH.notes)
    assert ENGLISH.note(order.notes[2]).startswith("Callback: 000, Transaction Successful.")
