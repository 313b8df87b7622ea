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


@pytest.mark.spec("endpoint.11")
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


@pytest.mark.spec("endpoint.11", "states.sms")
@pytest.mark.decision("D25")
def test_a_single_send_has_no_batch_and_until_it_is_sent_no_time_of_sending() -> None:
    item = history_item(message())

    assert (item["status"], item["status_code"]) == ("ACKNOWLEDGED", "A")
    assert (item["batch_id"], item["sent_at"]) == (None, None)


@pytest.mark.spec("endpoint.11")
@pytest.mark.decision("D26")
def test_a_query_asks_for_the_first_20_and_filters_nothing() -> None:
    query = HistoryQuery(55)

    assert (query.page, query.limit, query.filtered) == (1, 20, False)
    assert query.matches(message())
    assert query.matches(message(batch_id="B1"))


@pytest.mark.spec("endpoint.11")
@pytest.mark.parametrize("wanted", SmsStatus)
@pytest.mark.parametrize("status", SmsStatus)
def test_a_status_filter(wanted: SmsStatus, status: SmsStatus) -> None:
    query = HistoryQuery(55, status=wanted)

    assert query.filtered
    assert query.matches(message(status=status)) is (status is wanted)


@pytest.mark.spec("endpoint.11")
@pytest.mark.parametrize(("batch_id", "admitted"), [("B1", True), ("B2", False), (None, False)])
def test_a_batch_filter(batch_id: str | None, admitted: bool) -> None:
    query = HistoryQuery(55, batch_id="B1")

    assert query.filtered
    assert query.matches(message(batch_id=batch_id)) is admitted


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

    assert query.filtered
    assert query.matches(message(created_at=datetime.fromisoformat(created_at))) is admitted


@pytest.mark.spec("endpoint.11")
@given(st.none() | DAYS, st.none() | DAYS, MOMENTS)
def test_either_date_may_be_open(start: date | None, end: date | None, at: datetime) -> None:
    query = HistoryQuery(55, start_date=start, end_date=end)
    expected = (start or date.min) <= at.date() <= (end or date.max)

    assert query.matches(message(created_at=at)) is expected


@pytest.mark.spec("endpoint.11")
@given(
    st.none() | st.sampled_from(SmsStatus),
    st.none() | st.just("B1"),
    st.none() | DAYS,
    st.none() | DAYS,
)
def test_filters_add_up(
    status: SmsStatus | None, batch_id: str | None, start: date | None, end: date | None
) -> None:
    subject = message()
    alone = [
        HistoryQuery(55, status=status),
        HistoryQuery(55, batch_id=batch_id),
        HistoryQuery(55, start_date=start),
        HistoryQuery(55, end_date=end),
    ]
    together = HistoryQuery(55, status=status, batch_id=batch_id, start_date=start, end_date=end)

    assert together.matches(subject) is all(query.matches(subject) for query in alone)
    assert together.filtered is any(query.filtered for query in alone)
