"""When the alternate soul is worn, and what happens when it cannot be."""

from __future__ import annotations

import random
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.config import PersonaConfig
from anima.errors import BadArguments, BadConfig
from anima.prompt.identity import SOUL, Decision, check_rule, decide, not_worn
from anima.text.dates import parse_at, parse_duration

BOGOTA = ZoneInfo("America/Bogota")
BERLIN = ZoneInfo("Europe/Berlin")
EVIL = "SOUL_EVIL.md"
START = datetime(2020, 1, 2, tzinfo=UTC)
LATER = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650))
NIGHT = PersonaConfig(at="23:30", duration="30m")


class NoDice(random.Random):
    """A dice that must not be rolled."""

    def random(self) -> float:
        raise AssertionError("the dice was rolled")


def worn(rule: PersonaConfig, *when: int, zone: ZoneInfo = BOGOTA) -> bool:
    return decide(rule, datetime(*when, tzinfo=zone), NoDice()).worn


def test_by_default_the_soul_is_worn_and_no_dice_is_rolled():
    now = datetime(2026, 5, 8, 23, 45, tzinfo=BOGOTA)

    assert decide(PersonaConfig(), now, NoDice()) == Decision(worn=False, why="no", file=SOUL)


def test_in_the_window_the_alternate_is_worn():
    now = datetime(2026, 5, 8, 23, 45, tzinfo=BOGOTA)

    assert decide(NIGHT, now, NoDice()) == Decision(worn=True, why="window", file=EVIL)


def test_the_window_begins_with_its_first_instant_and_ends_before_its_last():
    assert not worn(NIGHT, 2026, 5, 8, 23, 29, 59, 999_999)
    assert worn(NIGHT, 2026, 5, 8, 23, 30)
    assert worn(NIGHT, 2026, 5, 8, 23, 59, 59, 999_999)
    assert not worn(NIGHT, 2026, 5, 9, 0, 0)


def test_a_window_may_go_past_midnight():
    rule = PersonaConfig(at="23:30", duration="1h30m")

    assert worn(rule, 2026, 5, 9, 0, 59)
    assert not worn(rule, 2026, 5, 9, 1, 0)
    assert not worn(rule, 2026, 5, 9, 23, 0)


@given(LATER)
def test_a_window_of_a_day_or_more_is_always_open(later):
    for duration in ("24h", "2d"):
        rule = PersonaConfig(at="23:30", duration=duration)
        assert decide(rule, (START + later).astimezone(BERLIN), NoDice()).why == "window"


def test_the_window_is_in_the_users_timezone():
    same_moment = datetime(2026, 5, 9, 4, 45, tzinfo=UTC)

    assert decide(NIGHT, same_moment.astimezone(BOGOTA), NoDice()).worn
    assert not decide(NIGHT, same_moment.astimezone(BERLIN), NoDice()).worn


def test_the_window_keeps_its_wall_clock_hours_in_summer_and_winter():
    for day in ((2026, 1, 15), (2026, 7, 15), (2026, 3, 28), (2026, 3, 29), (2026, 10, 25)):
        assert worn(NIGHT, *day, 23, 30, zone=BERLIN)
        assert not worn(NIGHT, *day, 22, 30, zone=BERLIN)


def test_a_night_window_is_right_on_both_sides_of_a_change_of_clocks():
    rule = PersonaConfig(at="23:00", duration="5h")

    assert worn(rule, 2026, 3, 29, 1, 59, zone=BERLIN)  # the next wall clock minute is 03:00
    assert worn(rule, 2026, 3, 29, 3, 30, zone=BERLIN)
    assert not worn(rule, 2026, 3, 29, 4, 0, zone=BERLIN)


def test_an_hour_that_comes_twice_counts_twice():
    rule = PersonaConfig(at="02:15", duration="30m")
    first = datetime(2026, 10, 25, 2, 30, fold=0, tzinfo=BERLIN)
    second = first.replace(fold=1)

    assert first.utcoffset() != second.utcoffset()
    assert decide(rule, first, NoDice()).worn and decide(rule, second, NoDice()).worn


@given(later=LATER, at=st.times(), seconds=st.integers(1, 86_399))
def test_a_moment_is_in_the_window_exactly_when_todays_or_yesterdays_window_holds_it(later, at, seconds):
    now, at = START + later, at.replace(second=0, microsecond=0)
    rule = PersonaConfig(at=f"{at:%H:%M}", duration=f"{seconds}s")
    starts = [datetime.combine(now.date() - timedelta(days=back), at, tzinfo=UTC) for back in (0, 1)]

    expected = any(start <= now < start + timedelta(seconds=seconds) for start in starts)

    assert decide(rule, now, NoDice()).worn is expected


