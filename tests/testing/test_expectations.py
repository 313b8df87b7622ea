"""Expectations: the values that they take, and their messages when they are not met."""

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
    def test_is_a_sequence(self) -> None:
        first, second = one("T1"), one("T2")
        records = came(first, second)

        assert (len(records), records[0], records[-1], list(records)) == (
            2,
            first,
            second,
            [first, second],
        )
        assert records[1:] == (second,)
        assert first in records
        assert "transaction_id='T2'" in repr(records)
        assert not came()

    @pytest.mark.parametrize("name", ["state", "status", "body", "no_field"])
    def test_cannot_be_changed(self, name: str) -> None:
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(one(), name, "delivered")

    def test_gives_those_that_fit(self) -> None:
        assert came(one("T1"), one("T2"), one("T1", "001")).where(transaction_id="T1") == [
            one("T1"),
            one("T1", "001"),
        ]


class TestWhatIsWanted:
    @pytest.mark.parametrize("amount", [10.5, "10.50", "10.5", Decimal("10.50"), ANY])
    def test_an_amount_may_be_any_kind_of_number(self, amount: object) -> None:
        assert came(one(amount="10.5")).where(amount=amount) == [one()]

    @pytest.mark.parametrize("amount", [10, "10", True, None, "ten"])
    def test_and_no_other(self, amount: object) -> None:
        came(one(amount="10.5")).expect_none(amount=amount)

    @pytest.mark.parametrize("number", ["0244000001", "233244000001"])
    def test_a_phone_number_may_be_in_either_form(self, number: str) -> None:
        assert came(one()).where(customer_number=number) == [one()]
        came(one()).expect_none(customer_number=number[:-1] + "2")

    def test_some_members_of_a_body(self) -> None:
        assert came(one()).where(body={"trans_ref": "T1", "amount": 10.5}) == [one()]
        came(one()).expect_none(body={"trans_ref": "T1", "amount": 11})
        came(one()).expect_none(body={"reference": None})

    @pytest.mark.parametrize(
        ("name", "sentence"),
        [
            ("transactionid", "a callback has no field 'transactionid'; did you mean transaction"),
            ("nickname", "; there are id, transaction_id, "),
            ("trans_ref", "; for the body write body={'trans_ref': …}"),
        ],
    )
    def test_a_field_that_there_is_not_is_refused_even_where_nothing_came(
        self, name: str, sentence: str
    ) -> None:
        with pytest.raises(TypeError) as caught:
            came().expect_none(**{name: "T1"})

        assert sentence in str(caught.value)


class TestOne:
    def test_is_given_back(self) -> None:
        assert came(one("T1"), one("T2")).expect_one(transaction_id="T2") == one("T2")

    def test_where_there_is_nothing(self) -> None:
        assert refusal(came(outlook="something falls due"), transaction_id="T1") == [
            "expected one callback with transaction_id='T1', but there is none",
            "something falls due",
        ]

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

    def test_where_there_are_more(self) -> None:
        records = came(one("T1"), one("T2"), one("T1"), outlook="something falls due")

        assert refusal(records, transaction_id="T1") == [
            "expected one callback with transaction_id='T1', but 2 of 3 are so:",
            "  transaction_id  status  amount  state  url",
            "  T1  000  10.5  pending  http://shop.test/callback  <- this one",
            "  T2  000  10.5  pending  http://shop.test/callback",
            "  T1  000  10.5  pending  http://shop.test/callback  <- this one",
        ]

    def test_a_field_that_is_no_column_becomes_one(self) -> None:
        head = refusal(came(one()), profile="flat")[1]

        assert head == "  transaction_id  status  amount  state  url  profile"

    def test_columns_are_aligned_and_long_values_cut(self) -> None:
        long = replace(one("T1"), url="http://shop.test/" + 100 * "x")
        with pytest.raises(AssertionError) as caught:
            came(long, one("T-1001")).expect_one(status="001")

        head, first, second = str(caught.value).splitlines()[1:]
        assert head.index("state") == first.index("pending") == second.index("pending")
        assert "http://shop.test/" + 43 * "x" + "…  <- status" in first

    def test_of_many_the_newest_are_told(self) -> None:
        lines = refusal(came(*(one(f"T{number}") for number in range(100))), status="001")

        assert lines[1] == "  (the last 20 of 100)"
        assert lines[3].startswith("  T80  ")
        assert len(lines) == 23


class TestNone:
    def test_says_which_there_is(self) -> None:
        records = came(one("T1"), one("T2"))

        records.expect_none(transaction_id="T3")
        with pytest.raises(
            AssertionError, match="no callback with transaction_id='T1', but 1 of 2 is so"
        ):
            records.expect_none(transaction_id="T1")
        with pytest.raises(AssertionError, match="expected no callback, but 2 of 2 are so"):
            records.expect_none()


