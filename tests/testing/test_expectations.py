"""Expectations: the values that they take, and their messages when they are not met."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime
from decimal import Decimal
from unittest.mock import ANY
from uuid import UUID

import pytest

from sandbox_sim import SandboxGateway
from sandbox_sim.testing.expectations import Messages, Records
from sandbox_sim.testing.record_views import Callback, Sms
from tests.sample_records import callback, message
from tests.testing.conftest import collected, compact

BODY = (
    '{"trans_ref":"%s","trans_status":"%s/SUCCESS","amount":"%s","customer_number":"233244000001"}'
)


def one(transaction_id: str = "T1", status: str = "000", amount: str = "10.5") -> Callback:
    body = BODY % (transaction_id, status, amount)
    return Callback.from_record(callback(transaction_id=transaction_id, body=body))


def received(*callbacks: Callback, note: str = "") -> Records[Callback]:
    return Records(Callback, callbacks, note)


def text(body: str, to: str = "233244000001") -> Sms:
    return Sms.from_record(message(customer_number=to, message=body))


def refusal(records: Records[Callback], **wanted: object) -> list[str]:
    with pytest.raises(AssertionError) as caught:
        records.expect_one(**wanted)
    return compact(str(caught.value))


def test_records_are_a_sequence_that_cannot_be_changed() -> None:
    first, second = one("T1"), one("T2")
    records = received(first, second)

    assert (len(records), list(records)) == (2, [first, second])
    assert (records[0], records[-1], records[1:]) == (first, second, (second,))
    assert first in records
    assert "transaction_id='T2'" in repr(records)
    assert not received()
    assert received(*records, one("T1", "001")).where(transaction_id="T1") == [
        first,
        one("T1", "001"),
    ]
    for name in ("state", "status", "body", "no_field"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(first, name, "delivered")


class TestWantedFields:
    def test_an_amount_matches_in_any_type_and_a_phone_number_in_either_form(self) -> None:
        records = received(one(amount="10.5"))
        for amount in (10.5, "10.50", "10.5", Decimal("10.50"), ANY):
            assert records.where(amount=amount) == [one()]
        for other in (10, "10", True, None, "ten"):
            records.expect_none(amount=other)
        for number in ("0244000001", "233244000001"):
            assert records.where(customer_number=number) == [one()]
            records.expect_none(customer_number=number[:-1] + "2")

    def test_a_body_matches_by_some_of_its_members(self) -> None:
        assert received(one()).where(body={"trans_ref": "T1", "amount": 10.5}) == [one()]
        received(one()).expect_none(body={"trans_ref": "T1", "amount": 11})
        received(one()).expect_none(body={"reference": None})

    def test_an_unknown_field_is_refused_even_without_records(self) -> None:
        for name, sentence in (
            ("transactionid", "a callback has no field 'transactionid'; did you mean transaction"),
            ("nickname", "; there are id, transaction_id, "),
            ("trans_ref", "; for the body write body={'trans_ref': …}"),
        ):
            with pytest.raises(TypeError) as caught:
                received().expect_none(**{name: "T1"})

            assert sentence in str(caught.value)


class TestExpectOne:
    def test_a_mismatch_lists_each_record_with_its_difference(self) -> None:
        records = received(one("T2"), one("T1", "001"), one("T3"), note="something falls due")

        assert refusal(records, transaction_id="T1", status="000") == [
            "expected one callback with transaction_id='T1', status='000', but all 3 differ:",
            "  transaction_id  status  amount  state  url",
            "  T2  000  10.5  pending  http://shop.test/callback  <- transaction_id is 'T2'",
            "  T1  001  10.5  pending  http://shop.test/callback  <- status is '001'",
            "  T3  000  10.5  pending  http://shop.test/callback  <- transaction_id is 'T3'",
            "something falls due",
        ]

    def test_several_matches_and_an_empty_list_are_refused(self) -> None:
        records = received(one("T1"), one("T2"), one("T1"), note="something falls due")

        assert records.expect_one(transaction_id="T2") == one("T2")
        assert refusal(records, transaction_id="T1") == [
            "expected one callback with transaction_id='T1', but 2 of 3 are so:",
            "  transaction_id  status  amount  state  url",
            "  T1  000  10.5  pending  http://shop.test/callback  <- this one",
            "  T2  000  10.5  pending  http://shop.test/callback",
            "  T1  000  10.5  pending  http://shop.test/callback  <- this one",
        ]
        assert refusal(received(note="something falls due"), transaction_id="T1") == [
            "expected one callback with transaction_id='T1', but there is none",
            "something falls due",
        ]

    def test_columns_are_aligned_and_long_values_cut(self) -> None:
        """A wanted field that is not a column becomes one."""
        long = replace(one("T1"), url="http://shop.test/" + 100 * "x")
        with pytest.raises(AssertionError) as caught:
            received(long, one("T-1001")).expect_one(status="001")

        head, first, second = str(caught.value).splitlines()[1:]
        assert head.index("state") == first.index("pending") == second.index("pending")
        assert "http://shop.test/" + 43 * "x" + "…  <- status" in first
        other = refusal(received(one()), profile="flat")[1]
        assert other == "  transaction_id  status  amount  state  url  profile"

    def test_only_the_newest_twenty_records_are_listed(self) -> None:
        lines = refusal(received(*(one(f"T{number}") for number in range(100))), status="001")

        assert lines[1] == "  (the last 20 of 100)"
        assert lines[3].startswith("  T80  ")
        assert len(lines) == 23


def test_expect_and_expect_none_say_how_many_records_match() -> None:
    records = received(one("T1"), one("T2", "001"), one("T3"))

    assert [each.transaction_id for each in records.expect(status="000")] == ["T1", "T3"]
    assert len(records.expect(times=3)) == 3
    assert records.expect(times=0, status="002") == []
    records.expect_none(transaction_id="T4")
    refused: list[tuple[Callable[[], object], str]] = [
        (
            lambda: records.expect_none(transaction_id="T1"),
            "no callback with transaction_id='T1', but 1 of 3 is so",
        ),
        (records.expect_none, "expected no callback, but 3 of 3 are so"),
        (
            lambda: records.expect(status="002"),
            "expected a callback with status='002', but all 3 differ",
        ),
        (
            lambda: records.expect(times=2, status="001"),
            "expected 2 times a callback with status='001', but 1 of",
        ),
    ]
    for call, sentence in refused:
        with pytest.raises(AssertionError, match=sentence):
            call()


def test_expect_text_returns_the_newest_message_that_matches() -> None:
    first, second = text("Your code is 1"), text("Your code is 2")
    assert Messages(Sms, [first, second]).expect_text(contains="code") == second
    created_at = Messages(Sms, [first]).expect_text(sender_id="Shop").created_at
    assert created_at == datetime(2026, 1, 1, 9, tzinfo=UTC)

    messages = Messages(Sms, [first, text("Sale today", "233200000001")])
    assert messages.expect_text(to="0200000001").text == "Sale today"
    with pytest.raises(AssertionError) as caught:
        messages.expect_text(to="0200000001", contains="code")
    assert compact(str(caught.value)) == [
        "expected a message with to='0200000001', text containing 'code', but all 2 differ:",
        "  to  status  sender_id  text",
        "  233244000001  ACKNOWLEDGED  Shop  Your code is 1  <- to is '233244000001'",
        "  233200000001  ACKNOWLEDGED  Shop  Sale today  <- text is 'Sale today'",
    ]


class TestValues:
    """A field with fixed values: a word stands for a status, and other values are refused."""

    def test_a_word_stands_for_a_status(self, gateway: SandboxGateway) -> None:
        gateway.override(status="cancelled", times=1)
        collected(gateway)
        gateway.advance(seconds=1)

        gateway.transactions.expect_one(status="cancelled")
        gateway.callbacks.expect_one(status="cancelled")
        gateway.callbacks.expect_none(status="successful")
        assert gateway.wait_callback(status="cancelled").status == "003"

    @pytest.mark.parametrize("call", ["where", "expect_one", "expect_none", "expect"])
    def test_an_impossible_value_is_refused(self, gateway: SandboxGateway, call: str) -> None:
        """An object with its own equality, such as `ANY`, is accepted."""
        impossible: list[tuple[str, str, object, str]] = [
            ("transactions", "status", "paid", "status 'paid' is not one of "),
            ("callbacks", "state", "Failed", "state 'Failed' is not one of "),
            ("callbacks", "status", "zzz", "status 'zzz' is not one of "),
            ("sms", "status", "sent", "status 'sent' is not one of "),
            ("requests", "operation", "refund", "operation 'refund' is not one of "),
            ("requests", "response_code", "999", "response_code '999' is not one of "),
            ("requests", "mode", "p", "mode 'p' is not one of "),
            ("requests", "http_status", "200", "http_status is an integer, and '200' is text"),
        ]
        no_texts: list[tuple[str, str, object]] = [
            ("callbacks", "transaction_id", 1001),
            ("transactions", "transaction_id", 10.5),
            ("transactions", "reference", UUID(int=7)),
            ("requests", "transaction_id", Decimal(7)),
            ("sms", "batch_id", 7),
            ("sms", "to", 233244000001),
            ("callbacks", "customer_number", 233244000001),
        ]
        impossible += [
            (records, field, value, f"{field} is text: write '{value}', not ")
            for records, field, value in no_texts
        ]
        for records, field, value, says in impossible:
            with pytest.raises(ValueError, match=says):
                getattr(getattr(gateway, records), call)(**{field: value})
        with pytest.raises(ValueError, match="signature 'Valid' is not one of valid, invalid, "):
            getattr(gateway.inbox("orders"), call)(signature="Valid")

        collected(gateway)
        gateway.transactions.expect_one(status=ANY)
