"""The history of SMS: the shape of an item, and the messages that the filters admit."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from sandbox_sim.records.messages import HistoryQuery, SmsStatus, history_item
from tests.records.samples import NOON, message

DAYS = st.dates(date(2025, 12, 25), date(2026, 1, 7))

MOMENTS = st.datetimes(
    datetime(2025, 12, 25),  # noqa: DTZ001
    datetime(2026, 1, 7),  # noqa: DTZ001
    timezones=st.just(UTC),
)


@pytest.mark.spec("endpoint.11", "states.sms")
@pytest.mark.decision("D25")
def test_an_item_has_the_fields_of_the_interface_in_their_order() -> None:
    sent = message(batch_id="B1").settled(NOON + timedelta(milliseconds=800))

    assert list(history_item(sent).items()) == [
        ("processing_id", "P1"),
        ("batch_id", "B1"),
        ("customer_number", "233244000001"),
        ("message", "Your code is 1234"),
        ("sender_id", "Shop"),
        ("char_count", 17),
        ("page_count", 1),
        ("units_charged", 1),
        ("status", "SENT"),
        ("status_code", "S"),
        ("provider_code", None),
        ("error_message", None),
        ("source", "CLIENT"),
        ("source_code", "C"),
        ("created_at", "2026-01-01T12:00:00.000Z"),
        ("sent_at", "2026-01-01T12:00:00.800Z"),
    ]
    single = history_item(message())
    assert (single["status"], single["status_code"]) == ("ACKNOWLEDGED", "A")
    assert (single["batch_id"], single["sent_at"]) == (None, None)


@pytest.mark.spec("endpoint.11")
@pytest.mark.decision("D26")
def test_each_filter_admits_only_the_value_that_it_names() -> None:
    query = HistoryQuery(55)
    assert (query.page, query.limit, query.filtered) == (1, 20, False)

    for wanted in SmsStatus:
        query = HistoryQuery(55, status=wanted)
        assert [each for each in SmsStatus if query.matches(message(status=each))] == [wanted]
    query = HistoryQuery(55, batch_id="B1")
    assert [each for each in ("B1", "B2", None) if query.matches(message(batch_id=each))] == ["B1"]


@pytest.mark.spec("endpoint.11")
@pytest.mark.parametrize(
    ("created_at", "admitted"),
    [
        ("2025-12-31T23:59:59.999999+00:00", False),
        ("2026-01-01T00:00:00+00:00", True),
        ("2026-01-02T23:59:59.999999+00:00", True),
        ("2026-01-03T00:00:00+00:00", False),
    ],
)
def test_both_dates_are_included_to_their_last_moment(created_at: str, admitted: bool) -> None:
    query = HistoryQuery(55, start_date=date(2026, 1, 1), end_date=date(2026, 1, 2))

    assert query.matches(message(created_at=datetime.fromisoformat(created_at))) is admitted


@pytest.mark.spec("endpoint.11")
@given(
    st.none() | st.sampled_from(SmsStatus),
    st.none() | st.just("B1"),
    st.none() | DAYS,
    st.none() | DAYS,
    MOMENTS,
)
def test_filters_combine_and_each_is_optional(
    status: SmsStatus | None,
    batch_id: str | None,
    start: date | None,
    end: date | None,
    at: datetime,
) -> None:
    subject = message(created_at=at)
    expected = (
        *(status in {None, subject.status}, batch_id is None),
        (start or date.min) <= at.date() <= (end or date.max),
    )

    query = HistoryQuery(55, status=status, batch_id=batch_id, start_date=start, end_date=end)

    assert query.matches(subject) is all(expected)
    assert query.filtered is any(each is not None for each in (status, batch_id, start, end))
