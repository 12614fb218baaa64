"""When something is due, and what a page asks for: no home, no model."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.agent.schedule import (
    Ritual,
    Schedule,
    allowance,
    heartbeat_of,
    is_awake,
    is_due,
    is_empty,
    is_silence,
    next_run,
    routine_of,
    runs_a_day,
)
from anima.config import RitualsConfig
from anima.errors import BadConfig, BadText
from anima.layout import starter_texts

NOW = datetime(2026, 5, 8, 9, 0, tzinfo=ZoneInfo("America/Bogota"))
BEAT = Ritual(name="heartbeat", kind="heartbeat", path="HEARTBEAT.md", text="look", every=timedelta(minutes=30))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Heartbeat\n\n## Checks\n",
        "<!-- one -->\n<!--\n* look at the mail\n-->\n",
        "- [ ]\n* [x]\n- \n\n---\n",
        "# Checks\n\n```\n- look at the mail\n```\n",
        "---\nevery: 30m\n---\n# Nothing\n",
        starter_texts("Aria", "🌿")["HEARTBEAT.md"],
    ],
)
def test_a_page_of_headings_comments_empty_boxes_and_fences_asks_for_nothing(text: str) -> None:
    assert is_empty(text)
    assert heartbeat_of(text, "HEARTBEAT.md", RitualsConfig()) is None


@pytest.mark.parametrize("text", ["look", "- [ ] look", "<!-- a --> look", "<!--\na\n--> look", "# A\n\n- look\n"])
def test_a_page_with_one_thing_to_do_asks_for_it(text: str) -> None:
    assert not is_empty(text)


@pytest.mark.parametrize(
    "answer",
    ["HEARTBEAT_OK", "**HEARTBEAT_OK**", "NO_REPLY.", "All is well. HEARTBEAT_OK", "HEARTBEAT_OK " + "x" * 300, " "],
)
def test_a_word_at_either_end_with_a_little_beside_it_is_silence(answer: str) -> None:
    assert is_silence(answer)


@pytest.mark.parametrize(
    "answer", ["The boiler is cold", "HEARTBEAT_OK " + "x" * 301, "I say HEARTBEAT_OK when all is well"]
)
def test_anything_else_is_told(answer: str) -> None:
    assert not is_silence(answer)


@pytest.mark.parametrize(
    ("hours", "at", "awake"),
    [
        ("08:00-23:00", "08:00", True),
        ("08:00-23:00", "23:00", False),
        ("08:00-23:00", "07:59", False),
        ("22:00-06:00", "23:30", True),
        ("22:00-06:00", "05:59", True),
        ("22:00-06:00", "06:00", False),
    ],
)
def test_active_hours_may_pass_midnight_and_quiet_ones_are_their_opposite(hours: str, at: str, awake: bool) -> None:
    hour, minute = map(int, at.split(":"))
    now = NOW.replace(hour=hour, minute=minute)
    assert is_awake(now, RitualsConfig(active=hours)) is awake
    assert is_awake(now, RitualsConfig(quiet=hours)) is not awake


def test_a_new_heartbeat_waits_for_its_interval_and_missed_ones_are_one() -> None:
    state = Schedule(on=True).on_day(NOW, [BEAT])
    assert not is_due(BEAT, state, NOW + timedelta(minutes=29), "UTC")
    late = NOW + timedelta(hours=9)
    assert is_due(BEAT, state, late, "UTC")
    ran = state.begun(BEAT, late, 0, None)
    assert not is_due(BEAT, ran, late + timedelta(minutes=29), "UTC")
    assert next_run(BEAT, ran, late, "UTC") == late + timedelta(minutes=30)


def test_a_routine_runs_by_the_owners_wall_clock_across_a_change_of_time() -> None:
    zone = ZoneInfo("Europe/Berlin")
    routine = routine_of("morning", "routines/morning.md", "---\nat: 0 8 * * *\n---\nlook\n")
    runs, now = [], datetime(2026, 10, 24, 0, 0, tzinfo=zone)
    state = Schedule(on=True).on_day(now, [routine])
    for hour in range(72):
        at = (now.astimezone(UTC) + timedelta(hours=hour)).astimezone(zone)
        if is_due(routine, state, at, "Europe/Berlin"):
            runs.append(at)
            state = state.begun(routine, at, 0, None)
    assert [(run.day, run.hour) for run in runs] == [(24, 8), (25, 8), (26, 8)]


def test_a_routine_says_when_what_model_tools_and_budget() -> None:
    page = "---\nwatch: inbox/\nmodel: openai:x\ntokens: 900\ntools: [memory_search]\ndeliver: nobody\n---\nSort it.\n"
    routine = routine_of("sort", "routines/sort.md", page)
    assert (routine.watch, routine.model, routine.tokens, routine.tools) == (
        "inbox",
        "openai:x",
        900,
        ("memory_search",),
    )
    assert not routine.deliver and routine.text == "Sort it." and routine.when == "when a document is new in inbox/"


@pytest.mark.parametrize(
    ("front", "says"),
    [
        ("", "one of at"),
        ("at: 0 8 * * *\nevery: 5m", "one of at"),
        ("at: 30m", "at cannot be"),
        ("every: 0 8 * * *", "every cannot be"),
        ("every: 5m\ncolour: red", "no field 'colour'"),
        ("every: 5m\ntokens: many", "whole number"),
        ("every: 5m\ntools: all", "list of names"),
        ("every: 5m\ndeliver: everybody", "owner or nobody"),
    ],
)
def test_a_routine_that_cannot_be_understood_says_why(front: str, says: str) -> None:
    with pytest.raises(BadText, match=says):
        routine_of("x", "routines/x.md", f"---\n{front}\n---\nlook\n" if front else "look\n")


@pytest.mark.parametrize("when", ["5s", "every morning", "61 * * * *"])
def test_a_time_that_is_none_is_an_error(when: str) -> None:
    with pytest.raises((BadConfig, BadText)):
        routine_of("x", "routines/x.md", f'---\nevery: "{when}"\n---\nlook\n')


def test_no_run_has_more_tokens_than_the_day_has_left() -> None:
    asked = RitualsConfig(day_tokens=1_000, run_tokens=600)
    state = Schedule(on=True).on_day(NOW, [BEAT])
    first = state.begun(BEAT, NOW, allowance(BEAT, state, asked), None)
    assert first.spent == 600 and allowance(BEAT, first, asked) == 400
    ended = first.ended(BEAT, NOW, outcome="silent", session="s", used=150)
    assert ended.spent == 150 and allowance(BEAT, ended, asked) == 600
    tomorrow = ended.on_day(NOW + timedelta(days=1), [BEAT])
    assert tomorrow.spent == 0
    assert allowance(BEAT, replace(state, spent=5_000), asked) == 0


def test_three_failures_in_a_row_stop_it_and_a_refused_key_at_once() -> None:
    state = Schedule(on=True).on_day(NOW, [BEAT])
    twice = state.failed("busy", final=False).failed("busy", final=False)
    assert not twice.stopped and twice.failed("busy", final=False).stopped == "3 runs failed in a row: busy"
    assert state.failed("no such key", final=True).stopped == "no such key"
    assert twice.ended(BEAT, NOW, outcome="silent", session="", used=0).failures == 0


def test_what_is_gone_is_forgotten_and_what_comes_back_is_new() -> None:
    state = Schedule(on=True).on_day(NOW, [BEAT]).begun(BEAT, NOW, 10, None)
    later = NOW + timedelta(days=3)
    back = state.on_day(later, []).on_day(later, [BEAT])
    assert not is_due(BEAT, back, later + timedelta(minutes=29), "UTC")


@given(
    st.builds(
        Schedule,
        on=st.booleans(),
        stopped=st.text(max_size=5),
        spent=st.integers(0, 9),
        paused=st.lists(st.text(max_size=3), max_size=2).map(tuple),
        delivered=st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=2).map(tuple),
    )
)
def test_a_state_is_read_as_it_was_written(state: Schedule) -> None:
    kept = state.on_day(NOW, [BEAT]).begun(BEAT, NOW, 3, ("a",))
    assert Schedule.read(kept.written()) == kept


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"ran": 3}', b'{"colour": 1}', b'{"ran": {"x": {"y": 1}}}'])
def test_a_state_that_cannot_be_read_runs_nothing(data: bytes) -> None:
    assert Schedule.read(data).stopped and not Schedule.read(data).on


def test_an_estimate_counts_runs() -> None:
    hourly = routine_of("x", "routines/x.md", '---\nat: "@hourly"\n---\nlook\n')
    assert runs_a_day(BEAT, NOW, "UTC") == 48 and runs_a_day(hourly, NOW, "UTC") in (23, 24)