class TestAny:
    def test_gives_all(self) -> None:
        records = came(one("T1"), one("T2", "001"), one("T3"))

        assert [each.transaction_id for each in records.expect(status="000")] == ["T1", "T3"]
        assert len(records.expect(times=3)) == 3
        assert records.expect(times=0, status="002") == []

    def test_says_what_is_missing(self) -> None:
        with pytest.raises(AssertionError, match="expected a callback with status='001', but the"):
            came(one()).expect(status="001")
        with pytest.raises(
            AssertionError, match="expected 2 times a callback with status='000', but 1 of"
        ):
            came(one()).expect(times=2, status="000")


class TestTexts:
    def test_the_newest_is_given(self) -> None:
        first, second = text("Your code is 1"), text("Your code is 2")

        assert Messages(Sms, [first, second]).expect_text(contains="code") == second

    def test_to_whom_and_what(self) -> None:
        messages = Messages(Sms, [text("Your code is 1"), text("Sale today", "233200000001")])

        assert messages.expect_text(to="0200000001").text == "Sale today"
        with pytest.raises(AssertionError) as caught:
            messages.expect_text(to="0200000001", contains="code")
        assert compact(str(caught.value)) == [
            "expected a message with to='0200000001', text containing 'code', but all 2 differ:",
            "  to  status  sender_id  text",
            "  233244000001  ACKNOWLEDGED  Shop  Your code is 1  <- to is '233244000001'",
            "  233200000001  ACKNOWLEDGED  Shop  Sale today  <- text is 'Sale today'",
        ]

    def test_by_any_other_field(self) -> None:
        assert Messages(Sms, [text("Hello")]).expect_text(sender_id="Shop").created_at == datetime(
            2026, 1, 1, 9, tzinfo=UTC
        )


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

    @pytest.mark.parametrize(
        ("records", "field", "value"),
        [
            ("transactions", "status", "paid"),
            ("callbacks", "state", "Failed"),
            ("callbacks", "status", "zzz"),
            ("sms", "status", "sent"),
            ("requests", "operation", "refund"),
            ("requests", "response_code", "999"),
            ("requests", "mode", "p"),
        ],
    )
    @pytest.mark.parametrize("call", ["where", "expect_one", "expect_none", "expect"])
    def test_a_value_that_none_can_have_is_refused(
        self, gateway: SandboxGateway, records: str, field: str, value: str, call: str
    ) -> None:
        expectation = getattr(getattr(gateway, records), call)

        with pytest.raises(ValueError, match=f"{field} '{value}' is not one of "):
            expectation(**{field: value})

    def test_a_signature_that_no_delivery_can_have_is_refused(
        self, gateway: SandboxGateway
    ) -> None:
        with pytest.raises(ValueError, match="signature 'Valid' is not one of valid, invalid, "):
            gateway.inbox("orders").expect_none(signature="Valid")

    @pytest.mark.parametrize(
        ("records", "field", "value", "written"),
        [
            ("callbacks", "transaction_id", 1001, "'1001'"),
            ("transactions", "transaction_id", 10.5, "'10.5'"),
            ("transactions", "reference", UUID(int=7), f"'{UUID(int=7)}'"),
            ("requests", "transaction_id", Decimal(7), "'7'"),
            ("sms", "batch_id", 7, "'7'"),
            ("sms", "to", 233244000001, "'233244000001'"),
            ("callbacks", "customer_number", 233244000001, "'233244000001'"),
        ],
    )
    @pytest.mark.parametrize("call", ["where", "expect_one", "expect_none", "expect"])
    def test_what_is_not_text_is_refused_for_a_text(
        self,
        gateway: SandboxGateway,
        records: str,
        field: str,
        value: object,
        written: str,
        call: str,
    ) -> None:
        expectation = getattr(getattr(gateway, records), call)

        with pytest.raises(ValueError, match=f"{field} is text: write {written}, not "):
            expectation(**{field: value})

    @pytest.mark.parametrize("call", ["where", "expect_one", "expect_none", "expect"])
    def test_a_text_is_refused_for_a_number(self, gateway: SandboxGateway, call: str) -> None:
        with pytest.raises(ValueError, match="http_status is an integer, and '200' is text"):
            getattr(gateway.requests, call)(http_status="200")

    def test_what_knows_itself_what_it_equals_is_asked(self, gateway: SandboxGateway) -> None:
        collected(gateway)

        gateway.transactions.expect_one(status=ANY)
