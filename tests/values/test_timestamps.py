"""Times in the form of the interface, as they are read and written."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, strategies as st

from sandbox_sim.values.timestamps import REQUEST_TIME, iso, parse_duration


def is_request_time(text: str) -> bool:
    return re.fullmatch(REQUEST_TIME, text) is not None


@example(datetime(2024, 2, 29))  # noqa: DTZ001
@example(datetime(2026, 12, 31, 23, 59, 59))  # noqa: DTZ001
@given(st.datetimes(datetime(1970, 1, 1), datetime(2999, 12, 31)))  # noqa: DTZ001
def test_every_moment_is_a_request_time_in_each_form(moment: datetime) -> None:
    for form in ("%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"):
        assert is_request_time(moment.strftime(form))
    for fraction in ("5", "123456"):
        assert is_request_time(moment.strftime(f"%Y-%m-%dT%H:%M:%S.{fraction}Z"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("now", id="a word"),
        pytest.param("1767225600", id="seconds since 1970"),
        pytest.param("2026-01-31", id="no time"),
        pytest.param("09:30", id="no date"),
        pytest.param("2026-01-31T09:30:00", id="T without Z"),
        pytest.param("2026-01-31 09:30:00Z", id="Z without T"),
        pytest.param("2026-01-31T09:30:00+00:00", id="an offset"),
        pytest.param("2026-01-31  09:30", id="two spaces"),
        pytest.param("2026-01-31 09:30 ", id="a space after"),
        pytest.param("2026-01-31 09:30\n", id="a line break after"),
        pytest.param("2026-1-31 09:30", id="a month of one digit"),
        pytest.param("31-01-2026 09:30", id="the day first"),
        pytest.param("2026/01/31 09:30", id="slashes"),
        pytest.param("2026-13-01 09:30", id="month 13"),
        pytest.param("2026-00-01 09:30", id="month 0"),
        pytest.param("2026-01-32 09:30", id="January 32"),
        pytest.param("2026-04-31 09:30", id="April 31"),
        pytest.param("2026-02-30 09:30", id="February 30"),
        pytest.param("2026-01-31 24:00", id="hour 24"),
        pytest.param("2026-01-31 09:60", id="minute 60"),
        pytest.param("2026-01-31 09:30:60", id="second 60"),
        pytest.param("2026-01-31 09:3\N{ARABIC-INDIC DIGIT ONE}", id="a digit that is not ASCII"),
    ],
)
def test_another_text_is_not_a_request_time(text: str) -> None:
    assert not is_request_time(text)


@pytest.mark.spec("endpoint.11", "endpoint.12")
@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (datetime(2026, 1, 1, 12, tzinfo=UTC), "2026-01-01T12:00:00.000Z"),
        (datetime(2026, 1, 1, 12, 0, 0, 800_000, tzinfo=UTC), "2026-01-01T12:00:00.800Z"),
        (datetime(2026, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "2026-12-31T23:59:59.999Z"),
    ],
)
def test_moments_are_written_in_utc_to_the_millisecond(moment: datetime, written: str) -> None:
    assert iso(moment) == written


@pytest.mark.spec("endpoint.11", "endpoint.12")
@given(st.datetimes(timezones=st.just(UTC)))
def test_a_written_moment_is_iso_8601_with_the_same_millisecond(moment: datetime) -> None:
    read = datetime.fromisoformat(iso(moment))

    assert read == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def test_a_duration_is_read_in_seconds() -> None:
    durations = {"90": 90, "0.8s": 0.8, "5m": 300, "1h30m": 5400, "2d": 172_800, "250ms": 0.25}

    assert {text: parse_duration(text) for text in durations} == pytest.approx(durations)
    for text in ("", "soon", "5 m", "-5m", "5w", "m", "5m!"):
        assert parse_duration(text) is None
