"""Compaction: write first, cut after; no summary, no cut; the open task goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from speaking import SERVICES, choose, made, talk

from anima import Home, Scope
from anima.agent.conversation import Happening, ModelDown
from anima.agent.lodging import kept_from, thinned, weight
from anima.sessions.replay import Turn
from anima.testing.models import ModelServer, Received, Spoken

SUMMARY = "Open\n- find the marina's number\nDone\n- the boat's name was written down"
BOAT = ("memory_write", {"target": "memory", "content": "The boat is called Aurora"})


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with made(
        tmp_path, settings={"sessions.window": "12000", "sessions.reserve": "1000", "sessions.soft": "500"}
    ) as home:
        yield home


def answering(*steps: Spoken, summary: Spoken = Spoken(SUMMARY), silent: Spoken = Spoken("NO_REPLY")) -> Any:  # noqa: B008
    """A model that is asked for a summary and for the silent turn besides what it says."""
    left = list(steps)

    def next_step(asked: Received) -> Spoken:
        if "Write the summary" in asked.said:
            return summary
        if "about to be shortened" in asked.said:
            return silent
        return left.pop(0) if left else Spoken("Yes.")

    return next_step


def turns(asked: Received) -> list[str]:
    return [str(m["content"]) for m in asked.body["messages"] if m["role"] == "user"]


@pytest.mark.parametrize(
    ("service", "fault"), [*((each, "overflow") for each in SERVICES), ("openai-chat", "llama.cpp")]
)
def test_an_overflow_is_cut_and_made_again_once(home: Home, service: str, fault: Any) -> None:
    steps = [Spoken("Noted."), Spoken("I see."), Spoken(fault=fault), Spoken("It is 555-0100.")]
    heard: list[Happening] = []
    with ModelServer(then=answering(*steps, silent=Spoken("- Ana sails in May"))) as server:
        models = choose(home, server, service)
        lines = ["Remember that the boat is Aurora. " + "x" * 14_000, "And so on.", "What is the marina's number?"]
        answers = talk(home, models, lines, heard=heard.append)
    last = server.requests[-1]

    assert answers[-1].text == "It is 555-0100."
    assert [what.text for what in heard if what.kind == "compaction"] == ["the context was full"]
    assert "find the marina's number" in last.said and "What is the marina's number?" in last.said
    assert "x" * 14_000 not in last.said and "Every session" in last.said
    log = home.today()
    assert log is not None and "boat is Aurora" in log.text and "Ana sails in May" in log.text


def test_a_small_model_behind_a_large_setting_is_cut_to_its_size(tmp_path: Path) -> None:
    with made(tmp_path) as home, ModelServer(then=answering(), window=36_000) as server:
        heard: list[Happening] = []
        talk(home, choose(home, server), [f"Line {n}. " + "x" * 1_500 for n in range(40)], heard=heard.append)

    cuts = [what.text for what in heard if what.kind == "compaction"]
    assert cuts[0] == "the context was full" and 2 <= len(cuts) <= 12
    assert "Line 39." in server.requests[-1].said


def test_near_the_limit_it_is_cut_before_the_request(home: Home) -> None:
    steps = [Spoken("Noted.", tokens=1_000), Spoken("I see.", tokens=10_800), Spoken("It is 555-0100.", tokens=900)]
    heard: list[Happening] = []
    with ModelServer(then=answering(*steps)) as server:
        lines = ["x" * 14_000, "And so on.", "What is the marina's number?", "Thank you."]
        talk(home, choose(home, server), lines, heard=heard.append)

    assert [what.text for what in heard if what.kind == "compaction"] == ["the context is nearly full"]
    assert "What is the marina's number?" in server.requests[-1].said


@pytest.mark.parametrize("summary", [Spoken(fault="500"), Spoken("")])
def test_without_a_summary_nothing_is_cut(home: Home, summary: Spoken) -> None:
    with ModelServer(then=answering(Spoken("Noted."), Spoken(fault="overflow"), summary=summary)) as server:
        with home.session(scope=Scope.MAIN, channel="chat") as session:
            models = choose(home, server)
            with pytest.raises(ModelDown, match="nothing was cut"):
                talk(home, models, ["x" * 14_000, "What is the marina's number?"], session=session)
            summed, entries = session.context()

    assert not summed and [turn.content[:4] for turn in entries] == ["xxxx", "Note", "What"]


def test_an_overflow_that_stays_is_said_after_one_retry(home: Home) -> None:
    steps = [Spoken("Noted."), Spoken(fault="overflow"), Spoken(fault="overflow")]
    with ModelServer(then=answering(*steps)) as server:
        with pytest.raises(ModelDown, match="answered 400"):
            talk(home, choose(home, server), ["x" * 14_000, "What is the marina's number?"])

    asked = [each for each in server.requests if "shortened" not in each.said.partition("Write the summary")[0][-300:]]
    assert sum("What is the marina's number?" in each.said and "Write the" not in each.said for each in asked) <= 3


def test_a_turn_of_many_calls_goes_on_after_the_cut_and_repeats_none(home: Home) -> None:
    steps = [Spoken("Hello."), Spoken(calls=[BOAT], tokens=10_900), Spoken("It is written down.", tokens=900)]
    with ModelServer(then=answering(*steps)) as server:
        answers = talk(home, choose(home, server), ["x" * 14_000, "Write down the boat's name."])

    assert answers[-1].text == "It is written down."
    assert home.read("MEMORY.md").text.count("Aurora") == 1
    roles = [message["role"] for message in server.requests[-1].body["messages"]]
    assert roles == ["system", "user", "user", "assistant", "tool"]


def test_a_conversation_is_taken_up_after_a_cut_as_it_went_on(home: Home) -> None:
    with ModelServer(then=answering(Spoken("Noted."), Spoken("I see."), Spoken(fault="overflow"))) as server:
        models = choose(home, server)
        session = home.session(scope=Scope.MAIN, channel="chat")
        talk(home, models, ["x" * 14_000, "And so on.", "What is the marina's number?"], session=session)
        live = server.requests[-1]
        session.leave()
        with home.resume(session.id) as again:
            talk(home, models, ["Go on."], session=again)
    resumed = server.requests[-1]

    assert SUMMARY.splitlines()[1] in resumed.said and "xxxx" not in resumed.said
    assert turns(resumed)[-2:] == ["What is the marina's number?", "Go on."] and turns(live)[-1] == turns(resumed)[-2]


def said(role: str, size: int, **more: Any) -> Turn:
    return Turn(timestamp="", role=role, content="x" * size, **more)


def test_what_is_kept_begins_with_something_the_person_said() -> None:
    turns = [said(role, 400) for _ in range(10) for role in ("user", "assistant")]

    assert kept_from(turns, 250) == 18
    assert kept_from(turns, 10**6) == 0
    assert kept_from([said("user", 10), *(said("tool", 4_000, call={}) for _ in range(5))], 500) == 0
    assert kept_from([], 500) == 0


def test_one_long_turn_keeps_the_question_and_the_latest_calls() -> None:
    long = [said("user", 10), *(said("tool", 400, call={}, name=str(n)) for n in range(10))]
    kept = thinned(long, 400)

    assert kept[0] is long[0] and kept[-1] is long[-1] and sum(map(weight, kept)) <= 400