def test_chance_is_decided_by_the_dice():
    rule = PersonaConfig(chance=0.1)
    now = datetime(2026, 5, 8, 12, 0, tzinfo=BOGOTA)
    dice = random.Random(7)

    decisions = [decide(rule, now, dice) for _ in range(5_000)]

    assert 400 < sum(decision.worn for decision in decisions) < 600
    assert {decision.why for decision in decisions} == {"chance", "no"}


def test_the_same_dice_gives_the_same_decision():
    now = datetime(2026, 5, 8, 12, 0, tzinfo=BOGOTA)
    rolls = [
        [decide(PersonaConfig(chance=0.5), now, dice) for _ in range(50)]
        for dice in (random.Random(3), random.Random(3))
    ]

    assert rolls[0] == rolls[1]


def test_certain_chances_roll_no_dice():
    now = datetime(2026, 5, 8, 12, 0, tzinfo=BOGOTA)

    assert decide(PersonaConfig(chance=1.0), now, NoDice()) == Decision(worn=True, why="chance", file=EVIL)
    assert not decide(PersonaConfig(chance=0.0), now, NoDice()).worn


def test_the_window_beats_chance_and_rolls_no_dice():
    rule = PersonaConfig(chance=0.5, at="23:30", duration="30m")

    assert decide(rule, datetime(2026, 5, 8, 23, 45, tzinfo=BOGOTA), NoDice()).why == "window"
    with pytest.raises(AssertionError, match="rolled"):
        decide(rule, datetime(2026, 5, 8, 12, 0, tzinfo=BOGOTA), NoDice())


def test_a_time_without_a_timezone_is_refused():
    with pytest.raises(BadArguments):
        decide(NIGHT, datetime(2026, 5, 8, 23, 45, tzinfo=UTC).replace(tzinfo=None), NoDice())


@pytest.mark.parametrize(
    ("text", "expected"), [("23:30", time(23, 30)), ("00:00", time(0)), ("9:05", time(9, 5)), (" 07:00 ", time(7))]
)
def test_hours_are_read(text, expected):
    assert parse_at(text) == expected


@pytest.mark.parametrize(
    "text", ["", "24:00", "23:60", "2330", "23:3", "23:30:00", "11 pm", "-1:00", "２３:30", "23:30\x00"]
)
def test_what_is_no_hour_is_refused(text):
    with pytest.raises(BadConfig, match="is not an hour of the day"):
        parse_at(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", timedelta(minutes=30)),
        ("1h30m", timedelta(minutes=90)),
        ("1h 30m", timedelta(minutes=90)),
        ("45s", timedelta(seconds=45)),
        ("2d", timedelta(days=2)),
        ("1D2H3M4S", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("90m", timedelta(minutes=90)),
    ],
)
def test_durations_are_read(text, expected):
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "30", "m", "0m", "0d0h", "30m1h", "-5m", "1.5h", "1w", "30 minutes", "9999999d", "３m"]
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(BadConfig, match="is not a length of time"):
        parse_duration(text)


@given(st.text())
def test_any_text_is_an_hour_and_a_duration_or_a_named_error(text):
    for read in (parse_at, parse_duration):
        try:
            read(text)
        except BadConfig as error:
            assert str(error).isprintable()


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"at": "23:30"}, "persona.at"),
        ({"duration": "1m"}, "persona.duration"),
        ({"file": "soul.txt"}, "persona.file"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(wrong, where):
    with pytest.raises(BadConfig) as error:
        check_rule(PersonaConfig(**wrong))
    assert error.value.where == where


def test_the_alternate_is_worn_as_it_is():
    assert not_worn(EVIL, "kind", "wicked") == ""


@pytest.mark.parametrize(
    ("alternate", "why"), [(None, "missing"), ("", "empty"), (" \r\n\t", "empty"), ("\ufeff\n", "empty")]
)
def test_a_missing_or_blank_alternate_falls_back_with_a_sentence(alternate, why):
    assert not_worn(EVIL, "kind", alternate) == f"SOUL_EVIL.md should be worn but is {why}; SOUL.md is worn instead."


def test_an_alternate_needs_a_soul_to_stand_in_for():
    said = "SOUL_EVIL.md should be worn, but there is no SOUL.md for it to replace."

    assert not_worn(EVIL, None, "wicked") == said
