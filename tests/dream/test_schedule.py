"""When a night's dreaming is due: missed runs, clock changes, and expressions that are none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.dream import due, following
from anima.errors import BadArguments, BadConfig

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
NIGHT = "0 3 * * *"


def at(text: str, zone: str = "UTC") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


def runs_of(expression: str, zone: str, start: datetime, end: datetime, step: timedelta) -> list[datetime]:
    """What happens when somebody asks again and again, as a heartbeat does, and runs whatever is due."""
    last, now, found = start, start, []
    while now <= end:
        if run := due(expression, zone, last, now):
            found.append(run.at)
            last = now
        now += step
    return found


def test_the_next_night_is_three_in_the_users_zone():
    assert following(NIGHT, BERLIN, at("2026-05-08T12:00")) == at("2026-05-09T03:00", BERLIN)
    assert following(NIGHT, "America/Bogota", at("2026-05-08T12:00")) == at("2026-05-09T08:00")


def test_nothing_is_due_before_its_time_and_something_is_due_on_the_second():
    last = at("2026-05-08T03:00", BERLIN)

    assert due(NIGHT, BERLIN, last, at("2026-05-09T02:59:59", BERLIN)) is None
    assert due(NIGHT, BERLIN, last, at("2026-05-09T03:00", BERLIN)).at == at("2026-05-09T03:00", BERLIN)


def test_missed_runs_fall_into_one_and_say_so():
    run = due(NIGHT, BERLIN, at("2026-05-01T03:00", BERLIN), at("2026-05-09T12:00", BERLIN))

    assert (run.since, run.at) == (at("2026-05-02T03:00", BERLIN), at("2026-05-09T03:00", BERLIN))
    assert due(NIGHT, BERLIN, at("2026-05-09T12:00", BERLIN), at("2026-05-09T13:00", BERLIN)) is None


def test_a_run_in_time_has_missed_none():
    run = due(NIGHT, BERLIN, at("2026-05-08T03:00:10", BERLIN), at("2026-05-09T03:00:05", BERLIN))

    assert run.since == run.at


def test_what_never_ran_is_due_at_once():
    assert due(NIGHT, BERLIN, None, at("2026-05-09T12:00", BERLIN)).at == at("2026-05-09T03:00", BERLIN)


def test_a_wrong_clock_does_not_stop_the_nights_for_ever():
    now = at("2026-05-09T12:00", BERLIN)

    assert due(NIGHT, BERLIN, now + timedelta(hours=2), now) is None
    assert due(NIGHT, BERLIN, now + timedelta(days=4000), now).at == at("2026-05-09T03:00", BERLIN)


def test_a_wall_time_that_a_clock_change_leaves_out_runs_once_when_the_gap_ends():
    gap = at("2026-03-29T01:00")  # 02:00 to 03:00 does not exist in Berlin that night

    assert following("30 2 * * *", BERLIN, at("2026-03-28T12:00")) == gap
    found = runs_of("30 2 * * *", BERLIN, at("2026-03-28T12:00"), at("2026-03-31T12:00"), timedelta(minutes=5))
    assert [run.astimezone(UTC).day for run in found] == [29, 30, 31]


def test_two_wall_times_in_one_gap_are_one_run():
    found = runs_of("0,30 2 * * *", BERLIN, at("2026-03-28T12:00"), at("2026-03-29T12:00"), timedelta(minutes=1))

    assert found == [at("2026-03-29T01:00")]


def test_a_wall_time_that_comes_twice_runs_the_first_time_only():
    found = runs_of("30 2 * * *", BERLIN, at("2026-10-24T12:00"), at("2026-10-26T12:00"), timedelta(minutes=5))

    assert found == [at("2026-10-25T00:30"), at("2026-10-26T01:30")]


def test_asked_in_the_hour_that_is_repeated_a_run_of_its_first_round_is_still_due():
    in_second_round = at("2026-11-01T06:10")  # 01:10 for the second time in New York

    run = due("30 1 * * *", NEW_YORK, at("2026-10-31T12:00"), in_second_round)

    assert run.at == at("2026-11-01T05:30")
    assert due("30 1 * * *", NEW_YORK, in_second_round, at("2026-11-01T12:00")) is None


def test_midnight_that_does_not_exist_is_one_oclock():
    assert following("0 0 * * *", "America/Sao_Paulo", at("2018-11-03T12:00")) == at("2018-11-04T03:00")


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_every_hour_means_real_hours_on_the_days_of_a_clock_change(day, hours):
    start = at(f"{day}T00:00", BERLIN) - timedelta(seconds=1)
    end = (at(f"{day}T12:00", BERLIN) + timedelta(days=1)).replace(hour=0) - timedelta(seconds=1)

    found = runs_of("0 * * * *", BERLIN, start.astimezone(UTC), end.astimezone(UTC), timedelta(minutes=10))

    assert len(found) == hours


def test_a_heartbeat_every_half_hour_dreams_once_a_night():
    found = runs_of("@daily", BERLIN, at("2026-05-01T12:00"), at("2026-05-11T12:00"), timedelta(minutes=30))

    assert len(found) == 10


def test_a_rare_day_is_found_and_a_long_absence_costs_little():
    assert following("0 0 29 2 *", "UTC", at("2097-01-01T00:00")) == at("2104-02-29T00:00")
    run = due("* * * * *", "UTC", at("1990-01-01T00:00"), at("2026-05-09T12:00:30"))
    assert (run.since, run.at) == (at("1990-01-01T00:01"), at("2026-05-09T12:00"))


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "3",
        "0 3 * *",
        "0 0 3 * * *",
        "61 3 * * *",
        "x 3 * * *",
        "0 25 * * *",
        "0 0 30 2 *",
        "@noon",
        "0 3 * * */0",
        "9" * 5_000 + " * * * *",
        "L/2 L * * L",
        "0 0 L/2 * L/3",
        "\x1b[31m 3 * * *",
        "0 0 5-1 * *",
        "0 0 * 2 1#9",
    ],
)
def test_an_expression_that_is_none_is_a_sentence(expression):
    with pytest.raises(BadConfig) as error:
        following(expression, "UTC", at("2026-05-09T12:00"))

    assert len(str(error.value)) < 200 and str(error.value).isprintable()
    assert "five fields" in error.value.hint


@pytest.mark.parametrize("zone", ["", "Berlin", "Europe/Nowhere", "../etc/passwd", "/etc/localtime", "UTC\x00"])
def test_a_zone_that_is_none_is_a_sentence(zone):
    with pytest.raises(BadConfig, match="timezone"):
        due(NIGHT, zone, None, at("2026-05-09T12:00"))


def test_a_moment_without_a_zone_is_refused():
    with pytest.raises(BadArguments, match="timezone"):
        due(NIGHT, "UTC", None, datetime(2026, 5, 9))  # noqa: DTZ001, that is the point


def test_where_the_calendar_ends_nothing_breaks():
    with pytest.raises(BadConfig, match="never comes again"):
        following(NIGHT, "UTC", at("9999-12-31T12:00"))


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="0123456789*/-,L#W ", max_size=24))
def test_any_text_is_a_time_or_a_sentence(text):
    try:
        assert following(text, BERLIN, at("2026-05-09T12:00")) > at("2026-05-09T12:00")
    except BadConfig:
        pass


@settings(max_examples=150, deadline=None)
@given(
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    zone=st.sampled_from(
        [BERLIN, NEW_YORK, "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kathmandu", "America/Santiago"]
    ),
    start=st.integers(0, 2_500).map(lambda day: at("2020-01-01T00:00") + timedelta(days=day, hours=day % 24)),
)
def test_a_daily_run_comes_once_for_every_day_in_every_zone(minute, hour, zone, start):
    moment, days = start, []
    for _ in range(40):
        after, moment = moment, following(f"{minute} {hour} * * *", zone, moment)
        assert due(f"{minute} {hour} * * *", zone, after, moment).at == moment
        days.append(moment.astimezone(ZoneInfo(zone)).date())

    assert days == [days[0] + timedelta(days=n) for n in range(40)]
