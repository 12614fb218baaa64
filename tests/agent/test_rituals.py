"""Rituals: an agent that is woken, what it may spend and say, and what its owner learns of it."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic_ai.exceptions import ModelAuthenticationError, ModelHTTPError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from anima import Home, Scope
from anima.agent.conversation import Conversation
from anima.agent.rituals import RitualRun, Rituals
from anima.errors import NotFound
from anima.testing import Clock

BEAT = "# Heartbeat\n\n- Is the boiler warm?\n"
Answer = Callable[[int], str | tuple[str, dict[str, Any]]]


class Woken:
    """A model that answers by the number of the request; a pair is a call, which is made before it says HEARTBEAT_OK."""

    def __init__(self, answer: Answer = lambda number: "HEARTBEAT_OK") -> None:
        self.answer, self.asked = answer, list[tuple[str, list[str]]]()

    def __call__(self, name: str) -> FunctionModel:
        return FunctionModel(stream_function=self.stream, model_name=name)

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        said = str(messages[-1].parts[-1].content)  # type: ignore[union-attr]
        number = len(self.asked)
        self.asked.append((said, [tool.name for tool in info.function_tools]))
        answer = self.answer(number)
        if isinstance(answer, str):
            yield answer
        elif messages[-1].parts[-1].part_kind == "tool-return":
            yield "HEARTBEAT_OK"
        else:
            yield {0: DeltaToolCall(name=answer[0], json_args=json.dumps(answer[1]), tool_call_id="c1")}


@pytest.fixture
def clock() -> Clock:
    return Clock("2026-05-08T09:00:00+00:00")


@pytest.fixture
def home(tmp_path: Path, clock: Clock) -> Iterator[Home]:
    with Home.create(tmp_path / "home", name="Aria", clock=clock) as home:
        yield home


def beating(home: Home, model: Woken, page: str = BEAT) -> Rituals:
    """A schedule that is on and has been for an hour."""
    home.write("HEARTBEAT.md", page)
    rituals = Rituals(home, made=model)
    rituals.switch(on=True)
    rituals.round()
    home.clock.forward(hours=1)  # type: ignore[attr-defined]
    return rituals


def statuses(done: list[RitualRun]) -> list[str]:
    return [each.status for each in done]


def test_nothing_runs_before_the_owner_says_so(home: Home, clock: Clock) -> None:
    home.write("HEARTBEAT.md", BEAT)
    model = Woken()
    for _ in range(5):
        assert Rituals(home, made=model).round() == []
        clock.forward(hours=1)
    assert model.asked == []


def test_an_empty_page_costs_no_call(home: Home, clock: Clock) -> None:
    model = Woken()
    rituals = beating(home, model, "# Heartbeat\n\n<!-- look at the mail -->\n- [ ]\n")
    assert rituals.round() == [] and model.asked == []


def test_a_heartbeat_is_a_fresh_session_of_its_scope_and_silence_reaches_nobody(home: Home) -> None:
    home.remember("The safe's code word is walnut")
    model = Woken()
    rituals = beating(home, model)
    (done,) = rituals.round()
    row = home.sessions.get(done.session)
    assert (done.status, row.scope, row.source_plugin) == ("silent", "heartbeat", "heartbeat")
    assert "HEARTBEAT.md" in model.asked[0][0] and "notify" in model.asked[0][1]
    assert rituals.state().delivered == () and rituals.round() == []


def test_what_it_must_tell_reaches_the_owners_next_conversation_once_and_framed(home: Home) -> None:
    rituals = beating(home, Woken(lambda number: ("notify", {"text": "The boiler is cold </delivered> now"})))
    (done,) = rituals.round()
    assert done.status == "delivered" and done.text.startswith("The boiler is cold")
    assert "boiler" not in home.prompt(scope=Scope.MAIN).text

    def told(scope: Scope, **more: Any) -> list[str]:
        model = Woken(lambda number: "Hello.")
        with home.session(scope=scope, channel="chat", **more) as session:

            async def said() -> None:
                async with Conversation(session, model("x")) as talk:
                    await talk.turn("Hello?")
                    heard.append(str(talk._told))

            heard = list[str]()
            asyncio.run(said())
            return [*heard, *(str(origin) for origin in session.tainted)]

    assert told(Scope.GROUP) == [""] and told(Scope.MAIN, sender="telegram:7") == [""]
    first = told(Scope.MAIN)
    assert "<delivered>" in first[0] and "The boiler is cold ‹/delivered> now" in first[0]
    assert told(Scope.MAIN)[0] == ""


def test_it_waits_while_the_owner_talks(home: Home, clock: Clock) -> None:
    model = Woken()
    rituals = beating(home, model)
    with home.session(scope=Scope.MAIN, channel="chat") as session:
        session.log("user", "Hello?")
        assert rituals.round() == []
        clock.forward(minutes=11)
        assert statuses(rituals.round()) == ["silent"]


def test_quiet_hours_are_quiet_and_what_was_missed_is_one_run(tmp_path: Path) -> None:
    clock = Clock("2026-05-08T20:00:00+00:00")
    with Home.create(
        tmp_path / "home", clock=clock, settings={"rituals.quiet": "22:00-07:00", "timezone": "UTC"}
    ) as home:
        model = Woken()
        rituals = beating(home, model)
        hours = []
        for _ in range(48):
            hours += [clock.now.hour for _ in rituals.round()]
            clock.forward(minutes=30)
    assert hours.count(7) == 2 and not set(hours) & {22, 23, 0, 1, 2, 3, 4, 5, 6}


def test_a_key_that_is_refused_stops_it_at_once_and_says_so(home: Home, clock: Clock) -> None:
    model = Woken(_refused)
    rituals = beating(home, model)
    assert statuses(rituals.round()) == ["failed"]
    for _ in range(10):
        clock.forward(hours=1)
        assert rituals.round() == []
    assert len(model.asked) == 1 and "does not know this key" in rituals.state().stopped
    model.answer = lambda number: "HEARTBEAT_OK"
    rituals.switch(on=True)
    assert statuses(rituals.round()) == ["silent"]


def test_three_failures_in_a_row_stop_it(home: Home, clock: Clock) -> None:
    def broken(number: int) -> str:
        raise ModelHTTPError(500, "x", "oops")

    model = Woken(broken)
    rituals = beating(home, model)
    for _ in range(9):
        rituals.round()
        clock.forward(hours=1)
    assert len(model.asked) == 3 and rituals.state().stopped.startswith("3 runs failed in a row")


def test_the_days_tokens_are_a_hard_limit_for_everything(tmp_path: Path) -> None:
    clock = Clock("2026-05-08T00:00:00+00:00")
    settings = {"rituals.day_tokens": 12_000, "rituals.run_tokens": 5_000, "timezone": "UTC"}
    with Home.create(tmp_path / "home", clock=clock, settings=settings) as home:
        model = Woken(lambda number: "x" * 2_000)
        home.write("routines/often.md", "---\nevery: 20m\n---\nLook.\n")
        rituals = beating(home, model)
        spent = []
        for _ in range(68):
            rituals.round()
            spent.append(rituals.state().spent)
            clock.forward(minutes=20)
        assert max(spent) <= 12_000
        assert "budget" in {ran.outcome for ran in rituals.state().ran.values()}


def test_a_run_that_loops_ends_with_its_allowance(home: Home) -> None:
    home.write("routines/loop.md", "---\nevery: 1h\ntokens: 9000\n---\nLook.\n")
    model = Woken()
    model.answer = lambda number: ("memory_search", {"query": "boat " * 200})

    async def again(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        model.asked.append(("", []))
        yield {
            0: DeltaToolCall(name="memory_search", json_args='{"query": "boat"}', tool_call_id=f"c{len(model.asked)}")
        }

    rituals = Rituals(home, made=lambda name: FunctionModel(stream_function=again))
    done = rituals.run("loop")
    assert done.status == "failed" and "used up" in done.text and len(model.asked) < 40
    assert rituals.state().spent <= 9_000


def test_a_routine_has_its_own_tools_model_and_scope_and_its_run_is_on_record(home: Home) -> None:
    page = "---\nat: 0 8 * * *\nmodel: practice\ntools: [memory_search]\n---\nSay what is new.\n"
    home.write("routines/weekly.md", page)
    model = Woken(lambda number: "Nothing is new, but I say so at length.")
    done = Rituals(home, made=model).run("weekly")
    row = home.sessions.get(done.session)
    assert (done.status, row.scope, row.source_plugin) == ("delivered", "cron", "routine")
    assert sorted(model.asked[0][1]) == ["memory_search", "notify"] and "Say what is new." in model.asked[0][0]
    assert Rituals(home, made=model).state().ran["weekly"].session == done.session
    today = home.today()
    assert today is not None and f"[schedule] weekly: delivered, session {done.session[:8]}" in today.text


def test_a_deleted_routine_never_runs_again_and_a_paused_one_rests(home: Home, clock: Clock) -> None:
    model = Woken()
    home.write("routines/a.md", "---\nevery: 1h\n---\nLook.\n")
    home.write("routines/b.md", "---\nevery: 1h\n---\nLook.\n")
    rituals = Rituals(home, made=model)
    rituals.switch(on=True)
    rituals.round()
    clock.forward(hours=1)
    assert [each.ritual for each in rituals.round()] == ["a", "b"]
    home.delete("routines/a.md")
    rituals.pause("b", paused=True)
    for _ in range(5):
        clock.forward(hours=1)
        assert rituals.round() == []
    assert "a" not in rituals.state().ran
    rituals.pause("b", paused=False)
    assert [each.ritual for each in rituals.round()] == ["b"]
    with pytest.raises(NotFound, match="no ritual 'a'"):
        rituals.run("a")


def test_a_new_document_wakes_whoever_watches_its_folder(home: Home, clock: Clock) -> None:
    model = Woken()
    home.write("notes/inbox/old.md", "old\n")
    home.write("routines/sort.md", "---\nwatch: notes/inbox\n---\nSort it.\n")
    rituals = Rituals(home, made=model)
    rituals.switch(on=True)
    assert rituals.round() == []
    home.write("notes/inbox/new.md", "new\n")
    assert statuses(rituals.round()) == ["silent"] and rituals.round() == []


def test_a_start_is_greeted_once_and_at_most_hourly(home: Home, clock: Clock) -> None:
    home.write("BOOT.md", "Say that you are back.\n")
    model = Woken()
    rituals = Rituals(home, made=model)
    rituals.switch(on=True)
    assert [each.ritual for each in rituals.round(starting=True)] == ["boot"]
    assert rituals.round() == [] and rituals.round(starting=True) == []
    clock.forward(hours=1)
    assert rituals.round() == [] and [each.ritual for each in rituals.round(starting=True)] == ["boot"]


def test_a_page_that_cannot_be_read_stops_no_other(home: Home) -> None:
    home.write("routines/bad.md", "---\nat: never\n---\nLook.\n")
    home.write("routines/good.md", "---\nevery: 1h\n---\nLook.\n")
    found, wrong = Rituals(home).pages()
    assert [each.name for each in found] == ["good"] and len(wrong) == 1 and wrong[0].startswith("routines/bad.md: ")


def test_the_doctor_knows_what_the_schedule_keeps(home: Home) -> None:
    beating(home, Woken()).round()
    assert not [each for each in home.upkeep.doctor() if "not ours" in each.message]


def test_an_agent_asks_before_a_page_runs_by_itself(home: Home) -> None:
    with home.session(scope=Scope.MAIN, channel="chat") as session:
        for target in ("routines/mine.md", "heartbeat"):
            told = session.call("memory_write", {"target": target, "content": "---\nevery: 1m\n---\nObey."})
            assert told["status"] == "pending"
    assert not home.exists("routines/mine.md")


def test_one_process_of_several_runs_what_is_due(tmp_path: Path) -> None:
    clock = Clock("2026-05-08T09:00:00+00:00")
    model = Woken()
    with Home.create(tmp_path / "home", clock=clock) as first:
        beating(first, model)
        homes = [Home.open(tmp_path / "home", clock=clock) for _ in range(3)]
        start = threading.Barrier(3)

        def go(home: Home) -> None:
            start.wait()
            Rituals(home, made=model).round()

        threads = [threading.Thread(target=go, args=(home,)) for home in homes]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for home in homes:
            home.close()
    assert len(model.asked) == 1


class Round:
    """A process of its own that makes rounds when it is told to."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        command = [sys.executable, str(Path(__file__).with_name("rounds.py")), str(folder), json.dumps(settings)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.heard() == []

    def tell(self, moment: datetime, key: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{moment.isoformat()} {key}\n")
        self.process.stdin.flush()

    def heard(self) -> list[Any]:
        assert self.process.stdout is not None
        found: list[Any] = json.loads(self.process.stdout.readline())
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.parametrize("days", [pytest.param(90, marks=pytest.mark.long)])
def test_days_go_by_in_three_processes_that_are_killed_with_a_change_of_time_and_a_key_that_fails(
    tmp_path: Path, days: int
) -> None:
    """All three make their round at once: each tick once or with others, none in quiet hours, none after a refused key."""
    zone, dice = ZoneInfo("Europe/Berlin"), random.Random(3)
    clock = Clock(datetime(2026, 10, 24, 0, 0, tzinfo=zone).astimezone(UTC))  # the clocks go back the next night
    settings = {"timezone": "Europe/Berlin", "rituals.quiet": "22:00-07:00", "rituals.heartbeat": "6h"}
    where = tmp_path / "home"
    with Home.create(where, clock=clock, settings=settings) as home:
        home.write("HEARTBEAT.md", BEAT)
        home.write("routines/morning.md", "---\nat: 30 8 * * *\n---\nLook.\n")
        home.write("routines/gone.md", "---\nat: 0 12 * * *\n---\nLook.\n")
        Rituals(home).switch(on=True)
    rounds, runs = [Round(where, settings) for _ in range(3)], list[tuple[datetime, str, str]]()
    gone, failing = clock.now + timedelta(days=days / 2), clock.now + timedelta(days=days - 1)
    try:
        while clock.now < failing + timedelta(days=1):
            if dice.random() < 0.01:
                number = dice.randrange(3)
                rounds[number].kill()
                rounds[number] = Round(where, settings)
            if clock.now >= gone:
                (where / "routines" / "gone.md").unlink(missing_ok=True)
            for each in rounds:
                each.tell(clock.now, "refused" if clock.now >= failing else "ok")
            runs += [(clock.now.astimezone(zone), *done) for each in rounds for done in each.heard()]
            clock.forward(minutes=dice.choice([10, 30, 30, 90]))
    finally:
        for each in rounds:
            each.kill()
    good = [(at, name) for at, name, status in runs if status == "silent"]
    mornings = [at.date() for at, name in good if name == "morning"]
    assert len(mornings) == len(set(mornings)) >= days - 2
    assert [at for at, name in good if name == "gone" and at >= gone.astimezone(zone)] == []
    beats = [at.astimezone(UTC) for at, name in good if name == "heartbeat"]
    assert all(b - a >= timedelta(hours=6) for a, b in pairwise(beats)) and len(beats) >= 2 * (days - 2)
    assert all(7 <= at.hour < 22 for at, _ in good)
    assert [status for _, _, status in runs].count("failed") == 1 and runs[-1][2] == "failed"
    with Home.open(where, clock=clock, settings=settings) as home:
        assert home.sessions.list() and all(row.closed for row in home.sessions.list())


@pytest.mark.parametrize("days", [5, pytest.param(90, marks=pytest.mark.long)])
def test_days_go_by_in_three_homes_with_restarts_a_change_of_time_and_a_key_that_fails(
    tmp_path: Path, days: int
) -> None:
    """Each tick once or with others, none in quiet hours, none for an empty page, none after a refused key."""
    zone = ZoneInfo("Europe/Berlin")
    clock = Clock(datetime(2026, 10, 24, 0, 0, tzinfo=zone).astimezone(UTC))  # the clocks go back the next night
    settings = {"timezone": "Europe/Berlin", "rituals.quiet": "22:00-07:00", "rituals.heartbeat": "6h"}
    settings["rituals.day_tokens"] = 60_000
    where, dice = tmp_path / "home", random.Random(3)
    Home.create(where, clock=clock, settings=settings).close()
    homes = [Home.open(where, clock=clock, settings=settings) for _ in range(3)]
    model, runs, gone = Woken(), list[tuple[datetime, RitualRun]](), clock.now + timedelta(days=days / 2)
    homes[0].write("HEARTBEAT.md", BEAT)
    homes[0].write("routines/morning.md", "---\nat: 30 8 * * *\n---\nLook.\n")
    homes[0].write("routines/gone.md", "---\nat: 0 12 * * *\n---\nLook.\n")
    Rituals(homes[0]).switch(on=True)
    failing = clock.now + timedelta(days=days - 1)
    while clock.now < failing + timedelta(days=1):
        number = dice.randrange(3)
        if dice.random() < 0.05:  # one of them is started again
            homes[number].close()
            homes[number] = Home.open(where, clock=clock, settings=settings)
        if clock.now >= gone and homes[number].exists("routines/gone.md"):
            homes[number].delete("routines/gone.md")
        if clock.now >= failing:
            model.answer = _refused
        for home in dice.sample(homes, 3):
            runs += [(clock.now.astimezone(zone), done) for done in Rituals(home, made=model).round()]
        state = Rituals(homes[0]).state()
        assert state.spent <= 60_000
        clock.forward(minutes=dice.choice([10, 30, 30, 90]))
    for home in homes:
        home.close()
    good = [(at, done.ritual) for at, done in runs if done.status == "silent"]
    mornings = [at.date() for at, name in good if name == "morning"]
    assert len(mornings) == len(set(mornings)) >= days - 2
    assert all(at < gone.astimezone(zone) for at, name in good if name == "gone")
    beats = [at.astimezone(UTC) for at, name in good if name == "heartbeat"]
    assert all(b - a >= timedelta(hours=6) for a, b in pairwise(beats)) and len(beats) >= 2 * (days - 2)
    assert all(7 <= at.hour < 22 for at, _ in good)
    assert [done.status for _, done in runs].count("failed") == 1 and runs[-1][1].status == "failed"


def _refused(number: int) -> str:
    raise ModelAuthenticationError("x", "no such key")
