"""`anima chat` as a person sees it, at a real terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from speaking import choose
from terminal import Terminal

from anima import Home
from anima.agent import STOPPED
from anima.testing.models import ModelServer, Received, Spoken
from errand import outfitted


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    with Home.create(tmp_path / "home"):
        pass
    yield tmp_path


def chatting(place: Path) -> Terminal:
    env = {"ANIMA_CONFIG": os.environ["ANIMA_CONFIG"], "LANG": "C.UTF-8", "PYTHONWARNINGS": "error::ResourceWarning"}
    return Terminal(place, [sys.executable, "-m", "anima", "chat", "--home", str(place / "home")], env)


def test_remember_review_a_new_conversation_recall_and_undo(place: Path) -> None:
    with Home.open(place / "home") as home:
        home.delete("BOOTSTRAP.md")
    with chatting(place) as person:
        person.sees("through practice. /help lists what there is")
        person.type("remember that the boat is called Aurora")
        person.sees("memory_write target: memory")
        person.sees("I wrote it down in MEMORY.md.")
        person.type("i speak Galician")
        person.sees("+- **Languages:** Galician")
        person.sees("This says who the agent is and whom it serves: type keep to keep it")
        person.type("keep")
        person.sees("written: USER.md")
        person.type("/new")
        person.sees("through practice")
        person.type("what do you know about the boat?")
        person.sees("The boat is called Aurora (MEMORY.md#L")
        person.type("/why MEMORY.md:19")
        person.sees("The boat is called Aurora")
        person.type("forget the boat")
        person.sees("Forgetting is for you to decide: type forget to forget it")
        person.type("")
        person.sees("it waits: /review")
        person.type("remember that the dog is called Rex")
        person.sees("I wrote it down in MEMORY.md.")
        person.type("/undo")
        person.sees("-- The dog is called Rex")
        person.sees("took back change")
        person.type("/cost")
        person.sees("tokens in")
        person.type("/quit")
    with Home.open(place / "home") as home:
        assert "- **Languages:** Galician" in home.read("USER.md").text
        assert "Aurora" in home.read("MEMORY.md").text and "Rex" not in home.read("MEMORY.md").text
        assert len(home.inbox.all()) == 1 and home.sessions.list().total == 2


def test_the_first_conversation_with_practice(place: Path) -> None:
    with chatting(place) as person:
        person.type("Hello")
        person.sees("practice answers: a small program")
        person.sees("What is your name?")
        person.type("my name is Ana")
        person.sees("And what shall I be called?")
        person.type("your name is Tilda")
        person.sees("Keep the card, and we are done.")
        person.sees("+- **Name:** Tilda")
        person.sees("+- **Name:** Ana")
        person.sees("This says who the agent is and whom it serves: type Tilda to keep it")
        person.type("Tilda")
        person.sees("written: IDENTITY.md")
        person.press("C-d")
    with Home.open(place / "home") as home:
        assert "- **Name:** Ana" in home.read("USER.md").text
        assert home.identity.name == "Tilda" and not home.exists("BOOTSTRAP.md")


def test_ctrl_c_stops_an_answer_and_keeps_what_was_said(place: Path) -> None:
    with ModelServer([Spoken("Once upon a time " * 60_000), Spoken("The end.")]) as server:
        with Home.open(place / "home") as home:
            choose(home, server)
        with chatting(place) as person:
            person.sees("through openai-chat:loopback")
            person.type("Tell me a story.")
            person.sees("Once upon a time")
            person.press("C-c")
            person.sees("stopped; what was said is kept")
            person.type("Shorter.")
            person.sees("The end.")
            person.type("/quit")
    with Home.open(place / "home") as home:
        said = home.sessions.read(home.sessions.list()[0].id).entries[1].content
        assert said.startswith("Once upon a time") and said.endswith(STOPPED)


def test_compact_and_a_model_that_fails(place: Path) -> None:
    def answers(asked: Received) -> Spoken:
        return Spoken("Open\n- the fence") if "Write the summary" in asked.said else Spoken("Yes.")

    with ModelServer([Spoken("I see."), Spoken(fault="500"), Spoken("Good.")], then=answers) as server:
        with Home.open(place / "home") as home:
            choose(home, server)
        with chatting(place) as person:
            person.type("Paint the fence.")
            person.sees("I see.")
            person.type("And the door?")
            person.sees("the model's server answered 500")
            person.type("The door, please.")
            person.sees("Good.")
            person.type("/compact")
            person.sees("the conversation was shortened: you asked for it")
            person.type("/why 'MEMORY.md:3")
            person.sees("anima:")
            person.type("/nonsense")
            person.sees("there is no /nonsense")
            person.type("/quit")


def test_a_noted_line_is_a_card_that_one_key_decides(place: Path) -> None:
    write = ("memory_write", {"target": "memory", "content": "The ferry leaves at nine"})
    link = "It is noted, see [the bank](https://elsewhere.invalid/x)."
    script = [Spoken(calls=[("memory_read_outside", {"source": "web"})]), Spoken(calls=[write]), Spoken(link)]
    with ModelServer(script) as server:
        with Home.open(place / "home") as home:
            choose(home, server)
        with chatting(place) as person:
            person.type("When does the ferry leave?")
            person.sees("It is noted, see the bank (https://elsewhere.invalid/x)")
            person.sees("The ferry leaves at nine")
            person.sees("k keep · d drop")
            person.press("k")
            person.sees("written: MEMORY.md")
            person.type("/quit")
    with Home.open(place / "home") as home:
        assert "The ferry leaves at nine" in home.read("MEMORY.md").text and not home.inbox.noted()


def test_a_call_of_a_tool_from_outside_is_a_card_that_one_key_decides(tmp_path: Path) -> None:
    send = ("errands__send_mail", {"to": "ana", "text": "Two lines\nand \x1b[31mred"})
    script = [Spoken(calls=[send]), Spoken("She knows."), Spoken(calls=[send]), Spoken("As you wish."), Spoken("Good.")]
    with ModelServer(script) as server, outfitted(tmp_path, vouched=True) as home:
        choose(home, server)
        with chatting(tmp_path) as person:
            person.sees("through openai-chat:loopback")
            person.type("Tell Ana.")
            person.sees("call errands__send_mail")
            person.sees('+ "text": "Two lines\\nand \\u001b[31mred"')
            person.sees("k yes, call it · d no · any other key: later")
            person.press("k")
            person.sees("She knows.")
            person.type("Again.")
            person.sees("k yes, call it")
            person.press("d")
            person.sees("Why")
            person.type("once is enough")
            person.sees("As you wish.")
            person.type("/quit")
        sent = (tmp_path / "errands" / "sent").read_text().splitlines()

    assert len(sent) == 2 and sent[0] == "ana: Two lines"  # one mail of two lines
    assert "once is enough" in server.requests[3].said
