"""Cassettes are readable files with exact numbers; each personal text has one replacement."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from sandbox_sim.networks.upstream.cassettes import (
    BadCassette,
    Cassette,
    RecordedAnswer,
    RecordedCallback,
    Replacements,
    body_text,
    cassette_text,
    read_cassette,
)
from sandbox_sim.records.exchanges import Scrubber

pytestmark = pytest.mark.decision("D38", "D39")

SECRET = "canary-secret-key-91"

REQUEST = {
    "service_id": Decimal(55),
    "transaction_id": "ORDER-77",
    "reference": "for Ama Mensah",
    "nickname": "Ama Mensah",
    "customer_number": "0244123456",
    "amount": Decimal("10.50"),
    "callback_url": "https://shop.example/hook?token=1",
}


def replacements(taken: str = "") -> Replacements:
    return Replacements(Scrubber([SECRET]).text, taken)


def test_a_text_has_the_same_replacement_everywhere() -> None:
    replace = replacements()

    request = replace.document(REQUEST)
    callback = replace.document(
        {"trans_ref": "ORDER-77", "customer_number": "233244123456", "message": "Ama Mensah paid"}
    )

    assert request["transaction_id"] == callback["trans_ref"] == "T-1"
    assert request["customer_number"] == "0244000016"
    assert callback["customer_number"] == "233244000016"
    assert callback["message"] == f"{request['nickname']} paid"
    assert request["callback_url"] == "https://callback.example/"
    assert (request["amount"], request["service_id"]) == (Decimal("10.50"), 55)


def test_a_replaced_number_keeps_its_first_digits_and_the_last_one() -> None:
    replace = replacements()
    # The last one is a real number that looks like a replacement.
    numbers = ("0244123459", "0244999999", "200123456789", "98765432101", "0244000019")

    assert [replace.text(each) for each in numbers] == [
        *("0244000019", "0244000029", "200000000019", "98700000011", "0244000039")
    ]


def test_a_replacement_of_another_cassette_is_not_used_again() -> None:
    replace = replacements(taken='"customer_number": "0244000016", "transaction_id": "T-1"')

    assert replace.document(REQUEST)["customer_number"] == "0244000026"
    assert replace.document(REQUEST)["transaction_id"] == "T-2"


class Counted(dict[str, str]):
    """Counts how often it was searched."""

    searches = 0

    def __contains__(self, text: object) -> bool:
        self.searches += 1
        return super().__contains__(text)


def test_the_400th_payment_costs_as_much_as_the_second() -> None:
    replace, costs = replacements(), []
    replace._known = known = Counted()

    for number in range(400):
        before = known.searches
        replace.document({**REQUEST, "transaction_id": f"ORDER-{1000 + number}"})
        replace.text(f"payment ORDER-{1000 + number} of 0244{number:06d} is done")
        costs.append(known.searches - before)

    assert max(costs[1:]) == costs[1]


@pytest.mark.parametrize("text", [SECRET, f"key {SECRET}", "Y2FuYXJ5LXNlY3JldC1rZXktOTE="])
def test_secrets_are_scrubbed_and_card_numbers_masked(text: str) -> None:
    written = replacements().document({"message": text, "customer_number": "4111111111111111"})

    assert "***" in written["message"]
    assert SECRET not in written["message"]
    assert written["customer_number"] == "411111******1111"


CASSETTE = Cassette(
    "/make_payment",
    {"transaction_id": "T-1", "amount": Decimal("10000000000000001.55")},
    RecordedAnswer(12, 202, {"response_code": "202"}),
    [RecordedAnswer(5000, None, "", "no answer within 10 s")],
    [RecordedCallback(1000, {"amount": Decimal("10.50")})],
)


def test_a_file_is_read_as_it_was_written_with_amounts_to_the_last_digit(tmp_path: Path) -> None:
    file = tmp_path / "1.json"
    file.write_text(cassette_text(CASSETTE), "utf-8")

    assert read_cassette(file) == CASSETTE
    assert '"amount": 10000000000000001.55' in cassette_text(CASSETTE)
    json.loads(cassette_text(CASSETTE))
    amount = Decimal("10000000000000001.55")
    assert body_text({"a": [Decimal(1)], "amount": amount}) == (
        '{"a":[1],"amount":10000000000000001.55}'
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not a cassette: "),
        ("[]", "is not a cassette: "),
        ("{}", "is not a cassette: 'path' is missing"),
        (cassette_text(CASSETTE).replace("12", '"soon"'), "is not a cassette: "),
    ],
)
def test_a_file_that_is_not_a_cassette_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "1.json"
    file.write_text(text, "utf-8")

    with pytest.raises(BadCassette, match=f"1.json {says}"):
        read_cassette(file)
