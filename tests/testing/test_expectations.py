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
    return Callback.of(callback(transaction_id=transaction_id, body=body))


def came(*callbacks: Callback, outlook: str = "") -> Records[Callback]:
    return Records(Callback, callbacks, outlook)


def text(body: str, to: str = "233244000001") -> Sms:
    return Sms.of(message(customer_number=to, message=body))


def refusal(records: Records[Callback], **wanted: object) -> list[str]:
    with pytest.raises(AssertionError) as caught:
        records.expect_one(**wanted)
    return compact(str(caught.value))


class TestAList:
    def test_is_a_sequence_of_records_that_cannot_be_changed(self) -> None:
        first, second = one("T1"), one("T2")
        records = came(first, second)

        assert (len(records), list(records)) == (2, [first, second])
        assert (records[0], records[-1], records[1:]) == (first, second, (second,))
        assert first in records
        assert "transaction_id='T2'" in repr(records)
        assert not came()
        assert came(*records, one("T1", "001")).where(transaction_id="T1") == [
            first,
            one("T1", "001"),
        ]
        for name in ("state", "status", "body", "no_field"):
            with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
                setattr(first, name, "delivered")


class TestWhatIsWanted:
    def test_an_amount_may_be_any_kind_of_number_and_a_phone_number_in_either_form(self) -> None:
        records = came(one(amount="10.5"))
        for amount in (10.5, "10.50", "10.5", Decimal("10.50"), ANY):
            assert records.where(amount=amount) == [one()]
        for other in (10, "10", True, None, "ten"):
            records.expect_none(amount=other)
        for number in ("0244000001", "233244000001"):
            assert records.where(customer_number=number) == [one()]
            records.expect_none(customer_number=number[:-1] + "2")

    def test_some_members_of_a_body(self) -> None:
        assert came(one()).where(body={"trans_ref": "T1", "amount": 10.5}) == [one()]
        came(one()).expect_none(body={"trans_ref": "T1", "amount": 11})
        came(one()).expect_none(body={"reference": None})

    def test_a_field_that_there_is_not_is_refused_even_where_nothing_came(self) -> None:
        for name, sentence in (
            ("transactionid", "a callback has no field 'transactionid'; did you mean transaction"),
            ("nickname", "; there are id, transaction_id, "),
            ("trans_ref", "; for the body write body={'trans_ref': …}"),
        ):
            with pytest.raises(TypeError) as caught:
                came().expect_none(**{name: "T1"})

            assert sentence in str(caught.value)


class TestOne:
    def test_where_there_are_others_the_nearest_says_how_it_differs(self) -> None:
        records = came(one("T2"), one("T1", "001"), one("T3"), outlook="something falls due")

        assert refusal(records, transaction_id="T1", status="000") == [
            "expected one callback with transaction_id='T1', status='000', but all 3 differ:",
            "  transaction_id  status  amount  state  url",
            "  T2  000  10.5  pending  http://shop.test/callback  <- transaction_id is 'T2'",
            "  T1  001  10.5  pending  http://shop.test/callback  <- status is '001'",
            "  T3  000  10.5  pending  http://shop.test/callback  <- transaction_id is 'T3'",
            "something falls due",
        ]

    def test_where_there_are_more_or_there_is_nothing(self) -> None:
        records = came(one("T1"), one("T2"), one("T1"), outlook="something falls due")

        assert records.expect_one(transaction_id="T2") == one("T2")
        assert refusal(records, transaction_id="T1") == [
            "expected one callback with transaction_id='T1', but 2 of 3 are so:",
            "  transaction_id  status  amount  state  url",
            "  T1  000  10.5  pending  http://shop.test/callback  <- this one",
            "  T2  000  10.5  pending  http://shop.test/callback",
            "  T1  000  10.5  pending  http://shop.test/callback  <- this one",
        ]
        assert refusal(came(outlook="something falls due"), transaction_id="T1") == [
            "expected one callback with transaction_id='T1', but there is none",
            "something falls due",
        ]

    def test_columns_are_aligned_and_long_values_cut(self) -> None:
        """A field that is no column becomes one."""
        long = replace(one("T1"), url="http://shop.test/" + 100 * "x")
        with pytest.raises(AssertionError) as caught:
            came(long, one("T-1001")).expect_one(status="001")

        head, first, second = str(caught.value).splitlines()[1:]
        assert head.index("state") == first.index("pending") == second.index("pending")
        assert "http://shop.test/" + 43 * "x" + "…  <- status" in first
        other = refusal(came(one()), profile="flat")[1]
        assert other == "  transaction_id  status  amount  state  url  profile"

    def test_of_many_the_newest_are_told(self) -> None:
        lines = refusal(came(*(one(f"T{number}") for number in range(100))), status="001")

        assert lines[1] == "  (the last 20 of 100)"
        assert lines[3].startswith("  T80  ")
        assert len(lines) == 23


def test_none_and_any_say_which_there_is_and_what_is_missing() -> None:
    records = came(one("T1"), one("T2", "001"), one("T3"))

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


class TestTexts:
    def test_the_newest_to_this_number_with_this_text_is_given(self) -> None:
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
    def test_a_value_that_none_can_have_is_refused(
        self, gateway: SandboxGateway, call: str
    ) -> None:
        """What knows itself what it equals is asked."""
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
